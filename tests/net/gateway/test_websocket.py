"""The WebSocket endpoint, spoken to by a plain client: the gateway's semantics, and what is refused."""

import aiohttp
import pytest
from aiohttp import WSCloseCode

from cubecast.api import envelope
from cubecast.errors import BadInput
from cubecast.ids import MessageId
from cubecast.net.gateway.messages import (
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
from cubecast.net.links.handshake import MAGIC, VERSION, ClientGreeting, JoinRequest, Refused
from cubecast.net.links.handshake import encode as encode_opening
from cubecast.net.security.policy import Policy
from cubecast.net.settings.fields import MAX_FRAME
from cubecast.net.settings.security import Limits, Origins, check_origin
from support.running import run, until
from support.websockets import endpoint, greeting, readers_only, visitor


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
            for _ in range(400):
                node.port.publish("t", [bytes(60_000)])
                assert len((await other.hear()).payloads) == 1, "nobody else notices, nor is anybody else late"
            await until(lambda: ("pause", 1) in node.port.calls)
            await until(lambda: len(node.clients) == 1)
            assert list(node.port.wires) == [2]
            deaf.socket._conn.protocol.resume_reading()

    run(main())


def test_what_is_no_greeting_ends_the_connection():
    async def main():
        joiner = encode_opening(JoinRequest(MAGIC, VERSION, VERSION, "cubecast", b"x", None))
        cases = [
            (b"\xc1", WSCloseCode.PROTOCOL_ERROR, "greeting"),
            (b"\x90", WSCloseCode.PROTOCOL_ERROR, "greeting"),
            (encode(Ping()), WSCloseCode.PROTOCOL_ERROR, "greeting"),
            (joiner, WSCloseCode.PROTOCOL_ERROR, "nodes"),
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


def test_who_does_not_greet_is_sent_away():
    async def main():
        async with endpoint() as node:
            node.limits = Limits(greeting_time=0.02)
            async with visitor(node, None) as guest:
                assert await guest.farewell() == (WSCloseCode.POLICY_VIOLATION, "it did not greet in time")
            node.limits = Limits(unauthenticated=1)
            async with visitor(node, None) as silent, visitor(node):
                code, reason = await silent.farewell()
                assert code == WSCloseCode.POLICY_VIOLATION and "too many" in reason

    run(main())


def test_unauthenticated_callers_and_crowds_have_limits():
    async def main():
        async with endpoint() as node:
            node.limits = Limits(first_frame=1024)
            async with visitor(node, greeting(token="x" * 2000)) as guest:
                code, reason = await guest.farewell()
                assert code == WSCloseCode.PROTOCOL_ERROR and "at most 1024" in reason
            node.clients.limits = Limits(clients_per_address=1)
            async with visitor(node), visitor(node, greeting()) as second:
                answer = await second.answer()
                assert isinstance(answer, Refused) and answer.retry and "1 clients at 127.0.0.1" in answer.reason
            await until(lambda: not len(node.clients))
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
                (greeting(cluster="elsewhere"), False, "does not belong to cluster"),
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


def test_the_token_decides_what_a_client_may():
    async def main():
        async with endpoint() as node:
            node.policy, token = readers_only()
            for shown, said in ((None, "asks for a token"), ("", "not valid"), ("reader.wrong", "not valid")):
                async with visitor(node, greeting(token=shown)) as guest:
                    answer = await guest.answer()
                    assert isinstance(answer, Refused) and not answer.retry and said in answer.reason
            async with visitor(node, greeting(token=token)) as guest:
                await guest.answer()
                await guest.say(Subscribe(1, "secret.>"))
                ended = await guest.hear()
                assert isinstance(ended, Ended) and "reader may not subscribe to secret.>" in ended.reason
                await guest.say(Subscribe(2, "open.>"))
                assert await guest.hear() == Ready(2)
                await guest.say(Publish(1, "secret.a", [b"x"]))
                assert await guest.hear() == Taken(1, "reader may not publish on secret.a")
                assert await guest.hear() == Taken(1)
                await guest.say(Publish(2, "open.a", [b"\xc1\x04\x05admin\xc1\x01x"]))
                heard = [await guest.hear() for _ in range(2)]
                (delivered,) = [one for one in heard if isinstance(one, Deliver)]
                assert envelope.principal(delivered.payloads[0]) == "reader", "a forged name is taken off"
                assert envelope.data(delivered.payloads[0]) == "x"
                node.clients.renew(Policy("cubecast"))
                assert (await guest.farewell())[0] == WSCloseCode.GOING_AWAY
            async with visitor(
                node, encode_opening(ClientGreeting(MAGIC, VERSION, VERSION, "", "k", None, "reader"))
            ) as guest:
                assert "show a token" in (await guest.answer()).reason

    run(main())


def test_pages_of_other_origins_are_refused_unless_allowed(caplog):
    async def main():
        async with endpoint(origins=("https://chat.example",)) as node:
            for origin in (f"http://{node.address}", "https://chat.example", None):
                async with visitor(node, origin=origin):
                    pass
            for origin in ("http://evil.example", "null", "https://chat.example.evil", f"ftp://{node.address}"):
                with pytest.raises(aiohttp.WSServerHandshakeError, match="403"):
                    async with visitor(node, origin=origin):
                        pass
                assert f"pages of {origin} may not use this node" in caplog.text

    with caplog.at_level("WARNING"):
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
