"""The reference checker: a trace in, a verdict per promise out. docs/verification.md defines every predicate.

It knows the trace and nothing else: no protocol, no simulator, no header is believed.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from typing import Final

from cubecast.check import completeness, continuity, cuts, delivery, headers, order, total_order
from cubecast.check.facts import Facts, gather
from cubecast.check.history import Log, logs_of
from cubecast.check.measure import measure
from cubecast.check.premises import premises
from cubecast.check.verdict import Report, Verdict, Violation
from cubecast.check.well_formed import read_topics, repeated_places
from cubecast.errors import BadInput, TruncatedTraceError
from cubecast.trace.event import RunInfo
from cubecast.trace.reader import Trace, read_info, read_trace
from cubecast.trace.schema import NEEDS_VERSION, PROPERTIES, WELL_FORMED, Kind

PREDICATES: Final[dict[str, Callable[[Facts], Iterable[Violation]]]] = {
    "K1": cuts.cut_names_published,
    "K2": cuts.cut_is_closed,
    "K3": cuts.cut_is_honest,
    "P1": delivery.no_creation,
    "P1b": delivery.right_bytes,
    "P2": delivery.no_duplication,
    "P3": completeness.validity,
    "P4": completeness.agreement,
    "P4u": completeness.uniform_agreement,
    "P5": order.fifo,
    "P6": order.gapless_fifo,
    "P7": order.causal,
    "P8": order.gapless_causal,
    "P9a": total_order.same_order,
    "P9b": total_order.orders_fit_together,
    "P9c": total_order.no_holes,
    "P10": delivery.once_per_identity,
    "P11": delivery.within_subscription,
    "P12": completeness.no_permanent_hold,
    "P13": headers.headers_are_sound,
    "P3b": completeness.own_messages,
    "P14": continuity.no_silent_loss,
    "P15": continuity.acknowledged_is_kept,
    "P16": continuity.publisher_knows,
}
INHERITS: Final = {"P8": ("K2",), "P10": ("P1", "P2", "P3", "P4")}
"""Promises that contain others."""


def check_directory(directory: Path, properties: Sequence[str] | None = None) -> Report:
    """Judge the trace in a directory. Damaged data gives UNKNOWN; what is not a trace at all raises TraceError."""
    info = read_info(directory)
    wanted = _wanted(info, properties)
    try:
        return check_trace(read_trace(directory), wanted)
    except TruncatedTraceError as error:
        return Report(info.run, dict.fromkeys(wanted, Verdict.UNKNOWN), (), unknown_because=(str(error),))


def check_trace(trace: Trace, properties: Sequence[str] | None = None) -> Report:
    """Judge a trace in memory, by default on what its header promises; K0 is always judged."""
    info, events = trace
    kinds = Counter(map(attrgetter("kind"), events))
    wanted = _wanted(info, properties)
    logs, repeated = logs_of(events)
    broken = repeated_places(repeated)
    found: dict[str, list[Violation]] = {}
    if not broken:
        topics, broken = read_topics(logs)
    missing = _missing(info, logs)
    if not broken:
        facts, broken = gather(logs, topics)
    occasions: dict[str, int] = {}
    if not broken:
        found = _judge(wanted, facts)
        if not continuity.PREMISED.isdisjoint(wanted):
            occasions = continuity.continuity_of(facts).premises
    measured = {} if broken else measure(facts, info.measured)
    unjudged = "the trace contradicts itself" if broken else None
    undecided = [name for name in wanted if NEEDS_VERSION.get(name, 0) > info.schema_version]
    return Report(
        info.run,
        {"K0": _verdict(broken, bool(missing))}
        | {name: _verdict(found.get(name, ()), bool(missing or broken)) for name in wanted if name != "K0"}
        | dict.fromkeys(undecided, Verdict.UNKNOWN),
        sorted(
            (v for violations in (broken, *found.values()) for v in violations if v.certain or not missing), key=_size
        ),
        deliveries=kinds[Kind.DELIVER],
        messages=kinds[Kind.PUBLISH],
        measured=measured,
        premises={name: count for name, count in (premises(logs) | occasions).items() if name in wanted},
        unknown_because=(
            *missing,
            *([unjudged] if unjudged else []),
            *(f"traces of version {info.schema_version} do not tell what {name} needs" for name in undecided),
        ),
    )


def _wanted(info: RunInfo, properties: Sequence[str] | None) -> list[str]:
    asked = info.promises if properties is None else properties
    known = (*WELL_FORMED, *PROPERTIES)
    strange = [name for name in asked if name not in known]
    if strange:
        raise BadInput(f"there is no property {', '.join(strange)}; choose from {', '.join(known)}")
    return [name for name in known if name == "K0" or name in asked]


def _missing(info: RunInfo, logs: Sequence[Log]) -> list[str]:
    """Why the trace is incomplete, a line each."""
    nodes = {log.node for log in logs}
    reasons = [] if logs else ["the trace has no rows"]
    if info.nodes is not None and len(nodes) < info.nodes:
        reasons.append(f"rows of {len(nodes)} nodes instead of {info.nodes}")
    return reasons + [
        f"the log of node {log.node}, incarnation {log.incarnation}, is incomplete after {len(log.rows)} rows"
        for log in logs
        if not log.whole
    ]


def _judge(wanted: Sequence[str], facts: Facts) -> dict[str, list[Violation]]:
    found: dict[str, list[Violation]] = {}
    for promise in wanted:
        for name in (promise, *INHERITS.get(promise, ())):
            if name in PREDICATES and name not in found:
                found[name] = list(PREDICATES[name](facts))
    own = {name: violations for name, violations in found.items() if name in wanted}
    return {name: violations + _inherited(name, found) for name, violations in own.items()}


def _inherited(name: str, found: dict[str, list[Violation]]) -> list[Violation]:
    return [replace(violation, promise=name) for other in INHERITS.get(name, ()) for violation in found[other]]


def _verdict(violations: Iterable[Violation], incomplete: bool) -> Verdict:
    if any(violation.certain or not incomplete for violation in violations):
        return Verdict.VIOLATED
    return Verdict.UNKNOWN if incomplete else Verdict.VALID


def _size(violation: Violation) -> tuple[int, int, int, int]:
    return violation.size
