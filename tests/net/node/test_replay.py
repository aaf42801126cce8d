"""A recorded node, told again what it was told, does again what it did; and a record that was altered shows."""

from dataclasses import replace

import pytest

from cubecast.errors import RemoteProtocolError, TraceError
from cubecast.ids import MessageId
from cubecast.net.links.framing import Splitter, framed
from cubecast.net.node.driver import INPUTS
from cubecast.net.node.input_log import InputLog, Seating, encode_effects, replay, replay_all
from cubecast.patterns import Selection
from cubecast.protocol.cubecast.packets import Convoy, Hello, WaveAck
from cubecast.protocol.cubecast.parameters import Timer
from cubecast.protocol.cubecast.publication_packets import Publication
from cubecast.protocol.cubecast.vocabulary import Entry, Start
from cubecast.protocol.effects import Deliver, Send
from support.live_codec import decode, encode

CHOSEN = {"round_length": "1.0", "patience": "3.0"}
SEATING = Seating("cubecast", CHOSEN, 1, 0, 1, is_founder=True, contacts=(), seed="7")


def asking(machine):
    def ask(name, now, arguments):
        if name == "packet":
            return machine.on_packet(now, *arguments)
        return machine.handle(now, INPUTS[name](*arguments))

    return ask


def recorded(directory):
    """A founder that somebody joins, who then says something, and something impossible."""
    machine = SEATING.machine()
    log = InputLog(directory, SEATING, b"instance")
    said = Publication(0, (), "t.a", MessageId(0, 0, 1), (b"x",), b"\x03", (), (Start(1, b"\x03"),), (), 0)

    def step(name, now, *arguments):
        log.step(asking(machine), name, now, arguments)

    def hear(now, packet):
        step("packet", now, 0, decode(encode(packet)))

    step("on_start", 0.0)
    step("subscribe", 0.5, "t.b")
    step("follow", 1.0, Selection(["t.*"]))
    hear(2.0, Hello(0, ()))
    hear(3.0, said)
    with pytest.raises(RemoteProtocolError):
        hear(3.5, Hello(-1, ()))
    step("publish", 4.0, "t.a", (b"y", b"z"))
    step("on_timer", 5.0, Timer.RETRY)
    step("on_timer", 6.0, Timer.ROUND)
    step("on_peer_down", 7.0, 0)
    log.close()
    (path,) = directory.iterdir()
    return path


def test_the_same_inputs_give_the_same_effects(tmp_path):
    recorded(tmp_path)
    assert replay_all(tmp_path) == (10, [])


def test_when_a_packet_came_is_no_effect():
    packet = decode(encode(Publication(0, (), "t", MessageId(0, 0, 1), (b"x",), b"\x03", (), (), (), 0)))
    delivered = [Deliver("t", packet.message, packet.payloads, packet)]
    before = encode_effects(delivered, encode)
    packet.born = 7.0
    assert encode_effects(delivered, encode) == before


def test_a_node_that_aggregates_is_replayed_as_one(tmp_path):
    seating = replace(SEATING, parameters=CHOSEN | {"aggregation": "on", "max_batch": "1", "eager": "0"})
    ask, log = asking(seating.machine()), InputLog(tmp_path, seating, b"instance")
    log.step(ask, "on_start", 0.0, ())
    log.step(ask, "packet", 0.5, (0, decode(encode(Hello(0, ())))))
    log.step(ask, "publish", 1.0, ("t", (b"y", b"z")))
    answer = decode(encode(WaveAck(0, (), "t", 0, 1, (Entry(0, 0, 1, True),))))
    effects = log.step(ask, "packet", 2.0, (0, answer))
    log.close()
    assert any(isinstance(one, Send) and isinstance(one.packet, Convoy) for one in effects), "or nothing is tested"
    assert replay_all(tmp_path) == (4, [])


@pytest.mark.parametrize("missing", [3, 4, 7])
def test_a_step_that_is_left_out_shows(tmp_path, missing):
    path = recorded(tmp_path)
    records = Splitter().feed(path.read_bytes())
    path.write_bytes(b"".join(framed(record) for at, record in enumerate(records) if at != missing))
    _, difference = replay(path)
    assert difference is not None and difference.step >= missing - 1
    assert path.name in str(difference)


def test_a_record_torn_by_a_crash_is_replayed_up_to_there(tmp_path):
    path = recorded(tmp_path)
    path.write_bytes(path.read_bytes()[:-5])
    assert replay(path) == (9, None)


def test_a_damaged_record_is_no_record(tmp_path):
    path = recorded(tmp_path)
    data = bytearray(path.read_bytes())
    data[200] ^= 1
    path.write_bytes(data)
    with pytest.raises(TraceError, match="damaged"):
        replay(path)
    path.write_bytes(framed(b"something else"))
    with pytest.raises(TraceError, match="no record"):
        replay(path)
    with pytest.raises(TraceError, match="holds no records"):
        replay_all(tmp_path / "elsewhere")
