"""Announcements of what faulty nodes left fit into packets, whatever the number of topics, and count as a whole."""

import random

import pytest

from cubecast.errors import BadInput
from cubecast.ids import MessageId
from cubecast.protocol.cubecast import Cubecast, Parameters
from cubecast.protocol.cubecast.packets import Settle, SettlePart
from cubecast.protocol.cubecast.parameters import MOST_MESSAGES, Timer
from cubecast.protocol.cubecast.publication_packets import Publication
from cubecast.protocol.cubecast.settlement import Pieces, split
from cubecast.protocol.cubecast.vocabulary import Holding, Life, Start
from cubecast.protocol.effects import Gap, Send
from cubecast.wire.codec import MAX_PACKET_BYTES
from support.live_codec import decode, encode

MOST_BYTES = 256 << 10
TOPICS = [f"topic.{number}.{'x' * 100}" for number in range(5000)]
START = (Start(1, b"\x0f"),)
FAULTY = (Life(3, 0),)


def announcement(topics=TOPICS, version=1, asking=True):
    holdings = tuple(Holding(topic, 3, 0, False, ((1, 1 << 40),)) for topic in topics)
    return Settle(0, FAULTY, version, asking, FAULTY, holdings)


def test_small_ones_stay_whole():
    small = announcement(TOPICS[:3])
    assert split(small, MOST_BYTES) == [small]
    assert split(announcement([]), MOST_BYTES) == [announcement([])]


def test_large_ones_are_cut_and_put_together_in_any_order():
    whole = announcement()
    parts = split(whole, MOST_BYTES)
    assert len(encode(whole)) > MAX_PACKET_BYTES / 2
    assert len(parts) > 2 and max(len(encode(part)) for part in parts) <= MOST_BYTES + 1000
    assert [part.asking for part in parts] == [False] * (len(parts) - 1) + [True]
    for seed in range(5):
        random.Random(seed).shuffle(parts)
        pieces = Pieces()
        results = [pieces.add(1, decode(encode(part))) for part in parts]
        assert results[:-1] == [None] * (len(parts) - 1)
        assert results[-1] == whole


def test_pieces_of_different_announcements_are_not_mixed():
    old, new = split(announcement(version=1), MOST_BYTES), split(announcement(TOPICS[::-1], version=2), MOST_BYTES)
    pieces = Pieces()
    assert [pieces.add(1, part) for part in (*old[:-1], new[0])] == [None] * len(old)
    assert pieces.add(1, old[-1]) is None, "too late"
    assert [pieces.add(2, part) for part in old[:-1]] == [None] * (len(old) - 1)
    assert pieces.add(1, new[-1]) is None
    for part in new[1:-2]:
        assert pieces.add(1, part) is None
    whole = pieces.add(1, new[-2])
    assert whole is not None and whole.version == 2 and len(whole.holdings) == len(TOPICS)


def sent(effects):
    return [effect.packet for effect in effects if isinstance(effect, Send)]


def test_a_node_with_very_many_topics_announces_in_packets_that_fit():
    everybody = dict.fromkeys(TOPICS, 0b1111)
    machine = Cubecast(0, Parameters(2, founders=0b1111, ids=0b1111), initial=everybody)
    machine.on_start(0.0)
    for topic in TOPICS:
        machine.on_packet(0.0, 3, Publication(0, (), topic, MessageId(3, 0, 1), (b"x",), b"\x0f", (), START, (), 0))
    packets = sent(machine.on_peer_down(1.0, 3))
    parts = [packet for packet in packets if isinstance(packet, SettlePart)]
    assert sum(len(part.holdings) for part in parts) == len(TOPICS)
    assert max(len(encode(packet)) for packet in packets) < MAX_PACKET_BYTES


def test_nothing_is_concluded_from_a_part():
    """Node 1 has something that node 0 does not: it is lost to nobody until the whole of an announcement denies it."""
    machine = Cubecast(0, Parameters(2, founders=0b1011, ids=0b1011))
    machine.on_start(0.0)
    machine.on_peer_down(1.0, 3)
    parts = split(announcement(), MOST_BYTES)
    for part in parts[:-1]:
        effects = machine.on_packet(2.0, 1, part)
        assert not sent(effects) and not any(isinstance(effect, Gap) for effect in effects)
    answers = sent(machine.on_packet(2.0, 1, parts[-1]))
    assert [type(answer) for answer in answers] == [Settle], "it was asked, once"


def test_nodes_may_choose_different_batches():
    small = Cubecast(0, Parameters(1, founders=0b11, max_batch=1), initial={"t": 0b11})
    large = Cubecast(1, Parameters(1, founders=0b11, max_batch=512), initial={"t": 0b11})
    (packet,) = sent(large.publish(0.0, "t", [b"x"] * 512))
    assert len(packet.payloads) == 512
    small.on_packet(0.0, 1, packet)
    assert small.last_delivered("t", 1, 0).counter == 512
    with pytest.raises(BadInput, match="max_batch"):
        Parameters(1, max_batch=MOST_MESSAGES + 1)


def parts_to(machine, now):
    return [one for one in sent(machine.on_timer(now, Timer.RETRY)) if isinstance(one, SettlePart)]


def test_what_is_said_again_completes_what_was_said_before():
    """Else pieces of a later announcement that overtake those of an earlier one would undo it, again and again."""
    parameters = Parameters(2, founders=0b1111, ids=0b1111, announcement_bytes=1)
    machine = Cubecast(0, parameters, initial={"t": 0b1111, "u": 0b1111})
    machine.on_start(0.0)
    for topic in ("t", "u"):
        message = Publication(0, (), topic, MessageId(3, 0, 1), (b"x",), b"\x0f", (), START, (), 0)
        machine.on_packet(0.0, 3, message)
    machine.on_peer_down(0.0, 3)
    first, again = parts_to(machine, 1000.0)[:2], parts_to(machine, 2000.0)[:2]
    assert [part.part for part in first] == [part.part for part in again] == [0, 1]
    pieces = Pieces()
    assert pieces.add(0, again[0]) is None
    whole = pieces.add(0, first[1])
    assert whole is not None and [holding.topic for holding in whole.holdings] == ["t", "u"]

    machine.on_peer_down(3000.0, 2)
    assert all(part.version > whole.version for part in parts_to(machine, 3000.0)), "it says something else now"
