"""Both judges on the same traces: the reference checker in this process, the Spark verifier in one call for all."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pyspark.sql import SparkSession

from cubecast.check import Report, check_trace
from cubecast.pipeline.verdict import RunVerdict, Verification
from cubecast.pipeline.verify import verify
from cubecast.trace.reader import Trace
from cubecast.trace.writer import TraceWriter
from support.model_traces import ALL_PROMISES


def write_trace(directory: Path, trace: Trace) -> Path:
    with TraceWriter(directory, trace.info) as writer:
        writer.write_all(trace.events)
    return directory


def write_all(directory: Path, traces: Sequence[Trace]) -> list[Path]:
    return [
        write_trace(directory / f"{number:05d}", Trace(replace(info, run=f"run-{number:05d}"), events))
        for number, (info, events) in enumerate(traces)
    ]


def disagreements(
    spark: SparkSession | None, directory: Path, traces: Sequence[Trace], properties: Sequence[str] = ALL_PROMISES
) -> list[str]:
    """Where the two differ: verdicts of properties, and the rows of the smallest witnesses."""
    directories = write_all(directory, traces)
    verification: Verification = verify(spark, directories, properties)
    differences = []
    for number, (trace, run) in enumerate(zip(traces, verification.runs, strict=True)):
        expected = check_trace(trace, properties)
        differences += [f"trace {number}: {line}" for line in differences_between(expected, run)]
    return differences


def differences_between(expected: Report, found: RunVerdict) -> list[str]:
    ours = {name: one.verdict for name, one in found.properties.items()}
    theirs = {name: str(verdict) for name, verdict in expected.verdicts.items()}
    lines = [
        f"{name} is {ours[name]}, the reference says {theirs[name]}" for name in theirs if ours[name] != theirs[name]
    ]
    smallest = {}
    for violation in reversed(expected.violations):
        smallest[violation.promise] = (violation.seq, violation.node, violation.incarnation)
    mine = {}
    for finding in reversed(found.witnesses):
        mine[finding["property"]] = (finding["seq"], finding["node"], finding["incarnation"])
    lines += [
        f"witness of {name} is {mine.get(name)}, the reference says {place}"
        for name, place in smallest.items()
        if name in mine and mine[name] != place
    ]
    if (expected.deliveries, expected.messages) != (found.deliveries, found.messages):
        lines.append(f"counts {(found.deliveries, found.messages)} against {(expected.deliveries, expected.messages)}")
    return lines
