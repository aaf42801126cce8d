"""Payloads go in and come out as they were; what is garbled says so when it is looked at."""

import math
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cubecast.api import envelope
from cubecast.api.message import Batch, Message, Origin
from cubecast.errors import BadInput, RemoteProtocolError

ORIGIN = Origin("t", 3, 1)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=50)
@given(st.binary() | st.text() | JSON, st.none() | st.dictionaries(st.text(), st.text(), max_size=3))
def test_what_is_published_comes_out(data, headers):
    message = Message(ORIGIN, 7, envelope.seal(data, headers))
    assert message.data == data
    assert type(message.data) is type(data)
    assert message.headers == (headers or {})
    assert message.id == (3, 1, 7)


@given(st.binary())
def test_garbled_envelopes_raise_only_the_declared_error(sealed):
    message = Message(ORIGIN, 1, sealed)
    for look in (lambda: message.data, lambda: message.headers, message.text, message.json, message.body):
        try:
            look()
        except RemoteProtocolError as error:
            assert str(error)
    assert "Message t 3.1.1" in repr(message)


def test_text_and_json_can_be_asked_for_whatever_was_sent():
    assert Message(ORIGIN, 1, envelope.seal(b'{"a":1}')).json() == {"a": 1}
    assert Message(ORIGIN, 1, envelope.seal(b"plain")).text() == "plain"
    assert Message(ORIGIN, 1, envelope.seal({"a": 1})).body() == b'{"a":1}'
    with pytest.raises(RemoteProtocolError, match="not text"):
        Message(ORIGIN, 1, envelope.seal(b"\xff")).text()


@dataclass
class Reading:
    value: float
    tags: tuple[str, ...] = ()


UNSAID = [object(), {1j: 2}, "\ud800", {1: 2}, {1.5: 2}, {None: 1}, {(1, 2): 3}, {1, 2}, frozenset()]
UNSAID += [math.nan, math.inf, -math.inf, Reading(math.nan), b"x".join, [bytearray(b"x")], {"deep": [{"er": b"x"}]}]
UNSAID += [[1, [2, (math.nan,)]], {"a": {"b": {3: 4}}}, ["\ud800"]]


@pytest.mark.parametrize("data", UNSAID)
def test_what_json_cannot_say_is_refused_and_never_changed(data):
    with pytest.raises(BadInput, match=r"cannot be published|valid Unicode"):
        envelope.seal(data)
    with pytest.raises(BadInput):
        envelope.seal_all([1, {"inside": [data]}])


@pytest.mark.parametrize(
    ("data", "arrives"),
    [((1, (2, 3)), [1, [2, 3]]), (Reading(1.5, ("a",)), {"value": 1.5, "tags": ["a"]}), (2**70, 2**70), (-0.0, -0.0)],
    ids=repr,
)
def test_what_json_says_in_another_way(data, arrives):
    assert envelope.data(envelope.seal(data)) == arrives


def test_headers_are_text_numbers_and_booleans():
    headers = {"text": "ü", "whole": -3, "large": 2**64 - 1, "part": 0.5, "yes": True}
    message = Message(ORIGIN, 7, envelope.seal(b"", headers))
    assert message.headers == headers
    assert [type(value) for value in message.headers.values()] == [str, int, int, float, bool]
    for wrong in (None, b"bytes", [1], float("inf"), 2**64, -(2**63) - 1):
        with pytest.raises(BadInput, match=r"^header"):
            envelope.seal(b"", {"a": wrong})  # type: ignore[dict-item]


def test_a_batch_is_a_list_of_messages_made_when_asked_for():
    batch = Batch(ORIGIN, 5, [envelope.seal(b"a"), envelope.seal("b", {"x": "y"}), envelope.seal(3)])
    assert [message.data for message in batch] == [b"a", "b", 3]
    assert [message.counter for message in batch] == [5, 6, 7]
    assert batch[-1].counter == 7
    assert [message.counter for message in batch[1:]] == [6, 7]
    assert batch.payloads == [b"a", b"b", b"3"]
    with pytest.raises(IndexError):
        batch[3]
    with pytest.raises(RemoteProtocolError):
        _ = Batch(ORIGIN, 1, [b""]).payloads
