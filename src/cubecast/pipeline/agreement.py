"""Pass 3, one task per topic of a run: the vectors of all subscriptions side by side (P4, P4u)."""

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cubecast.pipeline.filters import matching
from cubecast.pipeline.findings import Finding, batch_of, finding_rows
from cubecast.pipeline.frames import FOUND
from cubecast.pipeline.messages import FOREVER, RunMessages, TopicMessages
from cubecast.pipeline.rows import Flags, Ints
from cubecast.pipeline.subscriptions import pack_one
from cubecast.pipeline.view import message_id

COLUMNS = ("run", "topic", "node", "incarnation", "ordinal", "correct", "subscribed", "last_seq")
VECTORS = ("publisher", "cut", "last", "wants", "delivered_publisher", "delivered_counter")


def agreement(replayed: DataFrame, tables: Callable[[], dict[int, RunMessages]]) -> DataFrame:
    """Rows of `frames.REPLAYED` → findings of P4 and P4u. `tables` fetches the message tables where it runs."""

    def judge(table: pa.Table) -> pa.Table:
        return _judge_topic(tables, table)

    return (
        replayed.select(*COLUMNS, *VECTORS)
        .where(F.col("topic").isNotNull())
        .groupBy("run", "topic")
        .applyInArrow(judge, FOUND)
        .select(*FOUND.names)
    )


def _judge_topic(tables: Callable[[], dict[int, RunMessages]], table: pa.Table) -> pa.Table:
    run = table.column("run")[0].as_py()
    found = finding_rows(shortfalls(table.combine_chunks(), lambda: tables()[run]))
    return pa.Table.from_batches([batch_of([{"run": run, "findings": found}], FOUND)])


def shortfalls(table: pa.Table, run: Callable[[], RunMessages]) -> Iterator[Finding]:
    """Correct subscriptions that stay below what another one reached of a publisher outside their cut."""
    publisher = table.column("publisher").chunk(0)
    owner = np.repeat(np.arange(table.num_rows), publisher.value_lengths().to_numpy())
    keys, column = np.unique(publisher.flatten().to_numpy(), return_inverse=True)
    last, cut = np.zeros((table.num_rows, len(keys)), np.int64), np.full((table.num_rows, len(keys)), FOREVER)
    last[owner, column] = table.column("last").chunk(0).flatten().to_numpy()
    cut[owner, column] = table.column("cut").chunk(0).flatten().to_numpy()
    told = np.zeros(last.shape, bool)
    told[owner, column] = True
    correct = table.column("correct").to_numpy()
    if not len(keys) or not correct.any():
        return
    tops = {"P4": last[correct].max(axis=0), "P4u": last.max(axis=0)}
    short = correct[:, None] & (last < tops["P4u"]) & (~told | (cut < tops["P4u"]))
    for place in np.flatnonzero(short.any(axis=1)).tolist():
        row = {name: table.column(name)[place].as_py() for name in COLUMNS}
        where = (pack_one(row["node"], row["incarnation"]), row["subscribed"])
        for key in np.flatnonzero(short[place] & ~told[place]).tolist():
            cut[place, key] = _implied(run(), row["topic"], int(keys[key]), *where)
        wants = table.column("wants")[place].as_py()
        for promise, everything in tops.items():
            top = everything
            if wants is not None:
                speaking = correct if promise == "P4" else np.ones(len(correct), bool)
                top = _highest_wanted(table.filter(speaking), wants, run().topic(row["topic"]), row["topic"], keys)
            yield from _below(promise, row, keys, top, (last[place] < top) & (cut[place] < top))


def _highest_wanted(table: pa.Table, wants: str, topic: TopicMessages, name: str, keys: Ints) -> Ints:
    """Per publisher, the highest counter delivered in these subscriptions that the filter matches."""
    top = np.zeros(len(keys), np.int64)
    delivered = [pc.list_flatten(table.column(f"delivered_{part}")).to_numpy() for part in ("publisher", "counter")]
    slot = topic.slots(topic.rank(delivered[0]), delivered[1])
    wanted = np.append(matching(wants, [*topic.texts, ""], name)[topic.attributes], False)[slot]
    np.maximum.at(top, np.searchsorted(keys, delivered[0][wanted]), delivered[1][wanted])
    return top


def _implied(run: RunMessages, name: str, publisher: int, log_key: int, subscribed: int | None) -> int:
    topic = run.topic(name)
    rank = int(topic.rank(np.array([publisher]))[0])
    return FOREVER if rank < 0 else run.implied_cut(topic, rank, log_key, subscribed)


def _below(promise: str, row: dict[str, int], keys: Ints, top: Ints, short: Flags) -> Iterator[Finding]:
    for place in np.flatnonzero(short).tolist():
        message = message_id(int(keys[place]), int(top[place]))
        reason = f"{message} is delivered elsewhere but not reached here"
        where = (row["node"], row["incarnation"], row["last_seq"], reason, str(row["topic"]), row["ordinal"])
        yield Finding(promise, *where, message=message)
