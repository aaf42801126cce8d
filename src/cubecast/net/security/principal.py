"""A principal: a name that a node knows, and what the policy lets it do.

A topic is a pattern that selects itself, so one question serves publications and subscriptions: is everything a pattern
selects selected by one of these grants?
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum

from cubecast.errors import BadInput, NotPermitted
from cubecast.patterns import ONE, REST, check_pattern, is_pattern

Words = tuple[str, ...]
State = frozenset[Words]

MOST_STATES = 2_000
"""A question that needs more is answered with no: operators do not write such grants by hand."""
OTHER = " "
"""A word that no grant names; no word of a pattern holds a space."""
ENDED: Words = ()


def covers(grants: Iterable[Words], pattern: str) -> bool:
    """`pattern` must be valid. Topics kept for machinery (`_inbox.…`) are granted one by one, never by wildcard: their
    names are secrets of those who made them up."""
    if pattern.startswith("_") and is_pattern(pattern):
        return False
    return _Question().holds(tuple(pattern.split(".")), frozenset(grants), is_first=True)


class _Question:
    def __init__(self) -> None:
        self._answers: dict[tuple[Words, State, bool], bool] = {}

    def holds(self, pattern: Words, grants: State, *, is_first: bool = False) -> bool:
        """Do the grants select every continuation that the pattern selects?"""
        if not grants:
            return False
        if not pattern:
            return ENDED in grants
        if grants == {(REST,)} and not is_first:
            return True
        key = pattern, grants, is_first
        if key not in self._answers:
            if len(self._answers) >= MOST_STATES:
                return False
            self._answers[key] = True  # for `>`, which comes back to where it was: unless a rule says otherwise
            self._answers[key] = self._step(pattern, grants, is_first)
        return self._answers[key]

    def _step(self, pattern: Words, grants: State, is_first: bool) -> bool:
        word, rest = pattern[0], pattern[1:]
        if word not in (ONE, REST):
            return self.holds(rest, _after(grants, word, is_first))
        named = {grant[0] for grant in grants if grant} - {ONE, REST}
        if is_first:
            named = {one for one in named if not one.startswith("_")}
        for one in (*sorted(named), OTHER):
            left = _after(grants, one, is_first)
            if not self.holds(rest, left) or (word == REST and not self.holds(pattern, left)):
                return False
        return True


def _after(grants: State, word: str, is_first: bool) -> State:
    """What is left of the grants once the word was read; those that do not allow it are gone."""
    left: set[Words] = set()
    kept = is_first and word.startswith("_")
    for grant in grants:
        if not grant:
            continue
        if grant[0] == word or (grant[0] == ONE and not kept):
            left.add(grant[1:])
        elif grant[0] == REST and not kept:
            left |= {ENDED, (REST,)}
    return frozenset(left)


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
