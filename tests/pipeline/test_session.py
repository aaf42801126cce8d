"""The session: explicit options, and one clear line when Java is missing or too old."""

import os
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cubecast.errors import BadInput
from cubecast.pipeline.session import (
    LEFT_OUT,
    check_java,
    given_options,
    java_version,
    local_master,
    on_this_machine,
    pass_on,
    spark_session,
)


def fake_java(directory: Path, says: str) -> Path:
    (directory / "bin").mkdir(parents=True)
    java = directory / "bin" / "java"
    java.write_text(f"#!/bin/sh\necho '{says}' >&2\n")
    java.chmod(java.stat().st_mode | stat.S_IXUSR)
    return directory


def test_no_java_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"^Spark needs Java 17 or newer and there is none on the PATH: .*[^\n]$"):
        check_java({"PATH": str(tmp_path)})


def test_a_java_home_without_java_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=f"none in JAVA_HOME={tmp_path}"):
        check_java({"JAVA_HOME": str(tmp_path), "PATH": ""})


def test_too_old_java_is_one_clear_line(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "jdk8", 'openjdk version "1.8.0_392"')
    with pytest.raises(BadInput, match="is Java 8: install one"):
        check_java({"JAVA_HOME": str(home)})


def test_java_that_says_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="does not say its version"):
        check_java({"JAVA_HOME": str(fake_java(tmp_path / "broken", "hello"))})


def test_recent_java_passes(tmp_path: Path) -> None:
    check_java({"JAVA_HOME": str(fake_java(tmp_path / "jdk21", 'openjdk version "21.0.2" 2024-01-16'))})


@pytest.mark.parametrize(
    ("text", "major"),
    [('java version "1.8.0_1"', 8), ('openjdk version "17.0.15" 2025', 17), ('version "22-ea"', 22), ("no", None)],
)
def test_java_version(text: str, major: int | None) -> None:
    assert java_version(text) == major


def test_the_default_master_retries_tasks() -> None:
    assert local_master().startswith("local[")
    assert local_master().endswith(",4]")
    assert on_this_machine(local_master())
    assert not on_this_machine("spark://example:7077")


def test_one_line_of_the_jvm_is_left_out_and_no_other(tmp_path: Path) -> None:
    read_end, write_end = os.pipe()
    os.write(write_end, LEFT_OUT + b"\nan error\n" + LEFT_OUT + b", too\nno end of line")
    os.close(write_end)
    with (tmp_path / "told").open("wb") as told:
        pass_on(read_end, told.fileno())
    assert (tmp_path / "told").read_bytes() == b"an error\n" + LEFT_OUT + b", too\nno end of line"


def test_what_spark_was_told_in_its_defaults_is_read(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "spark-defaults.conf").write_text("# ours\n\nspark.driver.memory  3g\nspark.master=local[3]\nother 1\n")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    assert given_options() == {"spark.driver.memory": "3g", "spark.master": "local[3]"}
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path / "nowhere"))
    assert given_options() == {}


@pytest.mark.slow
def test_what_spark_submit_was_told_wins(tmp_path: Path) -> None:
    script = tmp_path / "submitted.py"
    script.write_text(
        "from cubecast.pipeline.session import spark_session\n"
        "spark = spark_session()\n"
        "names = ('spark.driver.memory', 'spark.own.option', 'spark.sql.session.timeZone')\n"
        "print('told', spark.sparkContext.master, *map(spark.conf.get, names))\n"
    )
    told = ["--master", "local[1]", "--driver-memory", "600m", "--conf", "spark.own.option=7"]
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable}
    submit = str(Path(sys.executable).with_name("spark-submit"))
    done = subprocess.run([submit, *told, str(script)], env=environment, capture_output=True, text=True, check=False)
    assert "told local[1] 600m 7 UTC" in done.stdout, done.stderr


def test_a_session_of_another_thread_is_taken_as_it_is(spark) -> None:
    """Spark's active session is one of a thread; a notebook's or a server's other threads have none."""
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(spark_session, "local[1]", [("spark.ui.enabled", "true")]).result() is spark
    assert spark.conf.get("spark.ui.enabled") == "false"


def test_the_session_is_quiet_and_uses_arrow(spark) -> None:
    assert spark.conf.get("spark.sql.execution.arrow.pyspark.enabled") == "true"
    assert spark.conf.get("spark.ui.enabled") == "false"
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark_session() is spark
    assert spark.range(5).count() == 5
