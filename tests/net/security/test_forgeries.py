"""Nobody speaks for somebody else: names are put on messages by nodes, and what was said once is not said again."""

import asyncio
from dataclasses import replace
from time import process_time

import pytest

from cubecast.api import envelope
from cubecast.api.connect import connect
from cubecast.errors import RemoteProtocolError
from cubecast.headers import stamp, stamped, without_stamps
from cubecast.net.gateway.messages import Publish, Subscribe
from cubecast.net.gateway.messages import encode as said
from cubecast.net.links.calling import call
from cubecast.net.links.handshake import (
    MAGIC,
    VERSION,
    Accepted,
    ClientGreeting,
    Greeting,
    JoinRequest,
    Place,
    Refused,
    decode_answer,
    encode,
)
from cubecast.net.links.login import Dialling, Login
from cubecast.net.links.tls import TlsContext, client_context
from cubecast.net.live_node import LiveNode
from cubecast.net.security.credentials import digest, new_token
from cubecast.net.settings.config import MAX_PAYLOAD, NodeConfig
from cubecast.protocol.cubecast.packets import Wave
from cubecast.protocol.cubecast.publication_packets import Publication
from cubecast.protocol.cubecast.vocabulary import Entry
from support.certificates import certificates
from support.live_codec import encode as packed
from support.running import run, until
from support.secured import Raw, secured

TOKEN = new_token("mallory")
RULES = f'[principals.mallory]\ntokens = ["{digest(TOKEN, "cubecast")}"]\npublish = ["m"]\n'
GREETING = encode(ClientGreeting(MAGIC, VERSION, VERSION, "cubecast", "honest", TOKEN))

HONEST = stamp("honest")
FORGED = {
    "a name in front": HONEST + envelope.seal("hello"),
    "two names in front": stamp("root") + HONEST + envelope.seal("hello"),
    "many names in front": 50 * HONEST + envelope.seal("hello"),
    "a name among the headers": envelope.seal("hello", {"principal": "honest", "source": "0"}),
    "a name in front of headers": HONEST + envelope.seal("hello", {"principal": "honest"}),
}


@pytest.mark.parametrize("case", FORGED)
def test_a_message_bears_the_name_its_node_knows(case):
    """Whatever the client writes in front of it; what it calls itself is of no account either."""

    async def scenario():
        async with secured(RULES, tls=False) as scene:
            caller = await Raw.open(scene.at)
            caller.send(GREETING, said(Publish(1, "m", [FORGED[case]])))
            assert isinstance(decode_answer(await caller.frame()), Accepted)
            message = await anext(aiter(scene.sees))
            assert (message.principal, message.data, message.source) == ("mallory", "hello", scene.node.place.node)
            caller.close()

    run(scenario())


CUT_SHORT = [b"\xc1\x04", b"\xc1\x04\x06hone", b"\xc1\x04\xff", HONEST + b"\xc1\x04\x05x", b""]


@pytest.mark.parametrize("payload", CUT_SHORT)
def test_a_stamp_that_is_cut_short_takes_nobody_in(payload):
    (sealed,) = stamped(stamp("mallory"), [payload])
    assert envelope.principal(sealed) == "mallory"
    assert without_stamps(sealed) == b""


def test_a_message_of_nothing_but_stamps_costs_a_node_next_to_nothing():
    """Looking at a mebibyte of them one by one and copying the rest each time took twenty seconds."""
    before = process_time()
    assert without_stamps(b"\xc1\x04\x00" * (MAX_PAYLOAD // 3) + b"end") == b"end"
    assert process_time() - before < 3.0


@pytest.mark.parametrize("sealed", [b"\xc1\x04", b"\xc1\x04\x00", b"\xc1\x04\x02a", b"\xc1\x04\x01\xff", HONEST * 2])
def test_what_nobody_stamped_like_that_is_garbled(sealed):
    with pytest.raises(RemoteProtocolError, match=r"garbled|unknown kind"):
        assert envelope.principal(sealed) != "honest" or envelope.data(sealed)


def test_messages_of_nodes_bear_no_name():
    async def scenario():
        async with secured(RULES, tls=False) as scene:
            scene.node.port.publish("n", [envelope.seal(b"\xc1\x04\x06honest" + b"x")])
            message = await anext(aiter(scene.sees))
            assert message.principal is None and message.data == b"\xc1\x04\x06honestx"

    run(scenario())


# Between nodes


async def _a_link(node, settings, place):
    """A node's link to `node`, on which anything may be said."""
    tls = TlsContext(settings, "cubecast")
    greeting = Greeting(MAGIC, VERSION, VERSION, "cubecast", place)
    link, answer = await call(node.address, greeting, secure=Dialling(tls.dialling, "cubecast"))
    assert isinstance(answer, Accepted)
    lost = asyncio.get_running_loop().create_future()
    link.take_over(lambda *_: None, lambda _, error: lost.done() or lost.set_result(error))
    return link, lost


def _publication(source, **others):
    made = Publication(0, (), "n", (source, 0, 1), (b"forged",), b"\x03", (), (), (), 0)
    return packed(replace(made, **others) if others else made)


LIES = {
    "a publication in the name of the node it is sent to": lambda: _publication(0),
    "a publication of an id outside the cube": lambda: _publication(99),
    "a publication that is not for the node": lambda: _publication(1, members=b"\x02"),
    "a subscription in somebody else's name": lambda: packed(Wave(0, (), "n", 1, Entry(0, 0, 1, True))),
    "no packet": lambda: b"nonsense",
    "places that are none": lambda: b"\xffnonsense",
    "a greeting again": lambda: GREETING,
}


@pytest.mark.parametrize("case", LIES)
def test_a_node_that_lies_loses_its_link(case):
    async def scenario():
        made = certificates()
        node = LiveNode(NodeConfig(tls=made.node, dimension=1))
        await node.start()
        place = Place(1, 0, b"instance", "127.0.0.1:1")
        link, lost = await _a_link(node, made.make("one", (1,)), place)
        await until(lambda: node.link_to(1) is not None)
        link.send(LIES[case]())
        async with asyncio.timeout(30):
            await lost
        await until(lambda: node.link_to(1) is None)
        await node.close()

    run(scenario())


@pytest.mark.parametrize("opening", ["join", "greeting"])
def test_a_policy_without_tls_cannot_be_evaded_by_becoming_a_member(opening):
    async def scenario():
        async with secured(RULES, tls=False) as scene:
            caller = await Raw.open(scene.at)
            place = Place(3, 0, b"instance", "127.0.0.1:1")
            greets = Greeting(MAGIC, VERSION, VERSION, "cubecast", place)
            joins = JoinRequest(MAGIC, VERSION, VERSION, "cubecast", b"instance", None)
            caller.send(encode(greets if opening == "greeting" else joins))
            answer = decode_answer(await caller.frame())
            assert isinstance(answer, Refused) and "has a policy and no TLS" in answer.reason
            await caller.closed()
            caller.close()

    run(scenario())


# Again


def test_frames_that_were_overheard_prove_nothing():
    """Whatever an honest client says after its greeting means nothing from somebody who did not greet."""

    async def scenario():
        async with secured(RULES, tls=False) as scene:
            for frame in (said(Subscribe(1, ">")), said(Publish(1, "honest.word", [b"again"]))):
                caller = await Raw.open(scene.at)
                caller.send(frame)
                await caller.closed()
                caller.close()

    run(scenario())


async def _overhear(scene):
    """A relay in front of the node that writes down what passes; its address and its notes."""
    notes = bytearray()

    async def relay(reader, writer):
        upstream_reader, upstream = await asyncio.open_connection(*scene.at)

        async def back():
            while data := await upstream_reader.read(1 << 16):
                writer.write(data)
            writer.close()

        task = asyncio.ensure_future(back())
        while data := await reader.read(1 << 16):
            notes.extend(data)
            upstream.write(data)
        upstream.close()
        await task

    server = await asyncio.start_server(relay, "127.0.0.1", 0)
    return server, server.sockets[0].getsockname()[1], notes


def test_a_whole_conversation_that_was_overheard_is_worth_nothing():
    async def scenario():
        async with secured(RULES) as scene:
            server, port, notes = await _overhear(scene)
            login = Login(tls=certificates().anybody, token=TOKEN)
            async with connect(f"127.0.0.1:{port}", login=login) as client:
                await client.publish("m", "once", wait="stable")
            assert (await anext(aiter(scene.sees))).data == "once"
            assert TOKEN.encode() not in notes and b"once" not in notes, "nothing of it can be read either"
            thief = await Raw.open(scene.at)
            thief.writer.write(bytes(notes))
            thief.writer.write_eof()
            async with asyncio.timeout(30):
                while await thief.reader.read(1 << 16):
                    pass
            thief.close()
            server.close()

    run(scenario())


def test_a_packet_that_is_repeated_is_delivered_once():
    """A node's link repeats what it sent: the publication has its place already."""

    async def scenario():
        made = certificates()
        first = LiveNode(NodeConfig(tls=made.node, dimension=1))
        await first.start()
        second = LiveNode(NodeConfig(tls=made.node, join=(first.address,)))
        await second.start()
        got, sent = [], []

        class Sink:
            def on_batch(self, topic, first, payloads):
                got.extend(payloads)

            def on_ready(self): ...
            def on_gap(self, gap): ...
            def on_end(self, error): ...

        first.port.subscribe("n", Sink())
        await until(lambda: "n" in str(second.status()["topics"]))
        link = second.link_to(first.place.node)
        send = link.send
        link.send = lambda frame, head=None: (sent.append(frame), send(frame, head))
        second.port.publish("n", [b"once"])
        await until(lambda: got)
        for frame in sent[:]:
            send(frame)
        second.port.publish("n", [b"then"])
        await until(lambda: b"then" in got)
        assert got == [b"once", b"then"]
        await second.close()
        await first.close()

    run(scenario())


def test_a_client_of_a_false_node_tells_it_nothing():
    """Whoever has no certificate of the cluster's authority gets no greeting, so no token either."""

    async def scenario():
        told = bytearray()

        async def listen(reader, writer):
            while data := await reader.read(1 << 16):
                told.extend(data)
            writer.close()

        false = certificates().make("false", (None,), signed_by="theirs", believes="theirs")
        context = TlsContext(false, "cubecast").server
        server = await asyncio.start_server(listen, "127.0.0.1", 0, ssl=context)
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(Exception, match="certificate is not valid"):
            await connect(f"127.0.0.1:{port}", login=Login(tls=certificates().anybody, token=TOKEN), timeout=0)
        assert not told
        server.close()

    run(scenario())


def test_the_clients_context_insists_on_names():
    context = client_context(certificates().anybody)
    assert context.check_hostname and context.verify_mode.name == "CERT_REQUIRED"
