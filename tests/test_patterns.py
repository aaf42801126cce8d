"""Topics, wildcards, and what is neither."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cubecast.errors import BadInput
from cubecast.patterns import check_pattern, check_topic, matcher

SELECTED = [
    ("orders.eu", "orders.eu", True),
    ("orders.eu", "orders.us", False),
    ("orders.*", "orders.eu", True),
    ("orders.*", "orders", False),
    ("orders.*", "orders.eu.new", False),
    ("orders.>", "orders.eu.new", True),
    ("orders.>", "orders", False),
    ("*.eu", "orders.eu", True),
    ("*.eu.>", "orders.eu.new", True),
    (">", "orders", True),
    (">", "orders.eu.new", True),
    (">", "_inbox.1", False),
    ("*.1", "_inbox.1", False),
    ("_inbox.*", "_inbox.1", True),
    ("a.+", "a.+", True),
    ("a.+", "a.aa", False),
]


@pytest.mark.parametrize(("pattern", "topic", "selected"), SELECTED)
def test_what_a_pattern_selects(pattern, topic, selected):
    assert matcher(pattern)(check_topic(topic)) is selected


@pytest.mark.parametrize(
    "topic", ["", ".", "a.", ".a", "a..b", "a b", "a\tb", "a.*", "a.>", "a*", "x" * 256, "\ud800", 7]
)
def test_what_is_no_topic(topic):
    with pytest.raises(BadInput):
        check_topic(topic)


@pytest.mark.parametrize("pattern", ["", "a.>.b", "a.b*", "a.>>", "a..b", "a b", "x" * 256])
def test_what_is_no_pattern(pattern):
    with pytest.raises(BadInput):
        check_pattern(pattern)


def _selects(pattern: list[str], topic: list[str]) -> bool:
    """The definition, word by word."""
    if pattern == [">"]:
        return bool(topic)
    if not pattern or not topic:
        return pattern == topic
    return pattern[0] in ("*", topic[0]) and _selects(pattern[1:], topic[1:])


WORDS = st.sampled_from(["a", "b", "a-b"])


@given(st.lists(st.sampled_from(["a", "b", "*"]), max_size=3), st.booleans(), st.lists(WORDS, min_size=1, max_size=4))
def test_the_compiled_matcher_does_what_the_definition_says(words, open_end, topic):
    pattern = [*words, ">"] if open_end or not words else words
    assert matcher(".".join(pattern))(".".join(topic)) is _selects(pattern, topic)
