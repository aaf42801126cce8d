"""Topics of a cluster into Parquet, for spark-submit: each message once, however often it is started again.

spark-submit --master 'local[2]' examples/spark_archive.py 127.0.0.1:7400 'orders.>' lake/orders
"""

import argparse

from pyspark.sql import SparkSession

from cubecast.spark import read_table, register


def main() -> None:
    parser = argparse.ArgumentParser(description="Write what topics hold to a table, from where it ended last time.")
    parser.add_argument("nodes", help="HOST:PORT of nodes that keep logs, separated by commas")
    parser.add_argument("pattern", help="which topics, for example 'orders.>'")
    parser.add_argument("out", help="directory of the table; its checkpoint is beside it")
    parser.add_argument("--format", default="parquet", help="parquet, or delta or iceberg where Spark knows them")
    given = parser.parse_args()
    spark = SparkSession.builder.appName("archive of topics").getOrCreate()
    register(spark)
    topics = spark.readStream.format("cubecast").option("nodes", given.nodes).option("pattern", given.pattern).load()
    table = topics.writeStream.format(given.format).option("checkpointLocation", f"{given.out}-checkpoint")
    query = table.trigger(availableNow=True).start(given.out)
    query.awaitTermination()
    print(f"{read_table(spark, given.out, given.format).count()} messages in {given.out}")


if __name__ == "__main__":
    main()
