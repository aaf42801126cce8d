"""A circle in happened-before is told as it runs, and who only waits for it is not blamed; by both judges alike."""

from cubecast.check import check_trace
from cubecast.trace.event import Event, RunInfo
from cubecast.trace.reader import Trace
from support.without_spark import judge

CIRCLE = (
    "happened-before runs in a circle: "
    "1.0 delivers (2, 0, 1) in row 1 and publishes (1, 0, 1) in row 2; "
    "2.0 delivers (1, 0, 1) in row 1 and publishes (2, 0, 1) in row 2"
)


def log(node: int, *rows: tuple[str, tuple[int, int, int] | None]) -> list[Event]:
    ids = [message or (None, None, None) for _, message in rows]
    return [
        Event(node, 0, seq, 0.0, kind, None if kind == "quiescent" else "t", *named)
        for seq, ((kind, _), named) in enumerate(zip(rows, ids, strict=True))
    ]


def circle_with_a_bystander() -> Trace:
    """1 and 2 deliver each other's message before they publish; 0 delivers from the circle and publishes after it."""
    one, two = (1, 0, 1), (2, 0, 1)
    events = [
        *log(0, ("subscribe", None), ("deliver", one), ("publish", (0, 0, 1)), ("quiescent", None)),
        *log(1, ("subscribe", None), ("deliver", two), ("publish", one), ("quiescent", None)),
        *log(2, ("subscribe", None), ("deliver", one), ("publish", two), ("quiescent", None)),
        *log(3, ("subscribe", None), ("deliver", (0, 0, 1)), ("quiescent", None)),
    ]
    return Trace(RunInfo("circle", "by hand", ("P1",), nodes=4), events)


def test_the_reference_checker_prints_the_circle():
    report = check_trace(circle_with_a_bystander())
    assert [(one.node, one.seq, one.reason) for one in report.violations] == [(1, 1, CIRCLE), (2, 1, CIRCLE)]


def test_the_verifier_prints_the_same():
    found = judge(circle_with_a_bystander(), ("K0", "P1"))
    assert [(one["node"], one["seq"], one["reason"]) for one in found.witnesses] == [(1, 1, CIRCLE), (2, 1, CIRCLE)]
