"""Topics and the patterns that select them.

A topic is words joined by dots: `orders.eu.new`. In a subscription `*` stands for exactly one word and a final `>`
for one or more. Words that begin with an underscore at the front (`_inbox.…`) are kept for machinery: no wildcard in
first place matches them, so a subscription to `>` sees what applications say and not the answers on their way to
somebody else.
"""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TypeAlias

from cubecast.errors import BadInput

MAX_TOPIC_BYTES = 255
ONE, REST = "*", ">"

_Tree: TypeAlias = dict[str, "_Tree"]
_END = ""
"""No word: here a pattern ends."""
_word = re.compile(r"[^\s.*>\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]+")
"""Nothing that steers a terminal, turns the direction of writing or cannot be seen: two topics look different."""


@lru_cache(maxsize=4096)
def check_topic(topic: str) -> str:
    """The topic itself, or BadInput with the reason."""
    for word in _words(topic, "topic"):
        if word in (ONE, REST):
            raise BadInput(f"topic {topic!r}: wildcards select topics in subscriptions, nothing is published to them")
        _check_word(word, topic, "topic")
    return topic


def check_pattern(pattern: str) -> str:
    """The pattern itself, or BadInput with the reason. Every topic is a pattern."""
    words = _words(pattern, "pattern")
    for position, word in enumerate(words, 1):
        if word == REST and position < len(words):
            raise BadInput(f"pattern {pattern!r}: '>' stands for all the rest, so nothing follows it")
        if word not in (ONE, REST):
            _check_word(word, pattern, "pattern")
    return pattern


def is_pattern(text: str) -> bool:
    """Does it have wildcards, that is, may it select more than the one topic it spells?"""
    return ONE in text or REST in text


def matcher(pattern: str) -> Callable[[str], bool]:
    """A fast test whether a valid topic is selected."""
    check_pattern(pattern)
    if not is_pattern(pattern):
        return pattern.__eq__
    words = [_expression(word, position) for position, word in enumerate(pattern.split("."))]
    fullmatch = re.compile(r"\.".join(words)).fullmatch
    return lambda topic: fullmatch(topic) is not None


def covers(wide: str, narrow: str) -> bool:
    """Does one pattern select everything the other one selects?"""
    ours, theirs = wide.split("."), narrow.split(".")
    if ours[0] in (ONE, REST) and theirs[0].startswith("_"):
        return False
    for position, word in enumerate(ours):
        if word == REST:
            return len(theirs) > position
        if position >= len(theirs) or theirs[position] == REST or word not in (ONE, theirs[position]):
            return False
    return len(ours) == len(theirs)


class Selection:
    """Does one of these patterns select a topic? It never changes, so a recorded one asks the same later.

    Patterns share their first words in a tree, so that many of them cost a topic hardly more than one.
    """

    def __init__(self, patterns: Sequence[str]) -> None:
        self.patterns = tuple(patterns)
        self._tree: _Tree = {}
        for pattern in self.patterns:
            branch = self._tree
            for word in check_pattern(pattern).split("."):
                branch = branch.setdefault(word, {})
            branch[_END] = {}

    def __call__(self, topic: str) -> bool:
        branches = [self._tree]
        is_open = not topic.startswith("_")  # to wildcards, which do not select machinery
        for word in topic.split("."):
            if is_open and any(REST in branch for branch in branches):
                return True
            ways = (word, ONE) if is_open else (word,)
            branches = [branch[way] for branch in branches for way in ways if way in branch]
            is_open = True
        return any(_END in branch for branch in branches)


def _expression(word: str, position: int) -> str:
    first = "(?!_)" if position == 0 else ""
    if word == ONE:
        return first + r"[^.]+"
    return first + r".+" if word == REST else re.escape(word)


def _words(text: str, what: str) -> list[str]:
    if not isinstance(text, str):
        raise BadInput(f"a {what} is text, not {type(text).__name__}")
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise BadInput(f"{what} {text!r} is not valid Unicode") from None
    if not 0 < size <= MAX_TOPIC_BYTES:
        raise BadInput(f"a {what} has 1 to {MAX_TOPIC_BYTES} bytes, this one {size}")
    return text.split(".")


def _check_word(word: str, text: str, what: str) -> None:
    if not word:
        raise BadInput(f"{what} {text!r} has an empty word: words are joined by single dots")
    if not _word.fullmatch(word):
        raise BadInput(
            f"{what} {text!r}: {word!r} holds a space, a character that is not seen or turns others round, "
            "or a wildcard among other characters"
        )
