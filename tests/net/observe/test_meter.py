"""What the meter makes of the steps of a machine that is told by hand what arrives."""

from typing import Any

import pytest

from cubecast.ids import MessageId
from cubecast.net.observe.meter import BOUNDS, Histogram, Meter, percentile
from cubecast.protocol.cubecast.family import CubecastInspector
from cubecast.protocol.cubecast.machine import Cubecast
from cubecast.protocol.cubecast.packets import Ack, Convoy, Part
from cubecast.protocol.cubecast.parameters import Aggregation, Parameters, Timer
from cubecast.protocol.cubecast.publication_packets import Publication
from cubecast.protocol.cubecast.vocabulary import Dependency, Start, bitmap
from support.live_codec import decode, encode

ALL = 0b1111


class Metered:
    """A machine and its meter, as a driver has them."""

    def __init__(self, aggregation: Aggregation = Aggregation.OFF) -> None:
        self.noticed: list[tuple[Any, ...]] = []
        parameters = Parameters(2, founders=ALL, ids=ALL, window=4, aggregation=aggregation)
        self.machine = Cubecast(0, parameters, initial={"t": ALL})
        self.meter = Meter(lambda *what: self.noticed.append(what))
        self.meter.inspector, self.meter.encode = CubecastInspector(self.machine), encode
        self.tell("on_start", 0.0)

    def tell(self, name: str, now: float, *arguments: Any) -> None:
        entry = self.machine.on_packet if name == "packet" else getattr(self.machine, name)
        self.meter.step(name, now, arguments, entry(now, *arguments))

    def receive(self, now: float, sender: int, packet: Any) -> None:
        arrived = decode(encode(packet))
        arrived.born = now
        self.tell("packet", now, sender, arrived)


def publication(message: MessageId, *depends: MessageId, messages: int = 1) -> Publication:
    starts = (Start(1, bitmap(ALL)),)
    named = tuple(Dependency(*one, b"", starts) for one in depends)
    return Publication(0, (), "t", message, (b"abc",) * messages, bitmap(ALL), (), starts, named, 0)


def test_what_is_delivered_at_once_was_not_held():
    metered = Metered()
    metered.receive(1.0, 1, publication(MessageId(1, 0, 1), messages=5))
    meter = metered.meter
    assert meter.delivered == {"t": 5}
    assert (meter.holding.count, meter.holding.sum, meter.held) == (5, 0.0, {})


def test_what_waits_is_held_until_what_it_waits_for_comes():
    metered = Metered()
    meter = metered.meter
    metered.receive(1.0, 1, publication(MessageId(1, 0, 1), MessageId(2, 0, 1), messages=2))
    assert (meter.held_messages, meter.held_bytes, meter.delivered) == (2, 6, {})
    metered.receive(1.5, 2, publication(MessageId(2, 0, 1)))
    assert (meter.held_messages, meter.held_bytes, meter.delivered) == (0, 0, {"t": 3})
    assert meter.holding.count == 3 and meter.holding.sum == pytest.approx(1.0)
    assert meter.duplicates == 0


def test_what_comes_again_is_a_duplicate_held_or_delivered():
    metered = Metered()
    held = publication(MessageId(1, 0, 1), MessageId(2, 0, 1))
    metered.receive(1.0, 1, held)
    metered.receive(1.1, 1, held)
    assert (metered.meter.duplicates, metered.meter.held_messages) == (1, 1)
    metered.receive(1.2, 2, publication(MessageId(2, 0, 1)))
    metered.receive(1.3, 1, held)
    assert metered.meter.duplicates == 2 and metered.meter.delivered == {"t": 2}


def test_own_publications_until_they_are_stable():
    metered = Metered()
    meter = metered.meter
    metered.tell("publish", 1.0, "t", [b"abc", b"de"])
    assert (meter.published, meter.delivered, meter.unstable) == ({"t": 2}, {"t": 2}, 2)
    assert meter.holding.count == 0, "nothing arrived"
    assert meter.metadata.looked_at == 1
    assert meter.metadata.parts["payload"] == 5 and min(meter.metadata.parts.values()) > 0
    for child in (1, 2):
        metered.receive(1.25, child, Ack(0, (), "t", (MessageId(0, 0, 1),)))
    assert not meter._unstable, "a topic at rest leaves nothing behind"
    assert meter.unstable == 0 and meter.stability.count == 2 and meter.stability.sum == pytest.approx(0.5)


def test_what_nobody_answers_is_repeated():
    metered = Metered()
    metered.tell("publish", 1.0, "t", [b"abc"])
    assert metered.meter.repeated == 0
    metered.tell("on_timer", 2.0, Timer.RETRY)
    metered.tell("on_timer", 3.0, Timer.RETRY)
    assert metered.meter.repeated == 2, "to each of the two children"


def test_what_is_rare_is_noticed():
    metered = Metered()
    metered.receive(1.0, 1, publication(MessageId(1, 0, 1), MessageId(2, 0, 1)))
    metered.tell("on_peer_down", 2.0, 3)
    assert metered.noticed[0][:2] == ("suspected", 3)
    metered.tell("unsubscribe", 3.0, "t")
    assert metered.meter.held == {} and metered.meter.held_bytes == 0
    metered.receive(4.0, 1, publication(MessageId(1, 0, 2), messages=3))
    assert metered.meter.discarded == 3
    metered.tell("on_expelled", 5.0, 0)
    assert metered.meter.incarnations == 1 and metered.noticed[-1][0] == "reincarnated"


def test_publications_that_travel_together_are_told_apart():
    metered = Metered(Aggregation.ON)
    first, second = publication(MessageId(2, 0, 1)), publication(MessageId(1, 0, 1), MessageId(2, 0, 1))
    together = Convoy(0, (), "t", (Part.of(first), Part.of(second)))
    metered.receive(1.0, 1, together)
    assert metered.meter.delivered == {"t": 2} and metered.meter.holding.count == 2
    metered.receive(1.1, 1, together)
    assert metered.meter.duplicates == 2 and metered.meter.delivered == {"t": 2}


def test_percentiles():
    histogram = Histogram()
    assert percentile(histogram.counts, 0.5) is None
    for milliseconds in range(1, 101):
        histogram.add(milliseconds / 1000)
    assert percentile(histogram.counts, 0.5) == pytest.approx(0.050, rel=0.01)
    assert percentile(histogram.counts, 0.99) == pytest.approx(0.099, rel=0.02)
    histogram.add(1e6, weight=1000)
    assert percentile(histogram.counts, 0.99) == BOUNDS[-1]
    assert percentile([7] + [0] * len(BOUNDS), 0.99) == 0.0
