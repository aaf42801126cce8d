"""Histories written as the journals of running nodes, as far as each had come at some moment."""

import json
import random
from collections import defaultdict
from pathlib import Path

from cubecast.trace.event import Event
from cubecast.trace.journal import unfolded
from cubecast.trace.reader import Trace
from cubecast.trace.schema import Kind


def line_of(event: Event) -> list | None:
    """None for a row that no line of a journal says."""
    told = [] if event.digest is None else [[event.digest]]
    message = [event.source, event.source_incarnation, event.counter]
    match event.kind:
        case Kind.START if event.source is None:
            return [Kind.START, event.time, event.incarnation]
        case Kind.START:
            return [Kind.START, event.time, event.incarnation, event.source_incarnation]
        case Kind.PUBLISH:
            return [Kind.PUBLISH, event.time, event.topic, event.counter, 1, event.deps or (), *told]
        case Kind.DELIVER:
            return [Kind.DELIVER, event.time, event.topic, *message, 1, *told]
        case Kind.ACKNOWLEDGED:
            return [Kind.ACKNOWLEDGED, event.time, event.topic, event.counter]
        case Kind.FAILED:
            return [Kind.FAILED, event.time, event.topic, event.counter, 1, event.detail]
        case Kind.GAP:
            return [Kind.GAP, event.time, event.topic, [message], event.detail]
        case Kind.CUT | Kind.SUBSCRIBED:
            return [event.kind, event.time, event.topic, event.cut or ()]
        case Kind.SUBSCRIBE | Kind.UNSUBSCRIBE | Kind.UNSUBSCRIBED:
            return [event.kind, event.time, event.topic]
        case Kind.STOP | Kind.CRASH | Kind.QUIESCENT:
            return [event.kind, event.time]
    return None


class Growing:
    """A trace's journals, which grow."""

    def __init__(self, trace: Trace, directory: Path) -> None:
        self.info, self.directory = trace.info, directory
        self.rows: dict[tuple[int, int], list[Event]] = defaultdict(list)
        for event in trace.events:
            if line_of(event) is not None:
                log = self.rows[event.node, event.incarnation]
                log.append(event._replace(seq=len(log)))
        self.written = dict.fromkeys(self.rows, 0)

    def grow(self, upto: dict[tuple[int, int], int]) -> None:
        for log, rows in self.rows.items():
            lines = [json.dumps(line_of(row)) + "\n" for row in rows[self.written[log] : upto[log]]]
            self.written[log] = max(self.written[log], upto[log])
            if lines:
                with self._path(log).open("a") as file:
                    file.writelines(lines)

    def _path(self, log: tuple[int, int]) -> Path:
        return self.directory / f"node-{log[0]:05d}-{log[1]:05d}-aaaaaaaa.jsonl"

    def somewhere(self, draw: random.Random) -> dict[tuple[int, int], int]:
        """A moment: a prefix of each log, later lives only of those that ended."""
        share = draw.random()
        return {
            log: len(rows)
            if any(other[0] == log[0] and other[1] > log[1] for other in self.rows)
            else draw.randint(int(share * len(rows)), len(rows))
            for log, rows in self.rows.items()
        }

    def trace(self) -> Trace:
        """What the journals say by now."""
        events = []
        for node in sorted({log[0] for log in self.rows}):
            files = [
                (self._path(log), [line_of(row) for row in self.rows[log][: self.written[log]]])
                for log in sorted(self.rows)
                if log[0] == node and self.written[log]
            ]
            events += unfolded(node, [(path, json.loads(json.dumps(lines))) for path, lines in files])
        return Trace(self.info, events)
