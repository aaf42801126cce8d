"""New settings for a living node: all of a good file that may change, nothing of a broken one."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, is_dataclass, replace
from typing import Any, Generic, TypeVar

from cubecast.errors import BadInput
from cubecast.net.settings.fields import leaves, value_of
from cubecast.net.settings.resolve import Resolved

log = logging.getLogger(__name__)

Config = TypeVar("Config")
Prepare = Callable[[Any], Callable[[], None]]
"""Looks at a new configuration, raises BadInput when it cannot work, and returns what makes it take effect."""


@dataclass(frozen=True)
class Reloaded:
    changed: list[str]
    left: list[str]
    """Keys that are different now and stay as they were until the node is started again."""


class Reloader(Generic[Config]):
    """`prepare` is asked every time, even when no setting changed: the files that settings name may have."""

    def __init__(
        self, kind: type[Config], current: Config, read: Callable[[], Resolved[Config]], prepare: list[Prepare]
    ) -> None:
        self._kind: type = kind
        self.current = current
        self._read = read
        self._prepare = prepare

    def reload(self) -> Reloaded | None:
        """What became of it, said in the log; None when something is wrong and nothing was changed."""
        take_effect = self.prepare()
        return None if take_effect is None else take_effect()

    def prepare(self) -> Callable[[], Reloaded] | None:
        """Read everything, which takes a while and may be done in a thread; what makes it count is returned."""
        try:
            wanted = self._read().config
            different = [
                leaf for key, leaf in leaves(self._kind).items() if value_of(wanted, key) != value_of(self.current, key)
            ]
            changed = [leaf.key for leaf in different if leaf.limits.reload]
            left = [leaf.key for leaf in different if not leaf.limits.reload]
            new = taking(self.current, wanted, changed)
            ready = [prepare(new) for prepare in self._prepare]
        except BadInput as error:
            log.error("the settings were not reloaded, and nothing changed: %s", error)
            return None

        def take_effect() -> Reloaded:
            for one in ready:
                one()
            self.current = new
            if left:
                log.warning("only a restart takes over %s; everything else is as the settings say", ", ".join(left))
            log.info("the settings were reloaded; changed: %s", ", ".join(changed) or "nothing")
            return Reloaded(changed, left)

        return take_effect


def taking(current: Config, wanted: Config, keys: list[str]) -> Config:
    """The current configuration with some keys as in the wanted one."""
    changes: dict[str, Any] = {}
    for name in dict.fromkeys(key.partition(".")[0] for key in keys):
        ours, theirs = getattr(current, name), getattr(wanted, name)
        inside = [key.partition(".")[2] for key in keys if key.startswith(f"{name}.")]
        both = is_dataclass(ours) and is_dataclass(theirs)
        changes[name] = taking(ours, theirs, inside) if inside and both else theirs
    return replace(current, **changes) if changes else current  # type: ignore[type-var]
