"""Filters against a definition of their own: what a term means is written here once more, term by term."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cubecast.errors import BadInput
from cubecast.protocol.filters import ALL, Conjunction, Filter, Term, parse
from cubecast.protocol.filters.conditions import Operator, from_wire

NAMES = ("a", "b", "c.d")
NUMBERS = st.sampled_from([-2, -1.5, -1, 0, 0.5, 1, 1.0, 2, 3, 2**70, -(2**70), 1e300])
TEXTS = st.sampled_from(["", "a", "ab", "abc", "b", "it's", 'say "so"', "é"])
VALUES = st.one_of(st.booleans(), NUMBERS, TEXTS)
NUMERIC = st.sampled_from([Operator.LT, Operator.LE, Operator.GT, Operator.GE])
NAME = st.sampled_from(NAMES)
TERMS = st.one_of(
    st.builds(Term, NAME, st.sampled_from([Operator.EQ, Operator.NE]), VALUES),
    st.builds(Term, NAME, NUMERIC, NUMBERS),
    st.builds(Term, NAME, st.just(Operator.PREFIX), TEXTS),
    st.builds(Term, NAME, st.just(Operator.EXISTS), st.booleans()),
    st.builds(Term, NAME, st.just(Operator.IN), st.lists(VALUES, min_size=1, max_size=4).map(tuple)),
)
CONJUNCTIONS = st.builds(Conjunction, st.lists(TERMS, max_size=5).map(tuple))
FILTERS = st.builds(Filter, st.lists(CONJUNCTIONS, min_size=1, max_size=3).map(tuple))
EVENTS = st.dictionaries(NAME, st.one_of(VALUES, st.just(float("nan")), st.just(float("inf"))), max_size=3)


def same(one: Any, other: Any) -> bool:
    return (
        isinstance(one, bool) == isinstance(other, bool)
        and isinstance(one, str) == isinstance(other, str)
        and one == other
    )


def holds(term: Term, event: dict[str, Any]) -> bool:
    value = event.get(term.attribute)
    there = value is not None and value == value
    if term.operator is Operator.EXISTS:
        return there if term.value else value is None
    if not there:
        return False
    number = not isinstance(value, (bool, str))
    wanted: Any = term.value
    match term.operator:
        case Operator.EQ:
            return same(value, wanted)
        case Operator.NE:
            return not same(value, wanted)
        case Operator.IN:
            return any(same(value, one) for one in wanted)
        case Operator.PREFIX:
            return isinstance(value, str) and value.startswith(wanted)
        case Operator.LT:
            return number and value < wanted
        case Operator.LE:
            return number and value <= wanted
        case Operator.GT:
            return number and value > wanted
        case _:
            return number and value >= wanted


@given(FILTERS, EVENTS)
def test_a_filter_matches_what_one_of_its_alternatives_demands(wanted: Filter, event: dict[str, Any]):
    expected = any(all(holds(term, event) for term in one.terms) for one in wanted.alternatives)
    assert wanted.matches(event) == expected


@given(FILTERS, FILTERS, st.lists(EVENTS, min_size=8, max_size=8))
def test_what_covers_matches_whatever_the_covered_matches(wide: Filter, narrow: Filter, events: list[dict[str, Any]]):
    if wide.covers(narrow):
        assert all(wide.matches(event) for event in events if narrow.matches(event))


@given(FILTERS, FILTERS, st.lists(EVENTS, min_size=8, max_size=8))
def test_filters_that_do_not_intersect_share_no_event(one: Filter, other: Filter, events: list[dict[str, Any]]):
    assert one.intersects(other) == other.intersects(one)
    if not one.intersects(other):
        assert not any(one.matches(event) and other.matches(event) for event in events)


@given(CONJUNCTIONS, st.lists(TERMS, max_size=3))
def test_a_conjunction_covers_itself_with_further_demands(wide: Conjunction, further: list[Term]):
    assert wide.covers(Conjunction((*wide.terms, *further)))


COVERS = [
    ("price >= 10", "price >= 10", True),
    ("price >= 10", "price > 10", True),
    ("price > 10", "price >= 10", False),
    ("price > 10", "price >= 10 and price != 10", True),
    ("price != 5", "price > 5", True),
    ("price != 5", "price >= 5", False),
    ("price >= 5 and price <= 5", "price = 5", True),
    ("price = 5", "price >= 5 and price <= 5", True),
    ("price >= 10", "price in (10, 11.5)", True),
    ("price >= 10", "price in (10, 9)", False),
    ("sku ^= 'A-'", "sku ^= 'A-1'", True),
    ("sku ^= 'A-1'", "sku ^= 'A-'", False),
    ("sku != 'A-1'", "sku ^= 'A-'", False),
    ("sku != 'A-1'", "sku ^= 'A-' and sku != 'A-1'", True),
    ("exists(x)", "x = true", True),
    ("exists(x)", "y = 1", False),
    ("not exists(x)", "not exists(x)", True),
    ("x = 1", "x = true", False),
    ("x = 1 or x = 2", "x in (1, 2)", False),  # sound, not complete
    ("x = 1 or y = 1", "y = 1 and z = 1", True),
    ("x = 1", "x = 2 and x = 3", True),  # nothing matches the second
]


@pytest.mark.parametrize(("wide", "narrow", "expected"), COVERS)
def test_covering(wide: str, narrow: str, expected: bool):
    assert parse(wide).covers(parse(narrow)) is expected


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("price < 10", "price > 10", False),
        ("price <= 10", "price >= 10", True),
        ("price <= 10", "price >= 10 and price != 10", False),
        ("sku ^= 'A'", "sku ^= 'AB'", True),
        ("sku ^= 'A'", "sku ^= 'B'", False),
        ("sku ^= 'A'", "sku > 1", False),
        ("exists(x)", "not exists(x)", False),
        ("x = 1", "y = 2", True),
        ("x = 1 or x = 2", "x = 2", True),
        ("x = true", "x = 1", False),
    ],
)
def test_intersecting(one: str, other: str, expected: bool):
    assert parse(one).intersects(parse(other)) is expected


@given(FILTERS)
def test_text_and_wire_forms_are_read_back(wanted: Filter):
    assert from_wire(wanted.to_wire()) == wanted
    if all(one.terms for one in wanted.alternatives):
        assert parse(str(wanted)) == wanted


def test_all_matches_everything():
    assert ALL.matches({}) and ALL.matches({"a": 1}) and ALL.covers(parse("a = 1")) and not parse("a = 1").covers(ALL)


def test_precedence_and_parentheses():
    loose = parse("a = 1 and b = 1 or c = 1")
    tight = parse("a = 1 and (b = 1 or c = 1)")
    assert loose.matches({"c": 1}) and not tight.matches({"c": 1})
    assert tight.matches({"a": 1, "c": 1})
    assert parse("A.b-c NOT IN ('x', \"it's\") AND Not Exists(d)").matches({"A.b-c": "y"})


@pytest.mark.parametrize(
    ("text", "column", "hint"),
    [
        ("", 1, "the name of an attribute"),
        ("price >", 8, "a value"),
        ("price > 'ten'", 9, "'>' compares numbers; 'ten' is a text"),
        ("price > true", 9, "compares numbers"),
        ("price = eu", 9, "text in quotes ('eu')"),
        ("price ~ 1", 7, "means nothing"),
        ("name = 'eu", 8, "never closed"),
        ("price >= 1 price", 12, "'and', 'or' or the end"),
        ("(a = 1", 7, "')'"),
        ("a in ()", 7, "a value"),
        ("a in 1", 6, "'(' and values"),
        ("a not 1", 7, "'in' behind 'not'"),
        ("not a = 1", 5, "'exists' behind 'not'"),
        ("and = 1", 1, "the name of an attribute"),
        ("a ^= 5", 6, "the beginning of a text"),
        ("a = 1e999", 5, "finite"),
        ("exists a", 8, "'('"),
        (" or ".join(f"a = {n}" for n in range(9)), 1, "8 alternatives"),
        (" and ".join(f"a{n} = 1" for n in range(17)), 1, "16 terms"),
        (f"a in ({', '.join(map(str, range(65)))})", 1, "64 values"),
        (f"{'a' * 65} = 1", 69, "64 bytes"),
        (f"a = '{'x' * 257}'", 5, "256 bytes"),
        ("(" * 20 + "a = 1" + ")" * 20, 17, "parentheses"),
    ],
)
def test_an_error_says_where_and_what_would_be_right(text: str, column: int, hint: str):
    with pytest.raises(BadInput) as refused:
        parse(text)
    assert f"column {column}:" in str(refused.value) and hint in str(refused.value)


def test_a_product_of_many_alternatives_is_refused_at_once():
    many = " and ".join(f"(a{n} = 1 or b{n} = 1)" for n in range(500))
    with pytest.raises(BadInput, match=r"alternatives|characters"):
        parse(many)
    with pytest.raises(BadInput, match="characters"):
        parse("a = 1 and " * 2000 + "a = 1")


@given(st.text(alphabet="ab=<>^!'\"()., 01-or and in not exists true\t\n", max_size=40))
def test_any_text_is_read_or_refused_by_our_own_words(text: str):
    try:
        parse(text)
    except BadInput as error:
        assert "column" in str(error)


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3)),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=2), inner, max_size=2)),
    max_leaves=8,
)


@given(JSON)
def test_whatever_comes_from_the_wire_is_read_or_refused(given_: Any):
    try:
        from_wire(given_)
    except BadInput as error:
        assert str(error)


MALFORMED: list[Any] = [
    [],
    [[]] * 9,
    [[["a", "eq"]]],
    [[["a", "like", "x"]]],
    [[["a", "in", 5]]],
    [[["a", "eq", [1]]]],
    [[["a", "eq", None]]],
    [[["", "eq", 1]]],
    [[["a", "exists", 1]]],
    [[["a", "in", list(range(65))]]],
    [[["a", "lt", "x"]]],
    [[["a", "eq", 1]] * 17],
]


@pytest.mark.parametrize("given_", MALFORMED, ids=str)
def test_malformed_wire_forms(given_: Any):
    with pytest.raises(BadInput):
        from_wire(given_)
