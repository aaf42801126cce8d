"""A wildcard is granted only where everything it selects is: the clever answer against a dumb one."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cubecast.net.security.policy import covers
from cubecast.patterns import matcher

WORDS = ("a", "b", "c", "_x")
TOPICS = [".".join(words) for length in range(1, 6) for words in product(WORDS, repeat=length)]

_one = st.sampled_from(["a", "b", "*", "_x"])
_patterns = st.builds(
    lambda words, end: ".".join([*words, *end]), st.lists(_one, min_size=1, max_size=3), st.sampled_from([[], [">"]])
) | st.just(">")


def _granted(grants, pattern):
    return covers([tuple(grant.split(".")) for grant in grants], pattern)


@given(st.lists(_patterns, max_size=5), _patterns)
def test_a_pattern_is_covered_if_all_its_topics_are(grants, pattern):
    """Topics of up to five words over four words, one of which no pattern names, tell all these patterns apart."""
    allow, selects = [matcher(grant) for grant in grants], matcher(pattern)
    dumb = all(any(one(topic) for one in allow) for topic in TOPICS if selects(topic))
    kept = pattern.startswith("_") and ("*" in pattern or ">" in pattern)
    assert _granted(grants, pattern) == (dumb and not kept)


@pytest.mark.parametrize(
    ("grants", "pattern", "expected"),
    [
        ([">"], ">", True),
        (["*", "*.>"], ">", True),
        (["*", "*.*"], ">", False),
        (["a.*", "a.*.>"], "a.>", True),
        (["a.>"], ">", False),
        ([">"], "_inbox.1", False),
        (["_inbox.*"], "_inbox.1", True),
        (["_inbox.*"], "_inbox.*", False),
        (["_inbox.>"], "_inbox.>", False),
        ([], "a", False),
    ],
)
def test_examples(grants, pattern, expected):
    assert _granted(grants, pattern) is expected


def test_a_question_that_would_take_long_is_answered_with_no():
    grants = [("*",) * index + ("a",) + ("*",) * (20 - index) for index in range(21)]
    assert covers(grants, ".".join(["*"] * 21)) is False
