"""What a node's process writes to standard error: one event per line, text for people or JSON for programs.

An event is a fixed sentence with a few facts; repeats are counted instead of written. Facts with names (`peer`,
`topic`, `client`) are given as `extra` and are fields of the JSON line; nothing else of a record is, so payloads and
secrets have no way in. Part of it is text of others (a reason, a client's name): it cannot end the line, nor steer the
terminal that shows it.
"""

import json
import logging
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from time import monotonic
from typing import Any, Literal

from cubecast.escaping import visible, visible_json, visible_lines
from cubecast.net.settings.fields import setting

FACTS = ("peer", "topic", "client", "repeated")
"""Attributes of a record that are fields of its line."""
BURST = 5
"""So many of a kind are written in a row ..."""
WINDOW = 10.0
"""... and then one in so many seconds, with the number of those that were not."""
MOST_KINDS = 1024

Identity = Callable[[], Mapping[str, Any]]


def unnamed() -> Mapping[str, Any]:
    return {}


class Lines(logging.Formatter):
    """`identity` says which node and incarnation speak, at the moment of speaking."""

    def __init__(self, identity: Identity = unnamed) -> None:
        super().__init__()
        self.identity = identity

    def fields(self, record: logging.LogRecord) -> dict[str, Any]:
        facts = {name: getattr(record, name) for name in FACTS if getattr(record, name, None) is not None}
        return {**self.identity(), **facts}

    def time(self, record: logging.LogRecord) -> str:
        return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def trouble(self, record: logging.LogRecord) -> str:
        return "" if not record.exc_info else self.formatException(record.exc_info)


class TextLines(Lines):
    def format(self, record: logging.LogRecord) -> str:
        facts = "".join(f" {name}={value}" for name, value in self.fields(record).items())
        text = visible(f"{self.time(record)} {record.levelname} {record.name}: {record.getMessage()}{facts}")
        trouble = visible_lines(self.trouble(record))
        return f"{text}\n{trouble}" if trouble else text


class JsonLines(Lines):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": self.time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
            **self.fields(record),
        }
        trouble = self.trouble(record)
        found = line | {"trouble": trouble} if trouble else line
        return visible_json(json.dumps(found, ensure_ascii=False, default=str))


class Repeats(logging.Filter):
    """Lets the first few of a kind pass and then one in a while. A kind is a sentence about one peer and topic."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._kinds: OrderedDict[tuple[Any, ...], list[float]] = OrderedDict()
        """Per kind: when its window began, how many passed in it, how many did not."""

    def filter(self, record: logging.LogRecord) -> bool:
        now = self._clock()
        kind = (record.name, record.msg, getattr(record, "peer", None), getattr(record, "topic", None))
        seen = self._kinds.setdefault(kind, [now, 0, 0])
        self._kinds.move_to_end(kind)
        if len(self._kinds) > MOST_KINDS:
            self._kinds.popitem(last=False)
        begun, passed, left_out = seen
        if now - begun >= WINDOW:
            if left_out:
                record.repeated = int(left_out)
                seen[:] = [now, BURST, 0]
            else:
                seen[:] = [now, 1, 0]
            return True
        if passed < BURST:
            seen[1] += 1
            return True
        seen[2] += 1
        return False


Level = Literal["debug", "info", "warning", "error"]
Format = Literal["text", "json"]
FORMATS: dict[str, type[Lines]] = {"text": TextLines, "json": JsonLines}


@dataclass(frozen=True, kw_only=True)
class Logging:
    """What the node says on standard error."""

    level: Level = setting("warning", reload=True)
    """The least important messages that are written."""
    format: Format = setting("text", reload=True)
    """Lines for people, or a JSON object per line with time, level, event, node, incarnation, peer and topic."""


def set_up(config: Logging, identity: Identity | None = None) -> None:
    """For a process that is a node; an application with a node inside arranges its own. Without an `identity` the one
    given before is kept."""
    root = logging.getLogger("cubecast")
    if not root.handlers:
        written = logging.StreamHandler()
        written.addFilter(Repeats())
        root.addHandler(written)
        root.propagate = False
        logging.getLogger().addHandler(written)  # what libraries say is written in the same lines
        logging.captureWarnings(True)
    for handler in root.handlers:
        former = handler.formatter
        if identity is None and isinstance(former, Lines):
            identity = former.identity
        lines = FORMATS[config.format]
        handler.setFormatter(lines() if identity is None else lines(identity))
    root.setLevel(config.level.upper())
