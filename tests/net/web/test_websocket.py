"""The WebSocket endpoint, spoken to by a plain client: the gateway's semantics, and what is refused."""

import asyncio

import aiohttp
import pytest
from aiohttp import WSCloseCode

from cubecast.errors import BadInput
from cubecast.ids import MessageId
from cubecast.net.framing import MAX_FRAME
from cubecast.net.gateway_messages import (
    AwaitStable,
    Deliver,
    Ended,
    Lost,
    Pause,
    Ping,
    Pong,
    Publish,
    Ready,
    Resume,
    Stable,
    StatusReply,
    StatusRequest,
    Subscribe,
    Taken,
    encode,
)
from cubecast.net.handshake import MAGIC, VERSION, JoinRequest, Refused
from cubecast.net.handshake import encode as encode_opening
from cubecast.net.origins import Origins, check_origin
from cubecast.net.web import websocket
from support.bus import Bus, BusPort
from support.running import run, until
from support.websockets import endpoint, greeting, visitor


def test_subscribe_publish_stability_gap_pause_and_status():
    async def main():
        async with endpoint() as node, visitor(node) as ann, visitor(node) as bob:
            await bob.say(Subscribe(7, "room.>"))
            assert await bob.hear() == Ready(7)
            await ann.say(Publish(1, "room.a", [b"1", b"2"]), AwaitStable(5, "room.a"))
            assert await ann.hear() == Taken(1)
            assert await ann.hear() == Stable(5)
            assert await bob.hear() == Deliver(7, "room.a", 0, 0, 1, [b"1", b"2"])
            node.port.announce_gap("room.a", MessageId(3, 0, 9), reason="node 3 is gone")
            assert await bob.hear() == Lost(7, "room.a", [MessageId(3, 0, 9)], "node 3 is gone")
            await bob.say(Pause(7), Ping())
            assert await bob.hear() == Pong()
            await ann.say(Publish(2, "room.b", [b"3"]))
            assert await ann.hear() == Taken(2)
            await bob.say(Ping(), Resume(7))
            assert await bob.hear() == Pong(), "nothing came while it was paused"
            assert await bob.hear() == Deliver(7, "room.b", 0, 0, 1, [b"3"])
            await bob.say(StatusRequest(1))
            assert await bob.hear() == StatusReply(1, {"node": 0, "members": [0]})
            await bob.say(Subscribe(8, "a..b"))
            ended = await bob.hear()
            assert isinstance(ended, Ended) and "empty word" in ended.reason
            await ann.say(Publish(3, "no good topic", [b"x"]))
            refused = await ann.hear()
            assert isinstance(refused, Taken) and "space" in (refused.refused or "")
        await until(lambda: not len(node.clients) and not node.port.wires)

    run(main())


def test_publications_wait_for_room_and_the_credit_is_a_limit():
    async def main():
        async with endpoint() as node, visitor(node) as ann:
            node.port.open_room.clear()
            await ann.say(Publish(1, "t", [b"1"]), Ping())
            assert await ann.hear() == Pong(), "not taken yet"
            node.port.open_room.set()
            assert await ann.hear() == Taken(1)
            node.port.open_room.clear()
            for number in range(2, 5):
                await ann.say(Publish(number, "t", [bytes(700_000)]))
            code, reason = await ann.farewell()
            assert code == WSCloseCode.PROTOCOL_ERROR and "credit" in reason

    run(main())


def test_a_browser_that_does_not_read_is_held_back_and_then_cut_off():
    async def main():
        async with endpoint(full_for=0.05) as node, visitor(node) as deaf, visitor(node) as other:
            await deaf.say(Subscribe(1, "t"))
            assert await deaf.hear() == Ready(1)
            await other.say(Subscribe(1, "t"))
            assert await other.hear() == Ready(1)
            deaf.socket._conn.protocol.pause_reading()
            heard = asyncio.create_task(count(other, 400))
            for _ in range(400):
                node.port.publish("t", [bytes(60_000)])
                await asyncio.sleep(0)
            await until(lambda: ("pause", 1) in node.port.calls)
            await until(lambda: len(node.clients) == 1)
            assert await heard == 400, "nobody else noticed"
            assert list(node.port.wires) == [2]
            deaf.socket._conn.protocol.resume_reading()

    async def count(guest, most):
        return sum([len((await guest.hear()).payloads) for _ in range(most)])

    run(main())


def test_what_is_no_greeting_ends_the_connection():
    async def main():
        joiner = encode_opening(JoinRequest(MAGIC, VERSION, VERSION, "cubecast", b"", None))
        cases = [
            (b"\xc1", WSCloseCode.PROTOCOL_ERROR, "greeting"),
            (b"\x90", WSCloseCode.PROTOCOL_ERROR, "greeting"),
            (encode(Ping()), WSCloseCode.PROTOCOL_ERROR, "greeting"),
            (joiner, WSCloseCode.POLICY_VIOLATION, "nodes"),
        ]
        async with endpoint() as node:
            for opening, expected, said in cases:
                async with visitor(node, opening) as guest:
                    code, reason = await guest.farewell()
                    assert (code, said in reason) == (expected, True), reason
            async with visitor(node, None) as guest:
                await guest.socket.send_str("hello")
                code, reason = await guest.farewell()
                assert code == WSCloseCode.PROTOCOL_ERROR and "binary" in reason
            assert not len(node.clients)

    run(main())


def test_who_does_not_greet_is_sent_away(monkeypatch):
    async def main():
        monkeypatch.setattr(websocket, "GREETING_TIME", 0.02)
        async with endpoint() as node, visitor(node, None) as guest:
            assert await guest.farewell() == (WSCloseCode.POLICY_VIOLATION, "it did not greet in time")
            monkeypatch.setattr(websocket, "GREETING_TIME", 5.0)
            monkeypatch.setattr(websocket, "MAX_STRANGERS", 1)
            async with visitor(node, None):
                with pytest.raises(aiohttp.WSServerHandshakeError, match="503"):
                    async with visitor(node):
                        pass

    run(main())


@pytest.mark.parametrize(
    "frame",
    [
        b"\xc1",
        b"",
        b"\x93\x05\x01\xa1t",
        encode(Publish(1, "t", [])),
        encode(Pong()),
        encode(Ping()) * 2,
        b"\xdd\xff\xff\xff\xff",
    ],
)
def test_garbage_ends_that_connection_only(frame):
    async def main():
        async with endpoint() as node, visitor(node) as ann, visitor(node) as bob:
            await ann.say(Subscribe(1, "t"))
            assert await ann.hear() == Ready(1)
            await bob.say(frame)
            code, reason = await bob.farewell()
            assert code == WSCloseCode.PROTOCOL_ERROR and reason
            await ann.say(Publish(1, "t", [b"1"]))
            assert {type(await ann.hear()) for _ in range(2)} == {Taken, Deliver}

    run(main())


def test_frames_have_a_limit():
    async def main():
        async with endpoint() as node, visitor(node) as ann:
            await ann.say(bytes(MAX_FRAME + 1))
            code, _ = await ann.farewell()
            assert code == WSCloseCode.MESSAGE_TOO_BIG
            await until(lambda: not len(node.clients))

    run(main())


def test_refusals_say_why_and_whether_to_come_back():
    async def main():
        async with endpoint(most=1) as node:
            cases = [
                (greeting(cluster="elsewhere"), False, "belongs to cluster"),
                (greeting(versions=(7, 9)), False, "no protocol version in common"),
            ]
            for opening, retry, said in cases:
                async with visitor(node, opening) as guest:
                    answer = await guest.answer()
                    assert isinstance(answer, Refused) and answer.retry is retry and said in answer.reason
                    assert (await guest.farewell())[0] == WSCloseCode.POLICY_VIOLATION
            async with visitor(node, greeting("cubecast")), visitor(node, greeting()) as second:
                answer = await second.answer()
                assert isinstance(answer, Refused) and answer.retry and "serves 1 clients" in answer.reason
            await until(lambda: not len(node.clients))
            node.is_ready = False
            async with visitor(node, greeting()) as early:
                assert "not ready" in (await early.answer()).reason
                assert (await early.farewell())[0] == WSCloseCode.TRY_AGAIN_LATER

    run(main())


class Guarded(BusPort):
    """What a client that may only read `open.>` gets for a port."""

    def subscribe(self, pattern, sink):
        if not pattern.startswith("open."):
            raise BadInput(f"reader may not subscribe to {pattern}")
        return super().subscribe(pattern, sink)

    def publish(self, topic, payloads):
        raise BadInput(f"reader may not publish on {topic}")


def test_the_token_decides_what_a_client_may():
    async def main():
        bus = Bus()
        async with endpoint(bus) as node:
            guarded = Guarded(bus, 9)
            node.clients.port_for = lambda greeting: (
                guarded if greeting.token == "reader" else Refused("no valid token", retry=False)
            )
            for token in (None, "", "wrong"):
                async with visitor(node, greeting(token=token)) as guest:
                    answer = await guest.answer()
                    assert isinstance(answer, Refused) and not answer.retry and answer.reason == "no valid token"
            async with visitor(node, greeting(token="reader")) as guest:
                await guest.answer()
                await guest.say(Subscribe(1, "secret.>"), Subscribe(2, "open.>"), Publish(1, "open.a", [b"x"]))
                assert await guest.hear() == Ended(1, "reader may not subscribe to secret.>")
                assert {await guest.hear(), await guest.hear()} >= {Taken(1, "reader may not publish on open.a")}

    run(main())


def test_pages_of_other_origins_are_refused_unless_allowed():
    async def main():
        async with endpoint(origins=("https://chat.example",)) as node:
            for origin in (f"http://{node.address}", "https://chat.example", None):
                async with visitor(node, origin=origin):
                    pass
            for origin in ("http://evil.example", "null", "https://chat.example.evil", f"ftp://{node.address}"):
                with pytest.raises(aiohttp.WSServerHandshakeError, match="403"):
                    async with visitor(node, origin=origin):
                        pass

    run(main())


def test_origins_are_checked_when_they_are_written_down():
    assert check_origin("https://Chat.Example:8443/") == "https://chat.example:8443"
    assert Origins(["*"]).objection("http://anything", "here") is None
    for wrong in ("chat.example", "ws://chat.example", "https://chat.example/path", ""):
        with pytest.raises(BadInput, match="is no origin"):
            check_origin(wrong)


def test_a_closing_node_lets_its_browsers_go_after_what_it_had_to_say():
    async def main():
        async with endpoint() as node, visitor(node) as ann:
            await ann.say(Subscribe(1, "t"))
            assert await ann.hear() == Ready(1)
            node.port.publish("t", [b"last"])
            node.clients.close()
            assert (await ann.hear()).payloads == [b"last"]
            assert (await ann.farewell())[0] == WSCloseCode.GOING_AWAY

    run(main())
