"""The text form of filters: `topic = 'orders' and price >= 10 and region in ('eu', 'us') or exists(urgent)`.

    filter    = product { "or" product }
    product   = factor { "and" factor }
    factor    = "(" filter ")" | [ "not" ] "exists" "(" name ")" | name comparison
    comparison = ( "=" | "!=" | "<" | "<=" | ">" | ">=" | "^=" ) value | [ "not" ] "in" "(" value { "," value } ")"
    value     = number | text | "true" | "false"

Text stands in single or double quotes; a quote inside is written twice. `^=` asks for a prefix. Words are the same in
capitals. Every error says at which column, and what would be right there.
"""

import re
from collections.abc import Callable
from typing import NamedTuple, NoReturn

from cubecast.errors import BadInput
from cubecast.protocol.filters.conditions import Conjunction, Filter, Operator, Term, all_of, any_of
from cubecast.protocol.filters.values import Value

MOST_CHARACTERS = 8192
MOST_DEPTH = 16

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<number>[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)
    | (?P<text>'(?:[^']|'')*'|"(?:[^"]|"")*")
    | (?P<symbol>\^=|==|!=|<>|<=|>=|=|<|>|\(|\)|,)
    | (?P<word>[^\W\d][\w.\-]*)
    )""",
    re.VERBOSE,
)
_OPERATORS = {
    "=": Operator.EQ,
    "==": Operator.EQ,
    "!=": Operator.NE,
    "<>": Operator.NE,
    "<": Operator.LT,
    "<=": Operator.LE,
    ">": Operator.GT,
    ">=": Operator.GE,
    "^=": Operator.PREFIX,
}
_RESERVED = frozenset({"and", "or", "not", "in", "exists", "true", "false"})


class _Token(NamedTuple):
    kind: str
    text: str
    column: int

    @property
    def word(self) -> str:
        return self.text.lower() if self.kind == "word" else ""


def parse(text: str) -> Filter:
    """Read a filter, or raise BadInput with the column."""
    if len(text) > MOST_CHARACTERS:
        raise BadInput(f"a filter has at most {MOST_CHARACTERS} characters, not {len(text)}")
    return _Parser(text).whole()


def _tokens(text: str) -> list[_Token]:
    tokens, at = [], 0
    end = len(text.rstrip())
    while at < end:
        match = _TOKEN.match(text, at)
        if match is None:
            at += len(text[at:]) - len(text[at:].lstrip())
            if text[at] in "'\"":
                _fail(at + 1, f"this quote {text[at]} is never closed; a quote inside a text is written twice")
            _fail(at + 1, f"{text[at]!r} means nothing here")
        kind = str(match.lastgroup)
        tokens.append(_Token(kind, match[kind], match.start(kind) + 1))
        at = match.end()
    tokens.append(_Token("end", "", end + 1))
    return tokens


def _fail(column: int, why: str) -> NoReturn:
    raise BadInput(f"filter, column {column}: {why}")


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self._next = 0
        self._depth = 0

    def whole(self) -> Filter:
        found = self._filter()
        if self._token.kind != "end":
            self._expected("'and', 'or' or the end")
        return found

    @property
    def _token(self) -> _Token:
        return self._tokens[self._next]

    def _take(self) -> _Token:
        token = self._token
        self._next += 1
        return token

    def _expected(self, what: str) -> NoReturn:
        token = self._token
        _fail(token.column, f"expected {what}, not {token.text!r}" if token.text else f"expected {what} here")

    def _skip(self, symbol: str, what: str) -> None:
        if self._token.text != symbol or self._token.kind != "symbol":
            self._expected(what)
        self._next += 1

    def _filter(self) -> Filter:
        column = self._token.column
        products = [self._product()]
        while self._token.word == "or":
            self._take()
            products.append(self._product())
        return self._limited(column, lambda: any_of(one for product in products for one in product.alternatives))

    def _product(self) -> Filter:
        column = self._token.column
        factors = [self._factor()]
        while self._token.word == "and":
            self._take()
            factors.append(self._factor())
        return self._limited(column, lambda: all_of(factors))

    def _limited(self, column: int, make: Callable[[], Filter]) -> Filter:
        try:
            return make()
        except BadInput as error:
            _fail(column, str(error))

    def _factor(self) -> Filter:
        token = self._token
        if token.text == "(" and token.kind == "symbol":
            self._depth += 1
            if self._depth > MOST_DEPTH:
                _fail(token.column, f"more than {MOST_DEPTH} parentheses inside each other")
            self._take()
            inner = self._filter()
            self._skip(")", "')'")
            self._depth -= 1
            return inner
        if token.word == "exists":
            return self._exists(True)
        if token.word == "not":
            self._take()
            if self._token.word != "exists":
                self._expected("'exists' behind 'not' (write a != 1, or a not in (1, 2), for other things)")
            return self._exists(False)
        if token.kind != "word" or token.word in _RESERVED:
            self._expected("the name of an attribute, 'exists' or '('")
        return self._comparison(self._take())

    def _exists(self, there: bool) -> Filter:
        self._take()
        self._skip("(", "'(' and the name of an attribute")
        if self._token.kind != "word" or self._token.word in _RESERVED:
            self._expected("the name of an attribute")
        name = self._take()
        self._skip(")", "')'")
        return self._terms(name.column, [(name.text, Operator.EXISTS, there)])

    def _comparison(self, name: _Token) -> Filter:
        token = self._token
        if token.word == "in":
            self._take()
            return self._terms(name.column, [(name.text, Operator.IN, tuple(self._values()))])
        if token.word == "not":
            self._take()
            if self._token.word != "in":
                self._expected("'in' behind 'not'")
            self._take()
            return self._terms(name.column, [(name.text, Operator.NE, value) for value in self._values()])
        operator = _OPERATORS.get(token.text) if token.kind == "symbol" else None
        if operator is None:
            self._expected(f"a comparison behind {name.text!r}: = != < <= > >= ^= or in")
        self._take()
        return self._terms(self._token.column, [(name.text, operator, self._value())])

    def _terms(self, column: int, given: list[tuple[str, Operator, Value | tuple[Value, ...]]]) -> Filter:
        return self._limited(column, lambda: Filter((Conjunction(tuple(Term(*one) for one in given)),)))

    def _values(self) -> list[Value]:
        self._skip("(", "'(' and values")
        values = [self._value()]
        while self._token.text == ",":
            self._take()
            values.append(self._value())
        self._skip(")", "',' or ')'")
        return values

    def _value(self) -> Value:
        token = self._token
        if token.kind == "number":
            self._take()
            whole = token.text.lstrip("+-").isdigit()
            return int(token.text) if whole and len(token.text) <= 400 else float(token.text)
        if token.kind == "text":
            self._take()
            quote = token.text[0]
            return token.text[1:-1].replace(quote * 2, quote)
        if token.word in ("true", "false"):
            self._take()
            return token.word == "true"
        hint = f" ('{token.text}')" if token.kind == "word" else ""
        return self._expected(f"a value: a number, true, false, or a text in quotes{hint}")
