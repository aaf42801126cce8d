"""Starts Spark's JVM with one line of its standard error left out.

Spark's launcher asks for an incubator module, and Java announces that on every start, before any logging can be set up.
There is no option against it, and it is nobody's fault or concern.
"""

import os
import threading
from contextlib import suppress
from typing import Any

from pyspark import SparkConf
from pyspark.java_gateway import launch_gateway

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
