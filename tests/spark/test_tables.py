"""Tables by the name of their format; a missing package is one line."""

import pytest

from cubecast.errors import BadInput
from cubecast.spark import read_table, write_table


def test_what_spark_has_itself(spark, tmp_path):
    write_table(spark.range(5), str(tmp_path / "table"))
    write_table(spark.range(5, 8), str(tmp_path / "table"))
    assert sorted(row.id for row in read_table(spark, str(tmp_path / "table")).collect()) == list(range(8))


@pytest.mark.parametrize("name", ["delta", "iceberg"])
def test_a_missing_package_is_named(spark, tmp_path, name):
    told = f"this Spark session knows no format '{name}': start it with --packages"
    with pytest.raises(BadInput, match=told):
        read_table(spark, str(tmp_path), name)
    with pytest.raises(BadInput, match=told):
        write_table(spark.range(1), str(tmp_path / "x"), name)


def test_other_mistakes_are_told_by_spark(spark, tmp_path):
    with pytest.raises(Exception, match="PATH_NOT_FOUND"):
        read_table(spark, str(tmp_path / "nothing"))
