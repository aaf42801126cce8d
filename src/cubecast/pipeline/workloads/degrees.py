"""How many subscribers topics have, and how many topics users have."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F


def subscribers_per_topic(subscriptions: DataFrame) -> DataFrame:
    """→ topic, degree"""
    return (
        subscriptions.select("user", "topic")
        .groupBy("topic")
        .agg(F.count("*").alias("degree"))
        .select("topic", "degree")
    )


def subscriptions_per_user(subscriptions: DataFrame) -> DataFrame:
    """→ user, degree"""
    return (
        subscriptions.select("user", "topic").groupBy("user").agg(F.count("*").alias("degree")).select("user", "degree")
    )


def degree_histogram(degrees: DataFrame) -> DataFrame:
    """How many have each degree. → degree, count"""
    return (
        degrees.select("degree")
        .groupBy("degree")
        .agg(F.count("*").alias("count"))
        .select("degree", "count")
        .orderBy("degree")
    )
