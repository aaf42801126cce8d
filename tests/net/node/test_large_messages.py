"""A message and what it depends on must fit into a packet: who publishes more is told, and nobody else notices."""

import pytest

from cubecast.errors import BadInput
from cubecast.ids import MessageId
from cubecast.net.live_node import LiveNode
from cubecast.net.node.local_port import LocalPort
from cubecast.net.node.publishing import LARGE
from cubecast.net.settings.config import MAX_PAYLOAD, NodeConfig
from cubecast.protocol.cubecast import Cubecast, Parameters
from cubecast.protocol.cubecast.publication_packets import Publication
from cubecast.protocol.cubecast.vocabulary import Start
from cubecast.protocol.effects import Send
from cubecast.wire.codec import MAX_PACKET_BYTES
from support.cluster import FAST
from support.hosts import Alone
from support.live_codec import encode
from support.running import run

DIMENSION = 11
NODES = 1 << DIMENSION
EVERYBODY = (1 << NODES) - 1


def a_crowd() -> Cubecast:
    """A node that has read from everybody in a large cube, so that its next message depends on them all."""
    machine = Cubecast(0, Parameters(DIMENSION, founders=EVERYBODY), initial={"t": EVERYBODY})
    machine.on_start(0.0)
    members = EVERYBODY.to_bytes(NODES // 8, "little")
    for source in range(1, NODES):
        packet = Publication(0, (), "t", MessageId(source, 0, 1), (b"x",), members, (), (Start(1, members),), (), 0)
        machine.on_packet(0.0, source, packet)
    return machine


def test_what_does_not_fit_is_refused_at_the_publisher():
    machine = a_crowd()
    envelope = machine.envelope_bytes("t")
    port = LocalPort(NodeConfig(), Alone(envelope_bytes=machine.envelope_bytes))
    port.open()

    async def main():
        with pytest.raises(BadInput, match=rf"up to {envelope} bytes to say what it depends on.*Nothing was published"):
            port.publish("t", [bytes(MAX_PAYLOAD)])
        assert "t" not in port.describe()["outgoing"], "nothing is left of it"
        assert port.publish("t", [bytes(LARGE)]) == 1
        assert port.publish("elsewhere", [bytes(MAX_PAYLOAD)]) == 1

    run(main())


def test_the_estimate_is_not_too_small():
    machine = a_crowd()
    envelope = machine.envelope_bytes("t")
    (packet,) = [one.packet for one in machine.publish(1.0, "t", [b""]) if isinstance(one, Send)]
    assert len(packet.dependencies) == NODES - 1
    assert len(encode(packet)) <= envelope < 1.2 * len(encode(packet)) < MAX_PACKET_BYTES


def test_a_largest_message_passes_where_little_is_known():
    async def main():
        node = LiveNode(NodeConfig(**FAST))
        await node.start()
        await node.port.stable("t", node.port.publish("t", [bytes(MAX_PAYLOAD)]))
        await node.close()

    run(main())
