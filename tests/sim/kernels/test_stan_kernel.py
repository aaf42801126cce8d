"""The kernel and the machine do the same on the same draws, view by view."""

import numpy as np
import pytest

from cubecast.errors import BadInput
from cubecast.experiments.stan.universes import grid, matched
from cubecast.pipeline.workloads.synthetic import Shape
from cubecast.protocol.effects import Send
from cubecast.protocol.epidemic import stan_overlay
from cubecast.protocol.epidemic.stan import ROUND, Stan, StanParameters
from cubecast.protocol.epidemic.stan_packets import CollectReply, CollectWalk
from cubecast.sim.kernels import stan_kernel as kernel
from cubecast.sim.kernels.stan import Overlays, view_size


class Told:
    """In place of random numbers: the next ones of the walk that is under way."""

    def __init__(self):
        self.coming = [0.0]

    def random(self):
        return self.coming.pop(0)


class Mirror:
    """Machines of a universe, round by round: pins, then walks, then replies, each to the end."""

    def __init__(self, drawn, overlays, repair):
        self.drawn, self.seed, self.ttl, self.number = drawn, overlays.seed, overlays.ttl, 0
        self.slot = {
            (t, int(p)): int(drawn.first[t]) + i for t in range(drawn.topics) for i, p in enumerate(drawn.of(t))
        }
        views = [{} for _ in range(drawn.processes)]
        for (topic, process), slot in self.slot.items():
            views[process][str(topic)] = overlays.view(slot)
        self.parameters = StanParameters(ttl=self.ttl, repair=repair)
        self.machines = self._machines(views)
        self._deliver([(p, e) for p, machine in self.machines.items() for e in machine.on_start(0.0)])

    def _machines(self, views):
        self.rng = [Told() for _ in views]
        peers = range(len(views))
        return {p: Stan(p, peers, self.parameters, self.rng[p], views=views[p]) for p in peers}

    def _deliver(self, effects):
        """Everything but walks and replies, which are handed back."""
        kept = []
        for node, effect in effects:
            if isinstance(effect, Send) and isinstance(effect.packet, CollectWalk | CollectReply):
                kept.append((node, effect.peers[0], effect.packet))
            elif isinstance(effect, Send):
                for peer in effect.peers:
                    assert not self.machines[peer].on_packet(0.0, node, effect.packet)
        return kept

    def round(self, loss):
        self.number += 1
        effects = []
        for p, machine in self.machines.items():
            walking = [t for t, overlay in machine.overlays.items() if overlay.view]
            self.rng[p].coming = [self._draw(t, p, 0) for t in walking]
            effects += [(p, effect) for effect in machine.on_timer(0.0, ROUND)]
        replies = [self._walk(walk, loss) for walk in self._deliver(effects)]
        for reply in filter(None, replies):
            sender, receiver, packet = reply
            done = self.machines[receiver].on_packet(0.0, sender, packet)
            assert not self._deliver([(receiver, effect) for effect in done])

    def _walk(self, walk, loss):
        sender, receiver, packet = walk
        source, step = packet.source, 0
        while True:
            if self._draw(packet.topic, source, kernel.LOSSES + step) < loss:
                return None
            if isinstance(packet, CollectReply):
                return sender, receiver, packet
            step += 1
            self.rng[receiver].coming = [self._draw(packet.topic, source, step)]
            ((sender, receiver, packet),) = self._deliver(
                [(receiver, effect) for effect in self.machines[receiver].on_packet(0.0, sender, packet)]
            )

    def _draw(self, topic, process, number):
        return kernel.draw(np.uint64(kernel.draw_key(self.seed, self.number, self.slot[int(topic), process])), number)

    def views(self):
        return {slot: self.machines[p].overlays[str(t)].view for (t, p), slot in self.slot.items()}

    def keepers(self):
        return {slot: self.machines[p].overlays[str(t)].keeper for (t, p), slot in self.slot.items()}


WORLDS = {
    "grid": lambda seed: grid(np.random.default_rng(seed), 60, 8),
    "matched": lambda seed: matched(seed, Shape(80, 4, 60, 1.6, 1000.0, 2, 0.7)),
}


@pytest.mark.parametrize("repair", [True, False])
@pytest.mark.parametrize("loss", [0.0, 0.15])
@pytest.mark.parametrize("world", WORLDS)
def test_views_and_pins_are_those_of_the_machine(world, loss, repair):
    pinned = 0
    for seed in (5, 8):
        drawn = WORLDS[world](seed)
        overlays = Overlays(drawn.first, drawn.members, seed=seed, ttl=3 + seed % 2, repair=repair)
        mirror = Mirror(drawn, overlays, repair)
        for number in range(6):
            overlays.round(loss)
            mirror.round(loss)
            assert {slot: overlays.view(slot) for slot in mirror.views()} == mirror.views(), f"seed {seed}, {number}"
            at = overlays.world.pinned_at.tolist()
            keepers = {
                slot: None if at[slot] == kernel.NONE else int(drawn.members[at[slot]]) for slot in mirror.slot.values()
            }
            assert keepers == mirror.keepers(), f"seed {seed}, round {number}"
            pinned += overlays.pinned()
    assert (pinned > 0) == repair or world == "grid"


def test_weights_are_the_same_and_not_symmetric():
    for me, other in ((0, 1), (1, 0), (7, 123_456), (2**31 - 1, 5)):
        assert stan_overlay.weight(me, other) == int(kernel.weight(np.uint64(kernel.own_part(me)), other))
    assert stan_overlay.weight(1, 12) != stan_overlay.weight(11, 2) != stan_overlay.weight(2, 11)


def test_view_sizes_are_those_of_a_connected_random_graph():
    assert (
        [view_size(m) for m in (2, 5, 30, 100)] == [1, 4, 9, 10] == [stan_overlay.view_size(m) for m in (2, 5, 30, 100)]
    )


def test_views_keep_their_size_get_lighter_and_have_no_member_twice():
    drawn = matched(3, Shape(200, 20, 120, 1.6, 1000.0, 2, 0.7))
    overlays = Overlays(drawn.first, drawn.members, seed=3)
    slots = range(len(drawn.members))

    def weights():
        own = [np.uint64(kernel.own_part(int(p))) for p in drawn.members]
        return [sum(int(kernel.weight(own[slot], q)) for q in overlays.view(slot)) for slot in slots]

    before, logical = weights(), overlays.logical_links()
    for _ in range(5):
        overlays.round()
        after = weights()
        assert all(new <= old for new, old in zip(after, before, strict=True))
        before = after
    assert np.array_equal(overlays.logical_links(), logical)
    for slot in slots:
        view = overlays.view(slot)
        topic = int(np.searchsorted(drawn.first, slot, "right")) - 1
        assert len(set(view)) == len(view) and drawn.members[slot] not in view
        assert set(view) <= set(drawn.of(topic).tolist())


def test_links_are_counted_as_by_hand():
    drawn = grid(np.random.default_rng(5), 40, 6)
    overlays = Overlays(drawn.first, drawn.members, seed=5)
    overlays.round()
    neighbours = [set() for _ in range(40)]
    for slot, process in enumerate(drawn.members.tolist()):
        neighbours[process] |= set(overlays.view(slot))
    counted = overlays.physical_links().tolist()
    assert counted == [len(one) for one in neighbours][: len(counted)]


def test_ways_are_found_in_both_directions():
    """0 → 1 → 2 → 0 is whole; with 0 pointing to 1 only and nobody to 2, it is not, though it hangs together."""
    overlays = Overlays(np.array([0, 3]), np.array([4, 5, 6], np.int32), seed=1, repair=False)
    for views, whole in ((([1], [2], [0]), 1.0), (([1], [0], [0]), 0.0)):
        for slot, view in enumerate(views):
            overlays.set_view(slot, view)
        assert overlays.reachable() == whole
        assert overlays.weakly_connected() == 1.0
    assert overlays.unpointed() == 1
    overlays.mend()
    assert (overlays.pinned(), overlays.reachable()) == (2, 1.0)


def test_clustering_and_paths_are_those_of_the_dumb_way():
    drawn = matched(7, Shape(120, 6, 90, 1.6, 1000.0, 2, 0.7))
    overlays = Overlays(drawn.first, drawn.members, seed=7, repair=False)
    overlays.round()
    for topic, found in enumerate(overlays.measures()):
        low, members = int(drawn.first[topic]), len(drawn.of(topic))
        linked = np.zeros((members, members), bool)
        for me in range(members):
            linked[me, [slot - low for slot in overlays.slots_of(low + me)]] = True
        either = (linked | linked.T).astype(int)
        degree, closed = either.sum(axis=0), (either @ either * either).sum(axis=0)
        steps, reach = np.zeros((members, members), int), np.eye(members, dtype=bool)
        for hop in range(1, members):
            further = (reach @ linked) & ~reach
            steps[further] = hop
            reach |= further
        exact = [
            (closed / (degree * (degree - 1))).mean(),
            steps[steps > 0].mean(),
            steps.max(),
            1.0,
            float(reach.all()),
        ]
        assert found.tolist() == pytest.approx(exact)
    few = overlays.measures(np.array([2, 4]), starts=5)
    assert few[:, :2] == pytest.approx(overlays.measures()[[2, 4], :2], rel=0.2)
    assert (few[:, 2] <= overlays.measures()[[2, 4], 2]).all() and (few[:, 2] > 1).all()


def test_parts_of_a_universe_are_the_universe():
    """Whoever computes some of the topics only is told where they stand, and makes the same of them."""
    drawn = matched(3, Shape(120, 9, 90, 1.6, 1000.0, 2, 0.7))
    whole = Overlays(drawn.first, drawn.members, seed=3)
    cut = int(drawn.first[4])
    parts = [
        Overlays(drawn.first[:5], drawn.members[:cut], seed=3),
        Overlays(drawn.first[4:] - cut, drawn.members[cut:], seed=3, offset=cut),
    ]
    for overlays in (whole, *parts):
        for _ in range(3):
            overlays.round(0.1)
    assert np.array_equal(whole.world.size, np.concatenate([part.world.size for part in parts]))
    assert np.array_equal(whole.world.links, np.concatenate([parts[0].world.links, parts[1].world.links + cut]))


def test_small_topics_and_long_walks_are_refused():
    with pytest.raises(BadInput, match="two members"):
        Overlays(np.array([0, 1]), np.array([1], np.int32), seed=1)
    with pytest.raises(BadInput, match="hops"):
        Overlays(np.array([0, 2]), np.array([1, 2], np.int32), seed=1, ttl=31)
