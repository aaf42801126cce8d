"""What a node's process writes to standard error."""

import logging
from dataclasses import dataclass
from typing import Literal

from cubecast.net.observe.log_lines import Identity, JsonLines, Lines, Repeats, TextLines
from cubecast.net.settings.fields import setting

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
