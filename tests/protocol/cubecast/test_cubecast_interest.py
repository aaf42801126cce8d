"""Interests: a node gets what is published to topics nobody named to it, from the first message on."""

from dataclasses import replace
from random import Random

import pytest

from cubecast.experiments.swarm import judge
from cubecast.protocol.cubecast import Cubecast, Parameters
from cubecast.protocol.cubecast.inspection import reached
from cubecast.protocol.cubecast.interests import BEGUN_AT_ONCE, MOST_UNDER_WAY
from cubecast.protocol.cubecast.packets import Inquiry, TopicList, Wave, WaveAck
from cubecast.protocol.cubecast.parameters import Timer
from cubecast.protocol.cubecast.vocabulary import Entry
from cubecast.protocol.effects import InterestKnown, InterestMatched, Send, SetTimer, Subscribed, Unsubscribed
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
        effects, told = asker.follow(0.0, news), []
        requests = [packet for peers, packet in sent(Inquiry, effects) if peers == (0,)]
        while requests:
            ((_, answer),) = sent(TopicList, teller.on_packet(1.0, 3, requests.pop()))
            told.append(answer.topics)
            requests = [packet for _, packet in sent(Inquiry, asker.on_packet(1.0, 0, answer))]
        assert len(told) == 3
        assert set().union(*told) == {f"news.{k:05}" for k in range(count)} | {"news.old"}

    def test_an_answer_to_an_earlier_life_of_the_teller_goes_on_from_the_beginning(self):
        teller = node(0)
        teller.on_packet(0.0, 1, Wave(0, (), "news.new", 1, None))
        ((_, answer),) = sent(TopicList, teller.on_packet(1.0, 3, Inquiry(0, (), 1, "news.of another life")))
        assert answer.topics == ("news.old", "news.new")


MANY = 5000


class TestManyTopics:
    """However many an interest matches, a step begins a few subscriptions, and only so many are under way."""

    def crowd(self):
        """A node that knows of many topics, and follows them."""
        machine = node(3, members=0)
        for k in range(1, MANY):
            machine.on_packet(0.0, 1, Wave(0, (), f"news.{k:05}", 1, None))
        return machine, machine.follow(1.0, news)

    def steps(self, machine, effects, answers=(0, 1, 2)):
        """Everybody answers everything in time, until nothing is left to do; each step's effects."""
        waves, topics_of = [], {}
        while True:
            yield effects
            for _, wave in sent(Wave, effects):
                waves += [(peer, wave) for peer in answers]
            topics_of |= {peer: packet for peers, packet in sent(Inquiry, effects) for peer in peers}
            if topics_of:
                peer, asked = topics_of.popitem()
                effects = machine.on_packet(2.0, peer, TopicList(0, (), 0, asked.number, asked.after, (), False))
            elif waves:
                peer, wave = waves.pop(0)
                effects = machine.on_packet(2.0, peer, WaveAck(0, (), wave.topic, 0, wave.number, ()))
            elif any(one.timer is Timer.WISHES for one in of(SetTimer, effects)):
                effects = machine.on_timer(2.0, Timer.WISHES)
            else:
                return

    def check(self, steps):
        """The topics asked about, and the effects of the last step."""
        asked, most_at_once, effects, under_way = [], 0, [], set()
        for effects in steps:
            waves = [packet.topic for _, packet in sent(Wave, effects)]
            most_at_once, asked = max(most_at_once, len(waves)), asked + waves
            under_way = (under_way | set(waves)) - {one.topic for one in of(Subscribed, effects)}
            assert len(under_way) <= MOST_UNDER_WAY
        assert 0 < most_at_once <= 2 * BEGUN_AT_ONCE
        assert len(set(asked)) == len(asked)
        return set(asked), effects

    def test_a_step_begins_a_few(self):
        asked, last = self.check(self.steps(*self.crowd()))
        assert len(asked) == MANY
        assert of(InterestKnown, last)

    def test_nobody_is_asked_for_more_before_somebody_answers(self):
        machine, effects = self.crowd()
        begun = len(sent(Wave, effects))
        while any(one.timer is Timer.WISHES for one in of(SetTimer, effects)):
            effects = machine.on_timer(1.0, Timer.WISHES)
            begun += len(sent(Wave, effects))
        assert begun == MOST_UNDER_WAY
        assert any(f"{MANY - begun} topics wait" in line for line in machine.waiting())
        for peer in (0, 1, 2):
            effects = machine.on_peer_down(2.0, peer)
        assert sent(Wave, effects) == []  # nobody is left who could be asked
        steps = list(self.steps(machine, effects))
        assert sum(len(of(Subscribed, one)) for one in steps) == MANY
        assert of(InterestKnown, steps[-1])

    def test_given_up_they_are_left_a_few_at_a_time(self):
        machine, effects = self.crowd()
        assert of(InterestKnown, [*self.steps(machine, effects)][-1])
        left = [one.topic for step in self.steps(machine, machine.follow(3.0, None)) for one in of(Unsubscribed, step)]
        assert len(set(left)) == len(left) == MANY
        assert machine.waiting() == []

    def test_changed_minds_halfway_are_followed(self):
        machine, effects = self.crowd()
        effects += machine.follow(2.0, lambda topic: topic.endswith("7"))
        assert of(InterestKnown, [*self.steps(machine, effects)][-1])
        assert {one.topic for one in reached(machine.life) if one.is_confirmed} == {
            f"news.{k:05}" for k in range(7, MANY, 10)
        }

    def test_who_is_about_to_publish_to_one_that_waits_is_told(self):
        machine, _ = self.crowd()
        last = f"news.{MANY - 1:05}"
        effects = machine.on_packet(1.0, 1, Wave(0, (), last, 2, None))
        assert of(InterestMatched, effects)[0] == InterestMatched(last, True)
        ((_, answer),) = sent(WaveAck, effects)
        assert answer.entries == (Entry(3, 0, 1, True),)

    def test_one_that_waits_can_be_named_and_left(self):
        machine, _ = self.crowd()
        last = f"news.{MANY - 1:05}"
        assert sent(Wave, machine.subscribe(1.0, last))[0][1].topic == last
        assert not of(Unsubscribed, machine.unsubscribe(1.0, last)), "the interest matches it all the same"

    def test_another_life_takes_them_up_a_few_at_a_time(self):
        machine, effects = self.crowd()
        assert of(InterestKnown, [*self.steps(machine, effects)][-1])
        machine.on_expelled(4.0, 0)
        effects = machine.on_timer(5.0, Timer.ALONE)
        assert of(Subscribed, effects)
        steps = list(self.steps(machine, effects))
        assert sum(len(of(Subscribed, one)) for one in steps) == MANY
        assert max(len(of(Subscribed, one)) for one in steps) <= 2 * BEGUN_AT_ONCE
        assert of(InterestKnown, steps[-1])


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
