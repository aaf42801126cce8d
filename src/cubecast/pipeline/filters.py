"""Which messages match the filter of a subscription: the Spark judge's own reading of docs/verification.md.

A filter becomes a list of steps in reverse Polish order (terms, `and`, `or`), run over the attributes of each distinct
message once.
"""

import json
import math
import operator
import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

_LEXEME = re.compile(
    r"\s*(?P<lexeme>'(?:''|[^'])*'|\"(?:\"\"|[^\"])*\"|[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?"
    r"|[\^=!<>]=|<>|[=<>(),]|[^\W\d][\w.-]*)"
)
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_BINDING = {"or": 1, "and": 2}


class Term(NamedTuple):
    name: str
    sign: str
    """=, !=, <, <=, >, >=, ^=, in, not in, exists, or not exists."""
    values: tuple[Any, ...] = ()

    def holds(self, attributes: dict[str, Any]) -> bool:
        if self.sign == "not exists":
            return self.name not in attributes
        value = attributes.get(self.name)
        if value is None or (isinstance(value, float) and math.isnan(value)):
            return False
        if self.sign == "exists":
            return True
        if self.sign in _COMPARE:
            return type(value) in (int, float) and _COMPARE[self.sign](value, self.values[0])
        if self.sign == "^=":
            return isinstance(value, str) and value.startswith(self.values[0])
        among = any(value == one and _kind(value) is _kind(one) for one in self.values)
        return among if self.sign in ("=", "in") else not among


def _kind(value: Any) -> type:
    return float if type(value) is int else type(value)


def matching(text: str, attributes: Sequence[str], topic: str) -> npt.NDArray[np.bool_]:
    """Which of these attributes (JSON, each once) the filter matches. ValueError where either means nothing."""
    steps = compiled(text)
    found = np.zeros(len(attributes), bool)
    for place, told in enumerate(attributes):
        given = json.loads(told) if told else {}
        if not isinstance(given, dict):
            raise ValueError(f"attributes are a JSON object, not {told!r}")
        found[place] = _run(steps, {"topic": topic, **given})
    return found


def is_filter(text: str) -> bool:
    try:
        compiled(text)
    except ValueError:
        return False
    return True


def are_attributes(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def _run(steps: Sequence[Term | str], attributes: dict[str, Any]) -> bool:
    stack: list[bool] = []
    for step in steps:
        if isinstance(step, Term):
            stack.append(step.holds(attributes))
        else:
            right, left = stack.pop(), stack.pop()
            stack.append((left and right) if step == "and" else (left or right))
    return stack.pop()


@lru_cache(maxsize=4096)
def compiled(text: str) -> tuple[Term | str, ...]:
    """The shunting-yard algorithm over terms. ValueError where the text is no filter."""
    steps: list[Term | str] = []
    waiting: list[str] = []
    lexemes = _lexemes(text)
    is_term_next = True
    while lexemes:
        word = lexemes[-1].lower()
        if is_term_next and word != "(":
            steps.append(_term(lexemes))
            is_term_next = False
            continue
        lexemes.pop()
        if is_term_next:
            waiting.append("(")
        elif word == ")":
            while (last := _last(waiting)) != "(":
                steps.append(last)
        elif word in _BINDING:
            while waiting and waiting[-1] != "(" and _BINDING[waiting[-1]] >= _BINDING[word]:
                steps.append(waiting.pop())
            waiting.append(word)
            is_term_next = True
        else:
            raise ValueError(f"{word!r} stands where 'and', 'or' or ')' should")
    if is_term_next or "(" in waiting:
        raise ValueError("the filter ends too early")
    return (*steps, *waiting[::-1])


def _last(waiting: list[str]) -> str:
    if not waiting:
        raise ValueError("')' closes nothing")
    return waiting.pop()


def _lexemes(text: str) -> list[str]:
    """The last one first."""
    found, at = [], 0
    while at < len(text.rstrip()):
        match = _LEXEME.match(text, at)
        if match is None:
            raise ValueError(f"{text[at:]!r} cannot be read")
        found.append(match["lexeme"])
        at = match.end()
    return found[::-1]


def _term(lexemes: list[str]) -> Term:
    first = _next(lexemes)
    if first.lower() in ("exists", "not"):
        if first.lower() == "not" and _next(lexemes).lower() != "exists":
            raise ValueError("'not' without 'exists'")
        opening, name, closing = (_next(lexemes) for _ in range(3))
        if (opening, closing) != ("(", ")"):
            raise ValueError("'exists' takes a name in parentheses")
        return Term(name, "exists" if first.lower() == "exists" else "not exists")
    if not re.match(r"[^\W\d]", first) or first.lower() in ("and", "or", "in", "true", "false"):
        raise ValueError(f"{first!r} is no name of an attribute")
    sign = _next(lexemes).lower()
    if sign in ("in", "not"):
        if sign == "not" and _next(lexemes).lower() != "in":
            raise ValueError("'not' without 'in'")
        return Term(first, "in" if sign == "in" else "not in", tuple(_several(lexemes)))
    sign = {"==": "=", "<>": "!="}.get(sign, sign)
    if sign not in ("=", "!=", "^=", *_COMPARE):
        raise ValueError(f"{sign!r} compares nothing")
    return Term(first, sign, (_value(_next(lexemes)),))


def _several(lexemes: list[str]) -> Iterator[Any]:
    between = _next(lexemes)
    while between != ")":
        if between not in ("(", ","):
            raise ValueError("values stand in parentheses with commas between them")
        yield _value(_next(lexemes))
        between = _next(lexemes)


def _next(lexemes: list[str]) -> str:
    if not lexemes:
        raise ValueError("the filter ends too early")
    return lexemes.pop()


def _value(lexeme: str) -> Any:
    if lexeme[0] in "'\"":
        return lexeme[1:-1].replace(lexeme[0] * 2, lexeme[0])
    if lexeme.lower() in ("true", "false"):
        return lexeme.lower() == "true"
    return int(lexeme) if re.fullmatch(r"[-+]?\d{1,399}", lexeme) else float(lexeme)
