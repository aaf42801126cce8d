"""A principal: a client or node known by name, and what the policy lets them do."""

from collections.abc import Iterable, Mapping
from enum import StrEnum

from cubecast.errors import BadInput, NotPermitted
from cubecast.net.security.coverage import covers
from cubecast.patterns import check_pattern

REMEMBERED = 4096
"""Decisions a principal keeps; with more it begins anew."""
EVERYTHING = ">"


class Action(StrEnum):
    PUBLISH = "publish"
    SUBSCRIBE = "subscribe"
    ADMIN = "admin"
    """Looking at a node and changing how it runs; on the topic `>` unless it is about one topic."""


class Principal:
    """Made by a `Policy`; `may` is what the doors ask. Decisions are remembered, a new policy makes new principals."""

    __slots__ = ("_decisions", "_grants", "is_unrestricted", "name")

    def __init__(
        self, name: str, grants: Mapping[Action, Iterable[str]] | None = None, *, is_unrestricted: bool = False
    ) -> None:
        self.name = name
        self.is_unrestricted = is_unrestricted
        """Clients need not prove who they are here: security is not enabled."""
        found = grants or {}
        self._grants = {
            action: tuple(tuple(check_pattern(pattern).split(".")) for pattern in found.get(action, ()))
            for action in Action
        }
        self._decisions: dict[tuple[str, str], bool] = {}

    def may(self, action: Action | str, topic_or_pattern: str) -> bool:
        """With wildcards only if everything the pattern selects, now or ever, is granted. What is no pattern is not."""
        if self.is_unrestricted:
            return True
        key = str(action), topic_or_pattern
        decision = self._decisions.get(key)
        if decision is None:
            if len(self._decisions) >= REMEMBERED:
                self._decisions.clear()
            decision = self._decisions[key] = self._decide(Action(action), topic_or_pattern)
        return decision

    def check(self, action: Action | str, topic_or_pattern: str = EVERYTHING) -> None:
        """Raises NotPermitted with a line for the one who asked."""
        if not self.may(action, topic_or_pattern):
            raise NotPermitted(refusal(self.name, action, topic_or_pattern))

    def _decide(self, action: Action, pattern: str) -> bool:
        try:
            return covers(self._grants[action], check_pattern(pattern))
        except BadInput:
            return False

    def __repr__(self) -> str:
        return f"<Principal {self.name}>"


def refusal(name: str, action: Action | str, topic_or_pattern: str) -> str:
    match Action(action):
        case Action.PUBLISH:
            return f"{name} may not publish on {topic_or_pattern}"
        case Action.SUBSCRIBE:
            return f"{name} may not subscribe to {topic_or_pattern}, or not to all of it"
        case Action.ADMIN:
            return f"{name} may not look after this node" + (
                "" if topic_or_pattern == EVERYTHING else f"'s {topic_or_pattern}"
            )


ANYBODY = Principal("anybody", is_unrestricted=True)
"""Everybody, where security is not enabled."""
