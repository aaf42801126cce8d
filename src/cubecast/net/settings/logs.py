"""What a node's process writes to standard error."""

import logging
from dataclasses import dataclass
from typing import Literal

from cubecast.net.settings.fields import setting

Level = Literal["debug", "info", "warning", "error"]
LINE = "%(asctime)s %(levelname)s %(name)s: %(message)s"


@dataclass(frozen=True, kw_only=True)
class Logging:
    """What the node says on standard error."""

    level: Level = setting("warning", reload=True)
    """The least important messages that are written."""


def set_up(config: Logging) -> None:
    """For a process that is a node; an application with a node inside arranges its own."""
    root = logging.getLogger("cubecast")
    if not root.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter(LINE))
        root.addHandler(handler)
        root.propagate = False
    root.setLevel(config.level.upper())
