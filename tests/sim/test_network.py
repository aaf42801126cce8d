"""The output queue by hand, FIFO links, and what a queue length means."""

from random import Random

import pytest

from cubecast.ids import MessageId
from cubecast.protocol.hypercube.packets import Pub, PubAck
from cubecast.sim.network import Network, parse_delay
from cubecast.wire.codec import codec_named

PUBLICATION = Pub("t", MessageId(0, 0, 1), (b"",), ())
ACKNOWLEDGEMENT = PubAck("t", MessageId(0, 0, 1))
for packet in (PUBLICATION, ACKNOWLEDGEMENT):
    packet.frame = codec_named("vcube-ps").encode(packet)


def carry_all(net: Network, now: float, source: int, destinations: tuple[int, ...], packet) -> None:
    net.carry(now, source, destinations, packet)


def carry_each(net: Network, now: float, source: int, destinations: tuple[int, ...], packet) -> None:
    for destination in destinations:
        net.carry_one(now, source, destination, packet)


WAYS = pytest.mark.parametrize("way", [carry_all, carry_each])


class Probe(Network):
    """A network that tells at once when what it carries will arrive, in the order of sending."""

    def arrivals(self, now, source, destinations, packet=PUBLICATION, way=carry_each):
        way(self, now, source, destinations, packet)
        events = list(iter(self.scheduler.pop, None))
        return [time for time, *_ in sorted(events, key=lambda event: event[1])]


def network(**options) -> Probe:
    return Probe(4, parse_delay("constant:100", Random(1), 4), **options)


@WAYS
def test_one_output_queue_per_node_served_one_packet_at_a_time(way):
    """At time 10 node 0 sends to three, at 11 to one more: 1 processing, then one transmission after the other."""
    net = network(processing=1, transmission=2)
    assert net.arrivals(10, 0, (1, 2, 3), way=way) == [10 + 1 + 2 + 100, 10 + 1 + 4 + 100, 10 + 1 + 6 + 100]
    assert net.free_at[0] == 17
    assert net.arrivals(11, 0, (1,), way=way) == [17 + 2 + 100], "ready at 12, but the queue is busy until 17"
    assert net.arrivals(11, 1, (0,), way=way) == [11 + 1 + 2 + 100], "another node has its own queue"
    assert net.arrivals(50, 0, (1,), way=way) == [50 + 1 + 2 + 100], "the queue has run empty"


@WAYS
def test_queue_lengths_are_what_a_joining_packet_sees(way):
    net = network(processing=1, transmission=2)
    net.arrivals(10, 0, (1, 2, 3), way=way)  # they find 0, 1 and 2 packets
    net.arrivals(11, 0, (1,), way=way)  # ready at 12, waits until 17: 2.5 transmissions
    assert net.queued == [4, 0, 0, 0]
    assert net.mean_queue_lengths() == [1 + (0 + 1 + 2 + 2.5) / 4, 0, 0, 0], "a packet counts itself"


def test_without_transmission_time_nothing_queues():
    net = network(processing=0, transmission=0)
    assert net.arrivals(10, 0, (1, 2, 3)) == [110, 110, 110]
    assert net.mean_queue_lengths() == [1, 0, 0, 0]


def test_packets_past_the_queue_neither_wait_nor_make_others_wait():
    net = network(processing=1, transmission=2, queued_control=False)
    net.arrivals(10, 0, (1, 2, 3))
    assert net.arrivals(10, 0, (1, 2), ACKNOWLEDGEMENT) == [113, 113]
    assert net.arrivals(10, 0, (1,)) == [10 + 1 + 8 + 100]


@pytest.mark.parametrize("fifo", [True, False])
def test_fifo_links_never_let_a_packet_overtake(fifo: bool):
    net = Probe(2, parse_delay("uniform:1:500", Random(1), 2), fifo_links=fifo)
    times = [net.arrivals(float(now), 0, (1,))[0] for now in range(200)]
    assert (times == sorted(times)) is fifo


def test_fifo_holds_per_link_only():
    delays = iter([500.0, 1.0, 1.0])
    net = Probe(3, lambda source, destination: next(delays), processing=0, transmission=0, fifo_links=True)
    assert net.arrivals(0, 0, (1,)) == [500]
    assert net.arrivals(1, 0, (2,)) == [2], "another link"
    assert net.arrivals(2, 0, (1,)) == [500], "not before the earlier one"


@WAYS
def test_what_was_sent_is_counted(way):
    net = network()
    net.arrivals(0, 0, (1, 2), way=way)
    net.arrivals(0, 1, (0,), ACKNOWLEDGEMENT, way=way)
    assert (net.packets, net.messages) == (3, 2)
    assert net.bytes == 2 * len(PUBLICATION.frame) + len(ACKNOWLEDGEMENT.frame)
