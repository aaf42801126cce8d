"""Tiny traces written by hand, one file each: expectations, a line of dashes, then every log row by row.

verdict: VIOLATED            the verdict on everything but total order, or on `promises: …`
violated: P7 P8              exactly these, if any
witness: P7 2@3 0:1          property, node@seq and the message of the smallest witness
nodes: 3                     what the header says, by default the number of logs' nodes
---
node 2                       or `node 2.1` for its incarnation 1
subscribe a
cut a 0:3,1:0                last excluded counters
deliver a 0:4                source:counter, or source.incarnation:counter
publish a 2:1 after 0:4      claimed dependencies
receive a 0:5 x2             two messages in one packet
deliver a 0:4 =77            with this digest
@9 quiescent                 a row that claims another place than the next
"""

from dataclasses import dataclass
from pathlib import Path

from cubecast.ids import MessageId
from cubecast.trace.event import Event, Inside, RunInfo
from cubecast.trace.reader import Trace
from support.model_traces import CAUSAL_PROMISES


@dataclass(frozen=True)
class History:
    trace: Trace
    verdict: str
    violated: frozenset[str]
    witness: str | None


def read_history(path: Path) -> History:
    head, _, body = path.read_text().partition("\n---\n")
    lines = [line for line in head.splitlines() if line and not line.startswith("#")]
    expected = {key: value.strip() for key, _, value in (line.partition(":") for line in lines)}
    events = parse_rows(body)
    promises = tuple(expected["promises"].split()) if "promises" in expected else CAUSAL_PROMISES
    nodes = int(expected.get("nodes", len({event.node for event in events})))
    trace = Trace(RunInfo(path.stem, "by hand", promises, nodes=nodes), events)
    violated = frozenset(expected.get("violated", "").split())
    return History(trace, expected["verdict"], violated, expected.get("witness"))


def parse_rows(text: str) -> list[Event]:
    events: list[Event] = []
    node = incarnation = seq = 0
    for line in text.splitlines():
        words = line.partition("#")[0].split()
        if not words:
            continue
        if words[0] == "node":
            node, incarnation = parse_publisher(words[1])
            seq = 0
            continue
        if words[0].startswith("@"):
            seq = int(words.pop(0)[1:])
        events.append(parse_row(Event(node, incarnation, seq, float(len(events)), words[0]), words[1:]))
        seq += 1
    return events


def parse_row(event: Event, words: list[str]) -> Event:
    if words:
        event = event._replace(topic=words.pop(0))
    if event.kind in ("cut", "subscribed"):
        return event._replace(cut=parse_ids(words[0]) if words else None)
    if words:
        source, incarnation, counter = parse_id(words.pop(0))
        event = event._replace(source=source, source_incarnation=incarnation, counter=counter)
    if words and words[0].startswith("="):
        event = event._replace(digest=int(words.pop(0)[1:]))
    if words and words[0] == "after":
        event = event._replace(deps=parse_ids(words[1]))
    elif words and words[0].startswith("x"):
        names = range(counter, counter + int(words[0][1:]))
        event = event._replace(messages=tuple(Inside(source, incarnation, one) for one in names))
    return event


def parse_ids(text: str) -> tuple[MessageId, ...]:
    return tuple(parse_id(one) for one in text.split(","))


def parse_id(text: str) -> MessageId:
    publisher, _, counter = text.partition(":")
    return MessageId(*parse_publisher(publisher), int(counter))


def parse_publisher(text: str) -> tuple[int, int]:
    node, _, incarnation = text.partition(".")
    return int(node), int(incarnation or 0)
