"""Whatever a client sends, its gateway refuses it or does what it says, in bounded memory, and nothing else breaks."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cubecast.errors import RemoteProtocolError
from cubecast.net.gateway.gateway import Gateway
from cubecast.net.gateway.link import MOST_REQUESTS
from cubecast.net.gateway.messages import (
    CREDIT,
    AwaitStable,
    Pause,
    Ping,
    Publish,
    Resume,
    StatusRequest,
    Subscribe,
    Taken,
    Unsubscribe,
    decode_from_client,
    decode_from_node,
    encode,
)
from support.bus import Bus
from support.running import run, until

NUMBERS = st.integers(0, 3)
TOPICS = st.sampled_from(["a", "a.b", "a.*", ">", "", "a..b", "_inbox.1", "x" * 300])
MESSAGES = st.one_of(
    st.builds(Subscribe, NUMBERS, TOPICS),
    st.builds(Unsubscribe, NUMBERS),
    st.builds(Pause, NUMBERS),
    st.builds(Resume, NUMBERS),
    st.builds(Publish, NUMBERS, TOPICS, st.lists(st.binary(max_size=20), max_size=4)),
    st.builds(AwaitStable, NUMBERS, TOPICS),
    st.builds(StatusRequest, NUMBERS),
    st.builds(Ping),
)


class Wire:
    host = label = "a client"

    def __init__(self) -> None:
        self.is_full = False
        self.sent: list[bytes] = []
        self.aborted: list[str] = []

    def send(self, frame: bytes) -> None:
        self.sent.append(frame)

    def abort(self, reason: str) -> None:
        self.aborted.append(reason)


@settings(max_examples=60, deadline=None)
@given(st.lists(MESSAGES, max_size=40), st.lists(st.booleans(), max_size=40))
def test_any_sequence_of_messages_is_carried_out_or_refused(messages, full):
    async def main():
        bus, wire = Bus(), Wire()
        port = bus.port()
        gateway = Gateway(port, wire)
        for message, is_full in zip(messages, full + [False] * len(messages), strict=False):
            wire.is_full = is_full
            port.open_room.set() if is_full else port.open_room.clear()
            try:
                gateway.on_frames([encode(message)])
            except RemoteProtocolError:
                break
            await asyncio.sleep(0)
            if not is_full:
                gateway.on_room()
        gateway.close()
        assert not port.wires
        for frame in wire.sent:
            decode_from_node(frame)

    run(main())


@settings(max_examples=300)
@given(
    st.binary(max_size=60) | st.builds(encode, MESSAGES).flatmap(lambda frame: st.permutations(list(frame)).map(bytes))
)
def test_bytes_decode_or_are_refused(frame):
    for decode in (decode_from_client, decode_from_node):
        try:
            decode(frame)
        except RemoteProtocolError as error:
            assert str(error)


def test_credit_and_requests_are_limits():
    async def main():
        port, wire = Bus().port(), Wire()
        port.open_room.clear()
        gateway = Gateway(port, wire)
        with pytest.raises(RemoteProtocolError, match="credit"):
            for number in range(1, CREDIT):
                gateway.on_frames([encode(Publish(number, "t", [b""] * 100))])
        assert number < CREDIT / 6400 + 3
        gateway.close()

        port.settled.clear()
        port.open_room.set()
        other = Gateway(port, wire)
        with pytest.raises(RemoteProtocolError, match=f"{MOST_REQUESTS} requests"):
            for number in range(1, 2 * MOST_REQUESTS):
                other.on_frames([encode(Publish(number, "t", [b"1"])), encode(AwaitStable(number, "t"))])
        other.close()

    run(main())


def test_publications_are_taken_in_order_as_there_is_room():
    async def main():
        port, wire = Bus().port(), Wire()
        gateway = Gateway(port, wire)
        port.open_room.clear()
        gateway.on_frames([encode(Publish(1, "a", [b"1"])), encode(Publish(2, "b..", [b"2"]))])
        assert not wire.sent and not port._counters
        port.open_room.set()
        while len(wire.sent) < 2:
            await asyncio.sleep(0)
        refused, taken = map(decode_from_node, wire.sent)
        assert port._counters == {"a": 1}
        assert isinstance(refused, Taken) and refused.number == 2 and refused.refused
        assert taken == Taken(2)
        gateway.close()

    run(main())


def test_a_silent_client_is_taken_for_dead():
    async def main():
        wire = Wire()
        gateway = Gateway(Bus().port(), wire, silent_for=0.02)
        gateway.on_frames([encode(Ping())])
        await until(lambda: wire.aborted)
        assert "said nothing" in wire.aborted[0]
        gateway.close()

    run(main())
