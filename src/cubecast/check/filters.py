"""Does a message match the filter of a subscription? Written for the judge alone, from docs/verification.md.

A filter is read into nested functions of the attributes. A message's topic is an attribute like others.
"""

import json
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, TypeAlias

Attributes: TypeAlias = dict[str, Any]
Predicate: TypeAlias = Callable[[Attributes], bool]

_WORDS: Final = re.compile(
    r"""\s*(?:('(?:[^']|'')*'|"(?:[^"]|"")*")|([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"""
    r"""|(\^=|==|!=|<>|<=|>=|[=<>(),])|([^\W\d][\w.\-]*))"""
)
_DEEPEST: Final = 100


class UnreadableFilterError(ValueError):
    """The text of a filter, or of a message's attributes, means nothing."""


@lru_cache(maxsize=4096)
def predicate(text: str) -> Predicate:
    return _Reader(text).whole()


def attributes_of(text: str | None, topic: str) -> Attributes:
    try:
        found = {} if text is None else json.loads(text)
    except ValueError as error:
        raise UnreadableFilterError(str(error)) from None
    if not isinstance(found, dict):
        raise UnreadableFilterError(f"attributes are a JSON object, not {text!r}")
    return {"topic": topic, **found}


class _Reader:
    """Recursive descent, a function per rule of the grammar."""

    def __init__(self, text: str) -> None:
        self._left: list[tuple[str, Any]] = []
        at, end = 0, len(text.rstrip())
        while at < end:
            match = _WORDS.match(text, at)
            if match is None:
                raise UnreadableFilterError(f"{text[at:]!r} cannot be read")
            self._left.append(_token(*match.groups()))
            at = match.end()
        self._left = [("end", None), *self._left[::-1]]
        self._depth = 0

    def whole(self) -> Predicate:
        found = self._either()
        self._take("end")
        return found

    def _is(self, kind: str, *values: str) -> bool:
        return self._left[-1][0] == kind and (not values or self._left[-1][1] in values)

    def _take(self, kind: str, *values: str) -> Any:
        if not self._is(kind, *values):
            raise UnreadableFilterError(f"{self._left[-1][1]!r} instead of {values or kind}")
        return self._left.pop()[1]

    def _either(self) -> Predicate:
        parts = [self._all()]
        while self._is("word", "or"):
            self._left.pop()
            parts.append(self._all())
        return parts[0] if len(parts) == 1 else lambda given: any(part(given) for part in parts)

    def _all(self) -> Predicate:
        parts = [self._one()]
        while self._is("word", "and"):
            self._left.pop()
            parts.append(self._one())
        return parts[0] if len(parts) == 1 else lambda given: all(part(given) for part in parts)

    def _one(self) -> Predicate:
        if self._is("sign", "("):
            self._left.pop()
            self._depth += 1
            if self._depth > _DEEPEST:
                raise UnreadableFilterError("too many parentheses")
            found = self._either()
            self._take("sign", ")")
            return found
        denied = self._is("word", "not")
        if denied:
            self._left.pop()
        if denied or self._is("word", "exists"):
            self._take("word", "exists")
            self._take("sign", "(")
            name = self._take("name")
            self._take("sign", ")")
            return (lambda given: name not in given) if denied else lambda given: _is_there(given.get(name))
        return self._comparison(self._take("name"))

    def _comparison(self, name: str) -> Predicate:
        if self._is("word", "in", "not"):
            denied = self._left.pop()[1] == "not"
            if denied:
                self._take("word", "in")
            values = self._values()
            if denied:
                return lambda given: _is_there(given.get(name)) and not any(_same(given[name], one) for one in values)
            return lambda given: name in given and any(_same(given[name], one) for one in values)
        sign = self._take("sign", "=", "==", "!=", "<>", "<", "<=", ">", ">=", "^=")
        compare, wanted = _SIGNS[sign], self._take("value")
        return lambda given: _is_there(given.get(name)) and compare(given[name], wanted)

    def _values(self) -> list[Any]:
        self._take("sign", "(")
        values = [self._take("value")]
        while self._is("sign", ","):
            self._left.pop()
            values.append(self._take("value"))
        self._take("sign", ")")
        return values


def _token(text: str | None, number: str | None, sign: str | None, word: str | None) -> tuple[str, Any]:
    if text is not None:
        return "value", text[1:-1].replace(text[0] * 2, text[0])
    if number is not None:
        return "value", int(number) if number.lstrip("+-").isdigit() and len(number) <= 400 else float(number)
    if sign is not None:
        return "sign", sign
    assert word is not None, "one of the four matched"
    if word.lower() in ("true", "false"):
        return "value", word.lower() == "true"
    return ("word", word.lower()) if word.lower() in ("and", "or", "not", "in", "exists") else ("name", word)


def _is_there(value: Any) -> bool:
    """What is not a number is there and matches nothing."""
    return value is not None and value == value


def _same(value: Any, other: Any) -> bool:
    """A boolean is no number, a whole number equals the same one written with a point."""
    return _sort_of(value) == _sort_of(other) and bool(value == other)


def _sort_of(value: Any) -> str:
    return "boolean" if isinstance(value, bool) else "text" if isinstance(value, str) else "number"


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_SIGNS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    **dict.fromkeys(("=", "=="), _same),
    **dict.fromkeys(("!=", "<>"), lambda value, other: not _same(value, other)),
    "<": lambda value, other: _number(value) and value < other,
    "<=": lambda value, other: _number(value) and value <= other,
    ">": lambda value, other: _number(value) and value > other,
    ">=": lambda value, other: _number(value) and value >= other,
    "^=": lambda value, other: isinstance(value, str) and value.startswith(other),
}
