"""EpTO (M. Matos, thesis, chapter 5), step by step; and each printed rule that does not work, at work."""

from dataclasses import replace
from random import Random
from typing import Any

import pytest

from cubecast.errors import RemoteProtocolError
from cubecast.ids import MessageId
from cubecast.protocol.effects import Cut, Deliver, Gap, Published, Released, Send, SetTimer, Subscribed, Unsubscribed
from cubecast.protocol.epidemic.epto import IDLE, ROUND, Epto, balls
from cubecast.protocol.epidemic.epto_order import stability_of
from cubecast.protocol.epidemic.epto_parameters import (
    Ball,
    Clock,
    Entry,
    EptoParameters,
    Expired,
    Hello,
    PublishedParameters,
    Rule,
    Welcome,
)
from support.gossip import TOPIC, GossipWorld, Nature

GLOBAL = EptoParameters(clock=Clock.GLOBAL, ttl=2, fanout=2, idle=0)
LOGICAL = replace(GLOBAL, clock=Clock.LOGICAL)


def machine(parameters: EptoParameters = GLOBAL, node: int = 0, processes: int = 5, **more: Any) -> Epto:
    return Epto(node, range(processes), parameters, Random(1), settled=(TOPIC,), **more)


def ball(*entries: tuple[int, int, float, int]) -> Ball:
    """Of (source, counter, ts, ttl)."""
    made = tuple(Entry(MessageId(source, 0, counter), ts, ttl, b"%d" % source) for source, counter, ts, ttl in entries)
    return Ball(((TOPIC, made),))


def sent(effects: list[Any]) -> dict[tuple[int, int], int]:
    """(source, counter) → ttl of what left."""
    entries = [
        entry for effect in effects if isinstance(effect, Send) for _, part in effect.packet.parts for entry in part
    ]
    return {(entry.message.source, entry.message.counter): entry.ttl for entry in entries}


def delivered(effects: list[Any]) -> list[tuple[int, int]]:
    return [
        (e.message.source, e.message.counter + k)
        for e in effects
        if isinstance(e, Deliver)
        for k in range(len(e.payloads))
    ]


def rounds(one: Epto, number: int, first: float = 1000.0) -> list[Any]:
    return [effect for k in range(number) for effect in one.on_timer(first + 125 * k, ROUND)]


class TestNumbers:
    @pytest.mark.parametrize(
        ("n", "fanout", "ttl"), [(8, 7, 3), (64, 16, 6), (100, 17, 7), (200, 18, 8), (500, 19, 9), (1000, 20, 10)]
    )
    def test_fanout_and_ttl_follow_from_the_number_of_processes(self, n: int, fanout: int, ttl: int):
        one = machine(EptoParameters(), processes=n)
        assert (one.fanout, one.most_hops) == (fanout, ttl)

    def test_they_follow_the_processes_that_come_and_go(self):
        one = machine(EptoParameters(), processes=8)
        for peer in range(8, 100):
            one.on_peer_up(0, peer)
        assert (one.fanout, one.most_hops) == (17, 7)
        for peer in range(1, 100):
            one.on_peer_down(0, peer)
        assert (one.processes, one.fanout, one.most_hops) == (1, 0, 1)

    @pytest.mark.parametrize(("clock", "threshold"), [(Clock.GLOBAL, 7), (Clock.HYBRID, 8), (Clock.LOGICAL, 14)])
    def test_oracle(self, clock: Clock, threshold: int):
        """Figure 5.5: more than TTL with a global clock, more than twice that with a logical one."""
        assert machine(EptoParameters(clock=clock), processes=100).threshold == threshold


class TestAlgorithm4:
    def test_an_event_waits_for_the_round_with_ttl_0(self):
        """Lines 6–10."""
        one = machine()
        effects = one.publish(10.0, TOPIC, [b"a"])
        assert isinstance(effects[0], Published) and isinstance(effects[1], SetTimer) and len(effects) == 2
        (copy,) = one.topics[TOPIC].next_ball.values()
        assert copy.ttl == 0

    def test_the_round_ages_and_sends_to_k_different_peers(self):
        """Lines 20–28."""
        one = machine()
        one.publish(10.0, TOPIC, [b"a"])
        send = one.on_timer(20.0, ROUND)[0]
        assert isinstance(send, Send) and len(set(send.peers)) == 2 and 0 not in send.peers
        assert send.packet == Ball(((TOPIC, (Entry(MessageId(0, 0, 1), 10.0, 1, b"a"),)),))
        assert not one.topics[TOPIC].next_ball

    def test_the_larger_ttl_is_kept(self):
        """Lines 14–16."""
        parameters = replace(GLOBAL, ttl=5)
        for first, second in ((1, 3), (3, 1)):
            one = machine(parameters)
            one.on_packet(0, 1, ball((1, 1, 1.0, first)))
            one.on_packet(0, 2, ball((1, 1, 1.0, second)))
            assert sent(one.on_timer(20.0, ROUND)) == {(1, 1): 4}

    def test_an_expired_copy_is_ordered_but_not_relayed(self):
        one = machine()
        one.on_packet(0, 1, ball((1, 1, 1.0, 2)))
        effects = one.on_timer(20.0, ROUND)
        assert sent(effects) == {}
        assert delivered(effects + rounds(one, 1)) == [(1, 1)]

    def test_printed_it_is_dropped_and_the_event_is_lost(self):
        """Line 13."""
        one = machine(replace(GLOBAL, expired=Expired.DROP))
        one.on_packet(0, 1, ball((1, 1, 1.0, 2)))
        assert one.waiting() == [] and rounds(one, 5) == []

    @pytest.mark.parametrize(("expired", "copies"), [(Expired.ORDER, {(1, 1): 2}), (Expired.DROP, {})])
    def test_what_every_receiver_would_drop_is_not_sent(self, expired: Expired, copies: dict[tuple[int, int], int]):
        """Line 26."""
        one = machine(replace(GLOBAL, expired=expired))
        one.on_packet(0, 1, ball((1, 1, 1.0, 1)))
        assert sent(one.on_timer(20.0, ROUND)) == copies

    def test_a_live_copy_replaces_an_expired_one(self):
        one = machine()
        one.on_packet(0, 1, ball((1, 1, 1.0, 2)))
        one.on_packet(0, 1, ball((1, 1, 1.0, 0)))
        assert sent(one.on_timer(20.0, ROUND)) == {(1, 1): 1}

    def test_relays_are_limited(self):
        one = machine(replace(GLOBAL, threshold=9))
        times = 0
        for k in range(5):
            one.on_packet(k, 1, ball((1, 1, 1.0, 0)))
            times += bool(sent(one.on_timer(k, ROUND)))
        assert times == 2

    def test_without_anything_to_do_it_rests(self):
        one = machine()
        one.publish(10.0, TOPIC, [b"a"])
        effects = rounds(one, 4)
        assert effects[-2:] == [Deliver(TOPIC, MessageId(0, 0, 1), [b"a"]), Released(TOPIC, 1)]
        assert rounds(one, 1) == []

    def test_rounds_of_one_who_rested_keep_their_rhythm(self):
        one = machine()
        one.on_start(0.0)
        first = one.publish(10.0, TOPIC, [b"a"])[-1]
        assert isinstance(first, SetTimer)
        later = rounds(one, 4, first.at) and one.publish(first.at + 125 * 40.5, TOPIC, [b"b"])[-1]
        assert isinstance(later, SetTimer) and later.at == pytest.approx(first.at + 125 * 41)

    def test_timers_that_come_early_by_a_rounding_do_not_come_again_at_once(self):
        one = machine(replace(GLOBAL, idle=4))
        one.on_start(0.0)
        round_at, idle_at = (effect.at for effect in one.publish(10.0, TOPIC, [b"a"])[1:])
        (again,) = (e for e in one.on_timer(round_at - 1e-9, ROUND) if isinstance(e, SetTimer))
        assert again == SetTimer(ROUND, round_at + 125)
        marked = one.on_timer(idle_at - 1e-9, IDLE)
        assert all(effect.at > idle_at + 100 for effect in marked if effect.timer == IDLE)
        assert one.topics[TOPIC].next_ball, "the marker"


class TestAlgorithm5:
    def test_stable_events_are_delivered_in_the_order_of_their_keys(self):
        """Lines 27–30, with a batch of one publisher in one delivery."""
        one = machine()
        one.on_packet(0, 1, ball((3, 1, 5.0, 0), (2, 1, 5.0, 0), (1, 1, 4.0, 0), (1, 2, 4.5, 0), (1, 3, 4.5, 0)))
        effects = rounds(one, 3)
        assert delivered(effects) == [(1, 1), (1, 2), (1, 3), (2, 1), (3, 1)]
        assert len([effect for effect in effects if isinstance(effect, Deliver)]) == 3

    def test_a_stable_event_waits_for_an_unstable_one_below_it(self):
        """Lines 15–26."""
        one = machine()
        one.on_packet(0, 1, ball((1, 1, 9.0, 2)))
        one.on_timer(1, ROUND)
        one.on_packet(0, 1, ball((2, 1, 8.0, 0)))
        assert delivered(rounds(one, 2)) == []
        assert delivered(rounds(one, 1)) == [(2, 1), (1, 1)]

    def test_events_age_with_rounds_and_with_copies_that_came_further(self):
        """Lines 6–7 and 11–12."""
        one = machine(replace(GLOBAL, ttl=4))
        one.on_packet(0, 1, ball((1, 1, 9.0, 0)))
        one.on_timer(1, ROUND)
        one.on_packet(0, 1, ball((1, 1, 9.0, 3)))
        assert delivered(rounds(one, 1)) == []
        assert delivered(rounds(one, 1)) == [(1, 1)]

    def test_what_comes_too_late_is_a_hole_told_once(self):
        one = machine()
        one.on_packet(0, 1, ball((1, 2, 9.0, 2)))
        effects = rounds(one, 2)
        assert effects[-2:] == [
            Gap(TOPIC, (MessageId(1, 0, 1),), "never arrived"),
            Deliver(TOPIC, MessageId(1, 0, 2), [b"1"]),
        ]
        one.on_packet(0, 1, ball((2, 1, 8.0, 0)))
        effects = one.on_timer(2, ROUND)
        assert effects[1] == Gap(TOPIC, (MessageId(2, 0, 1),), "arrived after its place in the order")
        assert sent(effects) == {(2, 1): 1}, "others may still need it"
        for late in ((2, 1, 8.0, 0), (1, 1, 7.0, 0)):
            assert one.on_packet(0, 1, ball(late)) == []
        assert one.waiting() == []

    def test_figure_5_6(self):
        """Two concurrent events with equal logical times: with 2 · TTL both processes deliver both, in one order."""
        p, q = (machine(LOGICAL, node, processes=2) for node in (0, 1))
        q.publish(0, TOPIC, [b"e"])
        from_q = [q.on_timer(0, ROUND)[0], *rounds(q, 1)]
        p.publish(0, TOPIC, [b"e'"])
        p.on_packet(0, 1, from_q[0].packet)
        from_p = p.on_timer(0, ROUND)[0]
        assert delivered(rounds(q, 2)) == [], "stable after TTL rounds, but not yet deliverable"
        q.on_packet(0, 0, from_p.packet)
        assert delivered(rounds(q, 9)) == delivered(rounds(p, 9)) == [(0, 1), (1, 1)]


class TestPrintedRules:
    def test_line_9_as_printed_delivers_nothing(self):
        one = machine(replace(GLOBAL, acceptance=Rule.PRINTED))
        one.publish(1.0, TOPIC, [b"a"])
        assert delivered(rounds(one, 20)) == []

    def test_line_23_as_printed_lets_equal_timestamps_overtake(self):
        """A later source, stable, is delivered while an earlier source with the same timestamp is not stable yet."""
        orders = []
        for rule in (Rule.PRINTED, Rule.CORRECTED):
            one = machine(replace(LOGICAL, ties=rule, threshold=2))
            one.on_packet(0, 1, ball((2, 1, 5.0, 2)))
            one.on_timer(0, ROUND)
            one.on_packet(0, 1, ball((1, 1, 5.0, 0)))
            orders.append(delivered(rounds(one, 4)))
        assert orders == [[(2, 1), (1, 1)], [(1, 1), (2, 1)]]

    def test_ids_without_incarnation_are_given_twice(self):
        lives = [machine(replace(GLOBAL, identity=rule), incarnation=1) for rule in (Rule.PRINTED, Rule.CORRECTED)]
        for life in lives:
            life.publish(1.0, TOPIC, [b"a"])
        ids = [life.on_timer(2.0, ROUND)[0].packet.parts[0][1][0].message for life in lives]
        assert ids == [MessageId(0, 0, 1), MessageId(0, 1, 1)], "the first is what the previous life published"

    @pytest.mark.parametrize("rule", Rule)
    def test_a_newcomers_event_comes_too_late_everywhere(self, rule: Rule):
        """With a logical clock that begins at 0, or with one that was asked for."""
        world = GossipWorld(8, replace(LOGICAL, ttl=0, fanout=0, newcomer=rule, period=125), Nature(), seed=3)
        for k in range(12):
            world.after(125 * k, lambda: world.publish(0))
        world.after(4000, lambda: world.replace(7))
        world.after(4001, lambda: world.publish(7))
        world.run()
        late = MessageId(7, 1, 1)
        having = [late in life.delivered for life in world.lives if life.alive]
        assert all(having) if rule is Rule.CORRECTED else sum(having) == 1, f"{having}: its publisher always has it"

    def test_local_clocks_taken_as_global_lose_own_events(self):
        """A process whose clock is behind finds its own event below what it delivered."""
        for clock, own in ((Clock.GLOBAL, []), (Clock.HYBRID, [(0, 1)])):
            one = machine(replace(GLOBAL, clock=clock))
            one.on_packet(0, 1, ball((1, 1, 5000.0, 2)))
            assert delivered(rounds(one, 3)) == [(1, 1)]
            one.publish(2000.0, TOPIC, [b"a"])
            assert delivered(rounds(one, 4)) == own

    def test_relays_without_limit_cost_many_copies(self):
        slow = Nature(lambda rng: rng.expovariate(1 / 157))
        without, with_limit = (everybody_publishes(EptoParameters(relays=relays), slow) for relays in (0, 2))
        for world in (without, with_limit):
            assert all(len(life.delivered) == 60 for life in world.lives)
        assert without.copies > 2.5 * with_limit.copies, f"{without.copies} and {with_limit.copies} copies"

    def test_fast_networks_lose_what_is_dropped_when_expired(self):
        """Latency far below δ: the ttl of the fastest chain outruns the rounds."""
        dropping, ordering = (
            everybody_publishes(
                EptoParameters(clock=Clock.GLOBAL, relays=0, expired=expired), Nature(lambda rng: rng.uniform(1, 2))
            )
            for expired in (Expired.DROP, Expired.ORDER)
        )
        assert any(dropping.holes().values()) and not any(ordering.holes().values())

    def test_published_parameters_are_the_printed_rules(self):
        printed = PublishedParameters()
        assert printed.ties is printed.identity is printed.newcomer is Rule.PRINTED
        assert printed.expired is Expired.DROP and printed.relays == 0 and printed.clock is Clock.GLOBAL


class TestAdded:
    def test_a_newcomer_asks_for_the_time_before_it_publishes(self):
        one = machine(LOGICAL, newcomer=True)
        assert isinstance(one.on_start(0.0)[0].packet, Hello)
        assert isinstance(one.publish(1.0, TOPIC, [b"a"])[0], SetTimer)
        answer = machine(LOGICAL, node=3)
        answer.on_packet(0, 1, ball((1, 1, 41.0, 0)))
        (reply,) = answer.on_packet(0, 0, Hello(0))
        assert reply == Send((0,), Welcome(41.0, ()))
        assert one.on_packet(2.0, 3, reply.packet)[0] == Published(TOPIC, 1, 1, ())
        assert one.on_packet(2.0, 3, Hello(0)) == [Send((3,), Welcome(42.0, ()))]

    def test_who_is_new_is_told_of_the_others_and_says_hello_to_them(self):
        first, later = Epto(0, (), GLOBAL, Random(1)), Epto(2, (0,), GLOBAL, Random(1), newcomer=True)
        assert first.on_peer_up(0.0, 1) == [Send((1,), Welcome(0.0, ()))]
        (told,) = first.on_packet(0.0, 2, Hello(0))
        assert told == Send((2,), Welcome(0.0, (1,))) and list(told.packet.mentions()) == [1]
        assert later.on_packet(0.0, 0, told.packet) == [Send((1,), Hello(0))]
        assert (first.peers, later.peers) == ((1, 2), (0, 1))

    def test_a_newcomer_whom_nobody_answers_publishes_in_the_end(self):
        one = machine(replace(LOGICAL, patience=3), newcomer=True)
        one.publish(1.0, TOPIC, [b"a"])
        assert one.on_packet(1.0, 3, Hello(0)) == [], "it does not know either"
        effects = rounds(one, 9)
        assert Published(TOPIC, 1, 1, ()) in effects and delivered(effects) == [(0, 1)]

    def test_a_silent_publisher_says_how_far_it_got(self):
        parameters = replace(GLOBAL, idle=4, markers=2)
        one, other = machine(parameters), machine(parameters, node=1)
        timer = one.publish(1.0, TOPIC, [b"a", b"b"])[-1]
        assert timer == SetTimer(IDLE, 501.0)
        rounds(one, 4, 10.0)
        effects = one.on_timer(501.0, IDLE)
        assert effects[-1] == SetTimer(IDLE, 1001.0)
        marker = one.on_timer(600.0, ROUND)[0]
        assert marker.packet.parts[0][1] == (Entry(MessageId(0, 0, 2), 501.0, 1, None),)
        other.on_packet(600.0, 0, marker.packet)
        told = [effect for effect in rounds(other, 5) if not isinstance(effect, Send | SetTimer)]
        assert told == [Gap(TOPIC, (MessageId(0, 0, 1), MessageId(0, 0, 2)), "never arrived")]
        assert delivered(rounds(one, 3)) == [], "a marker is not handed over"
        one.on_timer(1001.0, IDLE)
        assert all(effect != SetTimer(IDLE, 2001.0) for effect in one.on_timer(1501.0, IDLE)), "then it rests"

    def test_a_later_subscriber_is_told_where_each_publisher_begins_for_it(self):
        one = Epto(0, range(5), GLOBAL, Random(1))
        assert one.subscribe(0.0, TOPIC) == [Subscribed(TOPIC, ())]
        one.on_packet(0, 1, ball((1, 7, 9.0, 2)))
        effects = [effect for effect in rounds(one, 3) if not isinstance(effect, SetTimer)]
        assert effects == [Cut(TOPIC, MessageId(1, 0, 6)), Deliver(TOPIC, MessageId(1, 0, 7), [b"1"])]
        assert one.unsubscribe(0.0, TOPIC) == [Unsubscribed(TOPIC)]
        assert not one.topics, "nothing is kept of a topic of no interest"
        one.subscribe(0.0, TOPIC)
        one.on_packet(0, 1, ball((1, 7, 9.0, 2), (1, 9, 10.0, 2)))
        assert delivered(rounds(one, 3)) == [(1, 9)], "nothing twice, though nothing was kept"

    def test_who_does_not_subscribe_relays_all_the_same(self):
        one = Epto(0, range(5), GLOBAL, Random(1))
        one.on_packet(0, 1, ball((1, 1, 9.0, 0)))
        effects = rounds(one, 4)
        assert sent(effects) == {(1, 1): 1} and delivered(effects) == [] and not one.topics

    def test_a_leaping_counter_names_so_many_and_no_more(self):
        one = machine()
        one.on_packet(0, 1, ball((1, 1 << 60, 9.0, 2)))
        gap = next(effect for effect in rounds(one, 3) if isinstance(effect, Gap))
        assert len(gap.missing) == 4096 and gap.missing[-1].counter == (1 << 60) - 1 and "before" in gap.reason

    @pytest.mark.parametrize(
        "wrong",
        [
            ball((1, 0, 1.0, 0)),
            ball((1, 1, float("nan"), 0)),
            ball((1, 1, float("inf"), 0)),
            ball((1, 1, 1e300, 0)),
            ball((1, 1, -1.0, 0)),
            ball((1, 1, 1.0, -1)),
            ball((1, 1, 1.0, 65)),
            ball((1, 1, 1.0, 0), (0, 1, 1.0, 0)),
            Ball(((TOPIC, (Entry(MessageId(1, -1, 1), 1.0, 0, b""),)),)),
            Welcome(float("nan"), ()),
            Welcome(-1.0, ()),
            Welcome(1.0, tuple(range(65))),
            "no packet at all",
        ],
    )
    def test_what_no_correct_peer_sends_is_refused_and_changes_nothing(self, wrong: Any):
        one = machine(replace(GLOBAL, clock=Clock.HYBRID))
        with pytest.raises(RemoteProtocolError):
            one.on_packet(0, 1, wrong)
        assert one.waiting() == [] and one.clock == 0.0

    def test_large_balls_are_divided(self):
        entries = tuple(
            Entry(MessageId(1, 0, k), 1.0, 0, b"x" * size)
            for k, size in enumerate((9, 1 << 20, 9, 300_000, 300_000), 1)
        )
        made = balls([("a", entries[:2]), ("b", entries[2:])])
        assert [[len(part) for _, part in one.parts] for one in made] == [[1], [1], [2], [1]]
        assert [entry for one in made for _, part in one.parts for entry in part] == list(entries)

    def test_stability_grows_with_copies(self):
        values = [stability_of(copies, 100) for copies in range(0, 120, 10)]
        assert values == sorted(values) and values[0] < 0.05 and values[-1] > 0.999
        one = machine()
        assert one.stability(TOPIC, MessageId(1, 0, 1)) is None
        one.on_packet(0, 1, ball((1, 1, 9.0, 0)))
        assert one.stability(TOPIC, MessageId(1, 0, 1)) == stability_of(1, 5)
        one.on_timer(0, ROUND)
        one.on_packet(0, 1, ball((1, 1, 9.0, 1)))
        assert one.stability(TOPIC, MessageId(1, 0, 1)) == stability_of(2, 5)

    def test_stability_is_calibrated(self):
        """Whatever the network: of the events said to be everywhere with probability p, a share p is."""
        for nature in (Nature(), Nature(loss=0.3), Nature(lambda rng: rng.uniform(1, 2))):
            said = true = asked = 0.0
            for seed in range(2):
                for estimate, everywhere in stability_samples(nature, seed):
                    said, true, asked = said + estimate, true + everywhere, asked + 1
            print(f"{nature}: said {said / asked:.3f}, true {true / asked:.3f} of {asked:g}")
            assert asked > 500 and abs(said - true) / asked < 0.05


def everybody_publishes(parameters: EptoParameters, nature: Nature | None = None) -> GossipWorld:
    world = GossipWorld(60, parameters, nature or Nature(), seed=1)
    for node in world.nodes:
        world.after(20 * node, lambda n=node: world.publish(n))
    world.run(until=4000)
    return world


def stability_samples(nature: Nature, seed: int) -> list[tuple[float, bool]]:
    world = GossipWorld(30, EptoParameters(), nature, seed)
    samples: list[tuple[float, bool]] = []

    def ask() -> None:
        machines = [life.machine.topics[TOPIC] for life in world.lives]
        held = [
            {c.message for c in (*m.received.values(), *m.next_ball.values())}
            | {tuple(MessageId(*p, k)) for p, c in m.at.items() for k in range(1, c + 1)}
            for m in machines
        ]
        for life in world.lives[::5]:
            for message in {c.message for c in life.machine.topics[TOPIC].received.values()}:
                estimate = life.machine.stability(TOPIC, message)
                assert estimate is not None
                samples.append((estimate, all(message in have for have in held)))

    for k in range(40):
        world.after(60 * k, lambda n=k: world.publish(n % 30))
        world.after(60 * k + 30, ask)
    world.run(until=3000)
    return samples
