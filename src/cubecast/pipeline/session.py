"""The one place that starts a JVM and makes a Spark session, with every option stated."""

import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from cubecast.errors import BadInput

# Starts Spark's JVM with one line of its standard error left out.
#
# Spark's launcher asks for an incubator module, and Java announces that on every start, before any logging can be set
# up. There is no option against it, and it is nobody's fault or concern.

LEFT_OUT = b"WARNING: Using incubator modules: jdk.incubator.vector"
STANDARD_ERROR = 2


def quiet_gateway(conf: SparkConf) -> Any:
    """To make a SparkContext with."""
    read_end, write_end = os.pipe()
    threading.Thread(target=pass_on, args=(read_end, STANDARD_ERROR), name="spark-stderr", daemon=True).start()
    try:
        return launch_gateway(conf, popen_kwargs={"stderr": write_end})
    finally:
        os.close(write_end)


def pass_on(read_end: int, to: int) -> None:
    """Line by line until the JVM ends, or there is nobody to tell any more."""
    with open(read_end, "rb") as lines, suppress(OSError):
        for line in lines:
            if line.strip() != LEFT_OUT:
                os.write(to, line)


OLDEST_JAVA = 17
SUBMITTED = "PYSPARK_GATEWAY_PORT"
"""Set by spark-submit for the Python program it starts."""
JAVA_HINT = "install one (for example openjdk-17-jre-headless), or set JAVA_HOME to one you have"
LOG_CONFIG = Path(__file__).with_name("log4j2.properties")
ATTEMPTS_PER_TASK = 4
"""Plain `local[2]` allows no retry, so one killed Python worker would fail the job."""
LIGHT_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""For a JVM that only hands out tasks: it compiles cheaply and collects alone, and leaves the cores to the work."""


def spark_session(master: str | None = None, conf: Iterable[tuple[str, str]] = (), jvm: str = "") -> SparkSession:
    """The running session, or a new one on `master` (default: all cores here) with `conf` on top of our options.

    A session that exists is taken as it is. Under spark-submit, what it was told wins over our options, and `master`
    and `conf` over that; so does what spark-defaults.conf says. `jvm` are options for the driver's Java.
    """
    active = SparkSession.getActiveSession() or SparkSession._instantiatedSession
    if active is not None:
        return active
    check_java(os.environ)
    given = given_options()
    master = master or given.get("spark.master") or local_master()
    if on_this_machine(master):
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    options = {**session_options(master, jvm), **given, **dict(conf)}
    try:
        return _start(SparkConf().setAppName("cubecast").setAll(list(options.items())).setMaster(master))
    except (PySparkException, RuntimeError) as error:
        raise BadInput(f"Spark does not start on master {master!r}: {first_line(error)}") from None
    except Exception as error:
        # Py4J wraps what the JVM threw in its own classes, which are not ours to import here.
        if type(error).__module__.startswith("py4j"):
            raise BadInput(f"Spark does not start on master {master!r}: {first_line(error)}") from None
        raise


def given_options() -> dict[str, str]:
    """What the user told Spark outside of us: spark-submit's arguments, or spark-defaults.conf."""
    if SUBMITTED in os.environ:
        SparkContext._ensure_initialized()
        return dict(SparkConf().getAll())
    home = os.environ.get("SPARK_HOME")
    place = os.environ.get("SPARK_CONF_DIR") or (f"{home}/conf" if home else None)
    return default_options(Path(place) / "spark-defaults.conf") if place else {}


def default_options(path: Path) -> dict[str, str]:
    """A file of `key value`, `key=value` or `key: value` lines, as Java's properties are."""
    if not path.is_file():
        return {}
    lines = (line.strip() for line in path.read_text().splitlines())
    pairs = (re.split(r"\s*[=:\s]\s*", line, maxsplit=1) for line in lines if line and line[0] not in "#!")
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2 and pair[0].startswith("spark.")}


def _start(conf: SparkConf) -> SparkSession:
    if SparkContext._gateway is None:  # else the JVM of spark-submit, or of an earlier session, serves
        SparkContext(conf=conf, gateway=quiet_gateway(conf))
    return SparkSession.builder.config(conf=conf).getOrCreate()


def session_options(master: str, jvm: str = "") -> dict[str, str]:
    """Everything we ask of Spark that is not its default; the reasons stand beside each."""
    options = {
        "spark.ui.enabled": "false",  # no port is opened unless asked for with --conf
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "true",
        "spark.sql.adaptive.enabled": "true",  # joins the tiny shuffles of small traces; replay itself never shuffles
        "spark.driver.memory": "2g",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={LOG_CONFIG.as_uri()} {jvm}".rstrip(),
        "spark.task.maxFailures": str(ATTEMPTS_PER_TASK),
    }
    if on_this_machine(master):
        options["spark.driver.host"] = options["spark.driver.bindAddress"] = "127.0.0.1"
        options["spark.sql.shuffle.partitions"] = str(max(2, cores()))
    return options


def local_master() -> str:
    return f"local[{cores()},{ATTEMPTS_PER_TASK}]"


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def on_this_machine(master: str) -> bool:
    return master.startswith("local")


def check_java(environment: Mapping[str, str]) -> None:
    """Spark's launcher fails with a page of text; say in one line what is missing."""
    home = environment.get("JAVA_HOME")
    java = shutil.which("java", path=str(Path(home) / "bin") if home else environment.get("PATH"))
    if java is None:
        where = f"in JAVA_HOME={home}" if home else "on the PATH"
        raise BadInput(f"Spark needs Java {OLDEST_JAVA} or newer and there is none {where}: {JAVA_HINT}")
    answer = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    version = java_version(answer.stderr + answer.stdout)
    if version is None:
        raise BadInput(f"Spark needs Java {OLDEST_JAVA} or newer; {java} does not say its version: {JAVA_HINT}")
    if version < OLDEST_JAVA:
        raise BadInput(f"Spark needs Java {OLDEST_JAVA} or newer; {java} is Java {version}: {JAVA_HINT}")


def java_version(text: str) -> int | None:
    """The major version in what `java -version` prints; "1.8.0" is Java 8."""
    found = re.search(r'version "(?:1\.)?(\d+)', text)
    return int(found.group(1)) if found else None


def first_line(error: BaseException) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
