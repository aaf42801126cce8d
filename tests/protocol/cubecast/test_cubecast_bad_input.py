"""Foreign and malformed packets are refused before any state changes, and the machine stays usable."""

from dataclasses import replace

import pytest

from cubecast.errors import RemoteProtocolError
from cubecast.ids import MessageId
from cubecast.protocol.cubecast import Cubecast, Parameters
from cubecast.protocol.cubecast.packets import (
    Ack,
    Hello,
    Obituary,
    Settle,
    SettlePart,
    Stable,
    Wave,
    WaveAck,
    Welcome,
)
from cubecast.protocol.cubecast.parameters import MOST_MESSAGES
from cubecast.protocol.cubecast.publication_packets import Publication
from cubecast.protocol.cubecast.vocabulary import Dependency, Entry, Holding, Life, Member, Standing, Start
from cubecast.protocol.effects import Deliver, Gap

GOOD = Publication(0, (), "t", MessageId(0, 0, 1), (b"x",), b"\x0f", (), (Start(1, b"\x0f"),), (), 0)
WRONG = {
    "a foreign object": "hello",
    "sender's incarnation": replace(GOOD, by=-1),
    "verdict about nobody": replace(GOOD, dead=(Life(9, 0),)),
    "verdict about our future": replace(GOOD, dead=(Life(3, 5),)),
    "no messages": replace(GOOD, payloads=()),
    "too many messages": replace(GOOD, payloads=(b"x",) * (MOST_MESSAGES + 1)),
    "source outside the cube": replace(GOOD, message=MessageId(9, 0, 1)),
    "impossible incarnation": replace(GOOD, message=MessageId(0, -1, 1)),
    "impossible counter": replace(GOOD, message=MessageId(0, 0, 0)),
    "in our own name": replace(GOOD, message=MessageId(3, 0, 1)),
    "not addressed to us": replace(GOOD, members=b"\x07"),
    "destinations outside the cube": replace(GOOD, members=b"\xff"),
    "an epoch of nobody": replace(GOOD, epochs=(Member(9, 0, 1),)),
    "stable before published": replace(GOOD, stable=1),
    "a start after the message": replace(GOOD, starts=(Start(2, b"\x08"),)),
    "a dependency twice": replace(GOOD, dependencies=(Dependency(1, 0, 1, b"", ()), Dependency(1, 0, 2, b"", ()))),
    "a dependency on itself": replace(GOOD, dependencies=(Dependency(0, 0, 1, b"", ()),)),
    "absurdly many dependencies": replace(GOOD, dependencies=tuple(Dependency(1, k, 1, b"", ()) for k in range(100))),
    "an acknowledgement of nothing": Ack(0, (), "t", (MessageId(0, 0, 0),)),
    "negative stability": Stable(0, (), "t", -1),
    "somebody else's subscription": Wave(0, (), "t", 1, Entry(1, 0, 1, True)),
    "subscription number zero": WaveAck(0, (), "t", 0, 1, (Entry(1, 0, 0, True),)),
    "our future subscription": WaveAck(0, (), "t", 0, 1, (Entry(3, 7, 1, True),)),
    "our future incarnation": Welcome(0, (), 0, True, (Standing(3, 7, True),)),
    "a piece beyond the last": SettlePart(0, (), 1, False, (), 2, 2, ()),
    "a range backwards": Settle(0, (), 1, False, (), (Holding("t", 1, 0, True, ((3, 2),)),)),
    "life outside the cube": Obituary(0, (), 0, b"\xff\xff"),
}


def machine():
    parameters = Parameters(2, founders=0b1111, ids=0b1111, max_dependencies=64)
    made = Cubecast(3, parameters, initial={"t": 0b1111})
    made.on_start(0.0)
    return made


@pytest.mark.parametrize("packet", WRONG.values(), ids=WRONG.keys())
def test_is_refused_and_changes_nothing(packet):
    under_test, untouched = machine(), machine()
    with pytest.raises(RemoteProtocolError):
        under_test.on_packet(0.0, 0, packet)
    assert under_test.on_packet(1.0, 0, GOOD) == untouched.on_packet(1.0, 0, GOOD)
    under_test.invariants()


@pytest.mark.parametrize("sender", [-1, 4, 3])
def test_senders_must_be_other_ids_of_the_cube(sender):
    with pytest.raises(RemoteProtocolError):
        machine().on_packet(0.0, sender, Hello(0, ()))


def test_the_good_one_is_delivered():
    assert any(isinstance(effect, Deliver) for effect in machine().on_packet(0.0, 0, GOOD))


@pytest.mark.parametrize("counter", [2**31, 2**62])
@pytest.mark.parametrize("starts", [(), (Start(1, b"\x0f"),)], ids=["no start", "from the first on"])
def test_a_lie_about_a_counter_costs_no_more_than_the_truth(counter, starts):
    """Whoever depends on the two thousand millionth message of a crashed node does not get that many names of it."""
    under_test = machine()
    lie = replace(GOOD, dependencies=(Dependency(2, 0, counter, b"", starts),))
    assert not any(isinstance(effect, Deliver) for effect in under_test.on_packet(0.0, 0, lie))
    effects = [effect for peer in (0, 1, 2) for effect in under_test.on_peer_down(1.0, peer)]
    (gap,) = (effect for effect in effects if isinstance(effect, Gap))
    assert gap.missing[-1] == MessageId(2, 0, counter) and len(gap.missing) <= 16 * 8 * 512
    assert [effect.message for effect in effects if isinstance(effect, Deliver)] == [lie.message]
