"""Self-contained universes from a subscription log: small enough to simulate, shaped like the whole.

A random *seed set* of topics is chosen; the users subscribed to any of them are the members; each member adds one more
topic of its own to the set; the universe is every subscription of a member to a topic of the set, without the topics
that have too few subscribers. Dropping a topic takes no subscriber from another one, so one pass of pruning is final;
members left without a topic are gone.

The text of StaN (§3.3.1) can also be read as admitting everyone subscribed to an *added* topic. On Wikipedia that would
give many more processes than topics where Table 3.1 prints about two to one, so members are the seed set's subscribers
unless Members.ALL asks otherwise.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from cubecast.errors import BadInput
from cubecast.pipeline.workloads.chance import draw

PAIR = ("user", "topic")


class Extra(StrEnum):
    """Which topic each member adds."""

    RANDOM = "random"
    """One of the member's subscriptions (as for Wikipedia); it may be in the set already."""
    OWN = "own"
    """The topic that bears the member's name (as for journals), if there is one."""


class Members(StrEnum):
    """Who belongs to the universe."""

    SEED = "seed"
    """Subscribers of the seed set."""
    ALL = "all"
    """Subscribers of any topic of the completed set."""


@dataclass(frozen=True)
class UniverseRules:
    seeds: int
    least_subscribers: int = 30
    extra: Extra = Extra.RANDOM
    members: Members = Members.SEED

    def __post_init__(self) -> None:
        if self.seeds < 1:
            raise BadInput(f"a universe grows from at least one seed topic, not {self.seeds}")
        if self.least_subscribers < 1:
            raise BadInput(f"the least number of subscribers is 1 or more, not {self.least_subscribers}")


def universe(subscriptions: DataFrame, rules: UniverseRules, seed: int) -> DataFrame:
    """One universe of a log; the same seed gives the same one however the log is partitioned. → user, topic

    Pairs that stand in the log several times count once: the log itself is not sorted for that.
    """
    pairs = subscriptions.select(*PAIR)
    chosen = seed_topics(pairs, rules.seeds, seed)
    first = members(pairs, chosen, rules.extra, seed)
    topics = chosen.unionByName(first.select(F.col("extra").alias("topic"))).distinct()
    # A universe is small enough to simulate, so its topics and members go to the log, and the log is not shuffled.
    inside = pairs.join(F.broadcast(topics), on="topic", how="left_semi")
    if rules.members is Members.SEED:
        inside = inside.join(F.broadcast(first), on="user", how="left_semi")
    return prune(inside.distinct(), rules.least_subscribers).select(*PAIR)


def seed_topics(pairs: DataFrame, count: int, seed: int) -> DataFrame:
    """`count` topics at random, all if there are fewer. → topic"""
    return (
        pairs.select("topic")
        .distinct()
        .orderBy(draw(seed, "seed topic", F.col("topic")), "topic")
        .limit(count)
        .select("topic")
    )


def members(pairs: DataFrame, chosen: DataFrame, extra: Extra, seed: int) -> DataFrame:
    """Users subscribed to a chosen topic, each with the topic it adds. → user, extra"""
    users = pairs.join(F.broadcast(chosen), on="topic", how="left_semi").select("user").distinct()
    if extra is Extra.OWN:
        return users.select("user", F.col("user").alias("extra"))
    chance = F.struct(draw(seed, "extra topic", F.col("user"), F.col("topic")).alias("chance"), "topic")
    return (
        pairs.select(*PAIR)
        .join(F.broadcast(users), on="user", how="left_semi")
        .groupBy("user")
        .agg(F.min(chance).alias("picked"))
        .select("user", F.col("picked.topic").alias("extra"))
    )


def prune(pairs: DataFrame, least_subscribers: int) -> DataFrame:
    """Without topics of fewer subscribers. → user, topic"""
    whole = Window.partitionBy("topic").rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    return (
        pairs.select(*PAIR)
        .withColumn("subscribers", F.count("*").over(whole))
        .where(F.col("subscribers") >= least_subscribers)
        .select(*PAIR)
    )


class Size(NamedTuple):
    seed: int
    topics: int
    users: int


def universe_size(subscriptions: DataFrame, rules: UniverseRules, seed: int) -> Size:
    (row,) = (
        universe(subscriptions, rules, seed)
        .agg(F.count_distinct("topic").alias("topics"), F.count_distinct("user").alias("users"))
        .collect()
    )
    return Size(seed, row.topics, row.users)


def median_size(sizes: Iterable[Size]) -> Size:
    """The one whose topics per user is the median, the lower of two; empty universes do not count."""
    ranked = sorted((size for size in sizes if size.users), key=lambda size: (size.topics / size.users, size.seed))
    if not ranked:
        raise BadInput(
            "every universe is empty: no topic in it has enough subscribers; ask for fewer, or for more seeds"
        )
    return ranked[(len(ranked) - 1) // 2]
