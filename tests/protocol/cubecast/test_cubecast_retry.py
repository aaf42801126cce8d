"""What is not answered is sent again; a topic at rest costs nothing, however many there are."""

import pytest

from cubecast.ids import MessageId
from cubecast.protocol.cubecast.lifetime import TICKED_AT_ONCE
from cubecast.protocol.cubecast.machine import Cubecast
from cubecast.protocol.cubecast.packets import Ack, Wave
from cubecast.protocol.cubecast.parameters import Parameters, Timer
from cubecast.protocol.cubecast.publication_packets import Publication
from cubecast.protocol.effects import Send, SetTimer

pytestmark = pytest.mark.interpreted  # methods of parts are replaced to see who calls them

TOPICS = [f"topic {number}" for number in range(100)]
BOTH = 0b11


def machine() -> Cubecast:
    """Node 0 of two, both subscribed to all topics before the start."""
    node = Cubecast(0, Parameters(1, founders=BOTH), initial=dict.fromkeys(TOPICS, BOTH))
    node.on_start(0.0)
    return node


def sent(effects, kind):
    return [effect.packet for effect in effects if isinstance(effect, Send) and isinstance(effect.packet, kind)]


def retries(effects):
    return [effect for effect in effects if isinstance(effect, SetTimer) and effect.timer is Timer.RETRY]


def ticked(node, monkeypatch):
    """The topics that the next retry looks at, and its effects."""
    looked_at = []
    for name in TOPICS:
        state = node.life.topic(name)
        monkeypatch.setattr(state.dissemination, "tick", _counting(looked_at, name, state.dissemination.tick))
    effects = node.on_timer(1.0, Timer.RETRY)
    monkeypatch.undo()
    node.invariants()
    return looked_at, effects


def _counting(seen, name, tick):
    def counted():
        seen.append(name)
        tick()

    return counted


def test_only_topics_with_something_under_way_are_looked_at(monkeypatch):
    node = machine()
    assert retries(node.publish(0.0, TOPICS[7], [b"x"]))
    for _ in range(3):
        looked_at, effects = ticked(node, monkeypatch)
        assert looked_at == [TOPICS[7]]
        assert retries(effects), "it is not answered yet"
    assert sent(effects, Publication), "so it is sent again"
    acknowledgement = Ack(0, (), TOPICS[7], (MessageId(0, 0, 1),))
    node.on_packet(2.0, 1, acknowledgement)
    ticked(node, monkeypatch)  # tells that it is stable, which is the last there is to say
    looked_at, effects = ticked(node, monkeypatch)
    assert looked_at == [] and effects == []


def test_what_was_at_rest_is_looked_at_again_once_something_begins(monkeypatch):
    node = machine()
    node.unsubscribe(0.0, TOPICS[3])
    looked_at, effects = ticked(node, monkeypatch)
    assert looked_at == [TOPICS[3]]
    assert sent(effects, Wave), "nobody answered the first one"
    node.publish(2.0, TOPICS[50], [b"x"])
    assert ticked(node, monkeypatch)[0] == [TOPICS[3], TOPICS[50]]


def test_of_very_many_topics_a_step_repeats_only_some_and_each_has_its_turn():
    many = [f"t{number}" for number in range(3 * TICKED_AT_ONCE)]
    node = machine()
    for name in many:
        node.subscribe(0.0, name)
    repeated, at = [], 0.0
    while len(repeated) < len(many):
        effects = node.on_timer(at, Timer.RETRY)
        waves = [packet.topic for packet in sent(effects, Wave)]
        assert len(waves) <= TICKED_AT_ONCE
        repeated += waves
        (timer,) = retries(effects)
        at = timer.at
    assert sorted(repeated) == sorted(many), "each once before any comes again"
    assert at == pytest.approx(Parameters(1).retry), "all of them within the time that one has"
