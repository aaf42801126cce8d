"""Interests: a node gets what is published to topics nobody named to it, from the first message on."""

from dataclasses import replace
from random import Random

import pytest

from cubecast.experiments.swarm import judge
from cubecast.protocol.cubecast import Cubecast, Parameters
from cubecast.protocol.cubecast.packets import Inquiry, TopicList, Wave, WaveAck
from cubecast.protocol.cubecast.vocabulary import Entry
from cubecast.protocol.effects import InterestKnown, InterestMatched, Send, Unsubscribed
from cubecast.sim.faults import parse_faults
from cubecast.sim.schedule import Action, Schedule
from cubecast.sim.swarm_run import run
from support import planted

ALL = 0b1111


def node(i, members=0b0011):
    machine = Cubecast(i, Parameters(2, founders=ALL, ids=ALL), initial={"news.old": members})
    machine.on_start(0.0)
    return machine


def of(kind, effects):
    return [effect for effect in effects if isinstance(effect, kind)]


def sent(kind, effects):
    return [(one.peers, one.packet) for one in of(Send, effects) if isinstance(one.packet, kind)]


def news(topic):
    return topic.startswith("news.")


class TestMachine:
    def test_known_topics_are_matched_when_the_interest_is_declared(self):
        effects = node(3).follow(0.0, news)
        assert of(InterestMatched, effects) == [InterestMatched("news.old", True)]
        assert [packet.topic for _, packet in sent(Wave, effects)] == ["news.old"]
        assert [peers for peers, _ in sent(Inquiry, effects)] == [(0,), (1,), (2,)]

    def test_the_answer_to_a_wave_carries_the_subscription_it_caused(self):
        machine = node(3)
        machine.follow(0.0, news)
        effects = machine.on_packet(1.0, 1, Wave(0, (), "news.new", 1, None))
        assert of(InterestMatched, effects) == [InterestMatched("news.new", True)]
        ((peers, answer),) = sent(WaveAck, effects)
        assert (peers, answer.entries) == ((1,), (Entry(3, 0, 1, True),))

    def test_other_topics_are_left_alone(self):
        machine = node(3)
        machine.follow(0.0, news)
        effects = machine.on_packet(1.0, 1, Wave(0, (), "weather", 1, None))
        assert not of(InterestMatched, effects)
        assert sent(WaveAck, effects)[0][1].entries == ()

    def test_what_it_publishes_to_first_it_subscribes_to_first(self):
        machine = node(3)
        machine.follow(0.0, news)
        effects = machine.publish(1.0, "news.mine", [b"x"])
        assert of(InterestMatched, effects) == [InterestMatched("news.mine", True)]
        assert [packet.entry for _, packet in sent(Wave, effects)] == [Entry(3, 0, 1, True)]

    def test_the_interest_is_known_when_everybody_told_its_topics_and_knows_the_subscriptions(self):
        machine = node(3)
        machine.follow(0.0, news)
        topics = {0: ("news.old", "news.there"), 1: ("weather",), 2: ()}
        matched = []
        for peer, some in topics.items():
            effects = machine.on_packet(1.0, peer, TopicList(0, (), 0, 1, "", some, False))
            matched += [one.topic for one in of(InterestMatched, effects)]
        assert matched == ["news.there"]
        seen = [
            of(InterestKnown, machine.on_packet(2.0, peer, WaveAck(0, (), topic, 0, 1, ())))
            for topic in ("news.old", "news.there")
            for peer in (0, 1, 2)
        ]
        assert [len(one) for one in seen] == [0, 0, 0, 0, 0, 1]

    def test_a_peer_that_dies_is_not_waited_for(self):
        machine = node(3)
        machine.follow(0.0, lambda topic: False)
        for peer in (0, 1):
            machine.on_packet(1.0, peer, TopicList(0, (), 0, 1, "", (), False))
        assert any("the interest" in line for line in machine.waiting())
        assert of(InterestKnown, machine.on_peer_down(2.0, 2))
        assert not any("the interest" in line for line in machine.waiting())

    def test_an_interest_that_was_dropped_never_becomes_known(self):
        machine = node(3)
        machine.follow(0.0, lambda topic: False)
        machine.follow(0.0, None)
        assert not machine.waiting()
        for peer in (0, 1, 2):
            assert machine.on_packet(1.0, peer, TopicList(0, (), 0, 1, "", (), False)) == []

    def test_a_narrower_interest_leaves_what_it_does_not_match_and_was_not_named(self):
        machine = node(3)
        machine.follow(0.0, news)
        machine.on_packet(1.0, 1, Wave(0, (), "news.new", 1, None))
        machine.subscribe(1.0, "news.new")
        effects = machine.follow(2.0, None)
        assert of(InterestMatched, effects) == [InterestMatched("news.old", False)]
        assert of(Unsubscribed, effects) == [Unsubscribed("news.old")]
        assert of(Unsubscribed, machine.unsubscribe(3.0, "news.new")) == [Unsubscribed("news.new")]

    def test_many_topics_are_told_in_parts(self):
        count = 2 * Parameters().topics_per_answer + 1
        asker, teller = node(3), node(0)
        for k in range(count):
            teller.on_packet(0.0, 1, Wave(0, (), f"news.{k:05}", 1, None))
        effects, rounds = asker.follow(0.0, news), 0
        requests = [packet for peers, packet in sent(Inquiry, effects) if peers == (0,)]
        matched = set()
        while requests:
            rounds += 1
            ((_, told),) = sent(TopicList, teller.on_packet(1.0, 3, requests.pop()))
            effects = asker.on_packet(1.0, 0, told)
            matched |= {one.topic for one in of(InterestMatched, effects)}
            requests = [packet for _, packet in sent(Inquiry, effects)]
        assert rounds == 3
        assert len(matched) == count


def storm(seed):
    """Some follow `n*` from early on, others publish to topics that come to be while they do; nodes come and go."""
    rng = Random(seed)
    followers = rng.sample(range(8), 3)
    actions = [Action(rng.choice((0.0, 300.0)), "follow", one, "n*") for one in followers]
    for _ in range(30):
        topic = f"n{rng.randrange(12)}" if rng.random() < 0.8 else "t"
        actions.append(Action(round(rng.uniform(0, 2500), 1), "publish", rng.randrange(8), topic))
    for _ in range(4):
        kind = rng.choice(("subscribe", "unsubscribe"))
        actions.append(Action(round(rng.uniform(0, 2500), 1), kind, rng.randrange(8), f"n{rng.randrange(12)}"))
    return Schedule(
        "cubecast",
        seed,
        8,
        tuple(range(8)),
        {"t": (0, 1, 2)},
        {"retry": "500.0"},
        "uniform:10:300",
        False,
        tuple(sorted(actions)),
        (),
        (),
        reactions=10,
    )


def missed_of(schedule):
    """(publications after an interest was known that matter to it, those of them its node did not deliver)."""
    outcome = run(schedule)
    named = {(one.node, one.topic) for one in schedule.actions if one.kind == "unsubscribe"}
    stopped = {event.node for event in outcome.events if event.kind in ("stop", "crash")}
    owed = {
        (node, event.topic, event.source, event.source_incarnation, event.counter)
        for node, since in outcome.interests_known.items()
        for event in outcome.events
        if event.kind == "publish" and event.time > since and event.topic.startswith("n")
        if (node, event.topic) not in named and node not in stopped
    }
    made = {
        (event.node, event.topic, event.source, event.source_incarnation, event.counter)
        for event in outcome.events
        if event.kind == "deliver"
    }
    return owed, owed - made


def test_nothing_is_missed_of_topics_that_come_to_be_later():
    total = 0
    for seed in range(20):
        owed, missed = missed_of(storm(seed))
        total += len(owed)
        assert not missed, (seed, missed)
    assert total > 200, "the storms are too calm to prove anything"


def test_every_promise_holds_for_interests():
    for seed in range(20):
        failure = judge(storm(seed))
        assert failure is None, (failure.kind, failure.reasons, failure.replay)


@pytest.mark.interpreted
def test_answering_before_subscribing_would_miss_something():
    with planted.interest_after_the_answer():
        assert any(missed_of(storm(seed))[1] for seed in range(10))


@pytest.mark.parametrize("seed", range(10))
def test_interests_survive_crashes_suspicions_and_loss(seed):
    faults = parse_faults("crash:7@900,suspect:2@700-1300,loss:10%@0-2000,crash:6@400,restart:6@1000")
    schedule = replace(storm(seed), faults=faults)
    failure = judge(schedule)
    assert failure is None, (failure.kind, failure.reasons, failure.replay)
    assert not missed_of(schedule)[1]
