"""Pass 3: the vectors of all subscriptions to a topic side by side (P4, P4u)."""

from collections.abc import Callable, Iterator
from functools import partial

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

    def judge(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        whole = list(batches)
        for run, table in suspected(pa.Table.from_batches(whole)) if whole else ():
            found = finding_rows(shortfalls(table, partial(_run_of, tables, run)))
            yield batch_of([{"run": run, "findings": found}], FOUND)

    topics = replayed.select(*COLUMNS, *VECTORS).where(F.col("topic").isNotNull())
    return topics.repartition("run", "topic").mapInArrow(judge, FOUND)


def _run_of(tables: Callable[[], dict[int, RunMessages]], run: int) -> RunMessages:
    return tables()[run]


def suspected(table: pa.Table) -> Iterator[tuple[int, pa.Table]]:
    """Run and subscriptions of each topic where one may stay below another; the rest needs no closer look.

    All topics at once: a trace may have many thousands, and nearly all of them are level.
    """
    if not table.num_rows:
        return
    runs, group = table.column("run").to_numpy(), topic_groups(table)
    lists = {name: table.column(name).combine_chunks() for name in ("publisher", "last", "cut")}
    owner = np.repeat(np.arange(table.num_rows), lists["publisher"].value_lengths().to_numpy())
    publisher, last, cut = (one.flatten().to_numpy() for one in lists.values())
    order = np.lexsort((publisher, group[owner]))
    owner, publisher, last, cut = owner[order], publisher[order], last[order], cut[order]
    is_new = np.ones(len(owner), bool)
    is_new[1:] = (np.diff(publisher) != 0) | (np.diff(group[owner]) != 0)
    of_pair = np.cumsum(is_new) - 1
    top = np.maximum.reduceat(last, np.flatnonzero(is_new)) if len(last) else last
    below = np.bincount(owner, (last < top[of_pair]) & (cut < top[of_pair]), table.num_rows) > 0
    pairs = np.bincount(group[owner][is_new], minlength=int(group.max()) + 1)[group]
    silent = np.bincount(owner, minlength=table.num_rows) < pairs
    suspects = table.column("correct").to_numpy() & (below | silent)
    suspects |= table.column("wants").is_valid().to_numpy()
    chosen = np.flatnonzero(np.isin(group, np.unique(group[suspects])))
    for rows in grouped(chosen, group[chosen]):
        yield int(runs[rows[0]]), table.take(pa.array(rows)).combine_chunks()


def topic_groups(table: pa.Table) -> Ints:
    """A number for each row, the same for those of one topic of a run."""
    topics = table.column("topic").combine_chunks().dictionary_encode()
    names = topics.indices.to_numpy().astype(np.int64)
    _, group = np.unique(table.column("run").to_numpy() * (len(topics.dictionary) + 1) + names, return_inverse=True)
    numbered: Ints = group
    return numbered


def grouped(rows: Ints, group: Ints) -> list[Ints]:
    """The rows of each group, in order."""
    if not len(rows):
        return []
    order = np.argsort(group, kind="stable")
    return np.split(rows[order], np.flatnonzero(np.diff(group[order])) + 1)


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
