"""The verifier's judgements on a trace in memory, without Spark: the same functions, called one after the other."""

from collections.abc import Sequence

import pyarrow as pa

from cubecast.pipeline.agreement import COLUMNS, VECTORS, shortfalls, suspected
from cubecast.pipeline.assemble import RunSummary, assemble, summaries
from cubecast.pipeline.findings import batch_of, finding_rows
from cubecast.pipeline.frames import LOG, REPLAYED
from cubecast.pipeline.judging import Judged
from cubecast.pipeline.logs import log_rows, waiting_rows
from cubecast.pipeline.messages import in_circles
from cubecast.pipeline.order import disorder, holes, sequence_rows, sequences_of, unsound_headers
from cubecast.pipeline.replay import replayed_rows
from cubecast.pipeline.rows import Rows, rows_of
from cubecast.pipeline.staging import Run
from cubecast.pipeline.verdict import RunVerdict, judge_run
from cubecast.pipeline.verify import incomplete
from cubecast.trace.reader import Trace
from cubecast.trace.writer import table_of


def judge(trace: Trace, properties: Sequence[str]) -> RunVerdict:
    """What `verify` decides about this trace."""
    table = table_of(trace.info.run, trace.events)
    rows = rows_of(table.set_column(0, "run", pa.array([0] * table.num_rows, pa.int32())))
    found, _ = summaries(pa.Table.from_batches([batch_of(log_rows(rows), LOG)]))
    summary = found.get(0, RunSummary())
    assemble(summary)
    judged = Judged()
    if summary.circle is not None:
        waiting = [finding for row in waiting_rows({0: summary.circle}, rows) for finding in row["findings"]]
        summary.findings += in_circles(waiting, summary.circle)
    if summary.messages is not None:
        _judge(rows, summary, properties, judged)
    run = Run(0, trace.info.run, "", (), trace.info.promises, trace.info.nodes)
    return judge_run(
        run,
        properties,
        [*summary.findings, *judged.findings[0]],
        incomplete(run, summary),
        deliveries=sum(log.deliveries for log in summary.logs),
        messages=sum(log.publications for log in summary.logs),
    )


def _judge(rows: Rows, summary: RunSummary, properties: Sequence[str], judged: Judged) -> None:
    messages = summary.messages
    assert messages is not None
    replayed = replayed_rows(rows, {0: messages}, {0: frozenset(properties)})
    judged.add_replayed(pa.Table.from_batches([batch_of(replayed, REPLAYED)]))
    for name, topic in messages.topics.items():
        of_topic = [row for row in replayed if row.get("topic") == name]
        found = list(unsound_headers(name, topic))
        if of_topic:
            table = pa.Table.from_batches([batch_of(of_topic, REPLAYED)]).select([*COLUMNS, *VECTORS])
            found += [one for _, part in suspected(table) for one in shortfalls(part, lambda: messages)]
            sequences = sequences_of([row for row in sequence_rows(rows, {0: messages}) if row["topic"] == name])
            found += [*disorder(sequences), *holes(sequences)]
        judged.findings[0] += finding_rows(found)
