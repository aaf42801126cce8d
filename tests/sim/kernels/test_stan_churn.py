"""The kernel and the machine do the same when processes come and go, on the same draws, view by view."""

import numpy as np
import pytest

from cubecast.protocol.effects import Send, Subscribed
from cubecast.protocol.epidemic.stan import Stan
from cubecast.protocol.epidemic.stan_packets import Adopt, Given, Member, Seek
from cubecast.sim.kernels import stan_kernel as kernel
from cubecast.sim.kernels import stan_members
from cubecast.sim.kernels.stan import ChangingOverlays
from sim.kernels.test_stan_kernel import WORLDS, Mirror, Told


class Choosing(Told):
    """Chooses among members as the kernel does."""

    def __init__(self):
        super().__init__()
        self.key = np.uint64(0)

    def sample(self, found, count):
        chosen = []
        for taken in range(count):
            last = len(found) - count + taken
            one = found[int(kernel.draw(self.key, taken) * (last + 1))]
            chosen.append(found[last] if one in chosen else one)
        return chosen


class ChangingMirror(Mirror):
    """Machines of those who are there; the others have none."""

    def __init__(self, drawn, overlays, there, repair):
        self.there = set(np.flatnonzero(there).tolist())
        self.seeking = []
        super().__init__(drawn, overlays, repair)
        self.entered = 0

    def _machines(self, views):
        self.rng = [Choosing() for _ in views]
        return {p: self._machine(p, 0, views[p]) for p in sorted(self.there)}

    def _machine(self, process, life, views):
        peers = sorted(self.there)
        return Stan(process, peers, self.parameters, self.rng[process], incarnation=life, views=views)

    def _deliver(self, effects):
        others = []
        for node, effect in effects:
            if isinstance(effect, Send) and isinstance(effect.packet, Seek):
                self.seeking.append((node, effect.packet.topic))
            else:
                others.append((node, effect))
        return super()._deliver(others)

    def round(self, loss):
        super().round(loss)
        self._enter()

    def go(self, leaving):
        for process in leaving:
            self.there.discard(process)
            del self.machines[process]
            for machine in self.machines.values():
                assert not machine.on_peer_down(0.0, process)

    def come(self, newcomers):
        for process in newcomers:
            self.there.add(process)
            self.rng[process].coming = [0.0]
        for process in newcomers:
            self.machines[process] = self._machine(process, 1, {})
            self.machines[process].on_start(0.0)
            for machine in self.machines.values():
                machine.on_peer_up(0.0, process)
        for (topic, process), _ in sorted(self.slot.items(), key=lambda one: one[1]):
            if process in newcomers:
                self._deliver([(process, effect) for effect in self.machines[process].subscribe(0.0, str(topic))])
                self._enter()

    def _enter(self):
        seeking, self.seeking = self.seeking, []
        for process, topic in sorted(seeking, key=lambda one: self.slot[int(one[1]), one[0]]):
            self.entered += 1
            one = self.machines[process]
            for peer in sorted(self.there - {process}):
                for answer in self.machines[peer].on_packet(0.0, process, Seek(topic)):
                    assert answer == Send((process,), Member(topic))
                    assert not one.on_packet(0.0, peer, answer.packet)
            slot = self.slot[int(topic), process]
            key = np.uint64(kernel.draw_key(self.seed, stan_members.ENTERING + self.number, slot))
            self.rng[process].key = key
            self.rng[process].coming = [kernel.draw(key, stan_members.PICK)]
            for effect in one.on_timer(0.0, ("join", topic)):
                if not isinstance(effect, Subscribed):
                    self._adopt(process, effect, key)

    def _adopt(self, process, effect, key):
        assert isinstance(effect.packet, Adopt)
        for place, peer in enumerate(effect.peers):
            self.rng[peer].coming = [kernel.draw(key, stan_members.PLACES + place)]
            for word in self.machines[peer].on_packet(0.0, process, effect.packet):
                for receiver in word.peers:
                    answers = self.machines[receiver].on_packet(0.0, peer, word.packet)
                    assert isinstance(word.packet, Given) or not answers
                    assert not self._deliver([(receiver, answer) for answer in answers])

    def views(self):
        return {slot: self._view(t, p) for (t, p), slot in self.slot.items()}

    def _view(self, topic, process):
        machine = self.machines.get(process)
        return machine.overlays[str(topic)].view if machine is not None else []

    def keepers(self):
        return {
            slot: self.machines[p].overlays[str(t)].keeper if p in self.machines else None
            for (t, p), slot in self.slot.items()
        }


def keepers_of(drawn, overlays):
    at = overlays.world.pinned_at.tolist()
    return {slot: None if one == kernel.NONE else int(drawn.members[one]) for slot, one in enumerate(at)}


def mask(processes, some):
    return np.isin(np.arange(processes), list(some))


@pytest.mark.parametrize("repair", [True, False])
@pytest.mark.parametrize("loss", [0.0, 0.15])
@pytest.mark.parametrize("world", WORLDS)
def test_views_and_pins_are_those_of_the_machine_while_processes_come_and_go(world, loss, repair):
    """At the end most go at once, so that views become empty."""
    entered = emptied = 0
    for seed in (1, 2):
        drawn, rng = WORLDS[world](seed), np.random.default_rng(seed)
        there = rng.random(drawn.processes) < 0.6
        overlays = ChangingOverlays(drawn.first, drawn.members, there, seed=seed, repair=repair)
        mirror = ChangingMirror(drawn, overlays, there, repair)
        for number in range(8):
            many = number >= 5
            leaving = there & (rng.random(drawn.processes) < (0.93 if many else 0.05))
            newcomers = ~there & (rng.random(drawn.processes) < (0.0 if number == 5 else 0.2))
            overlays.go(leaving)
            mirror.go(np.flatnonzero(leaving).tolist())
            overlays.come(newcomers)
            mirror.come(np.flatnonzero(newcomers).tolist())
            there ^= leaving | newcomers
            assert {slot: overlays.view(slot) for slot in mirror.views()} == mirror.views(), f"seed {seed}, {number}"
            emptied += overlays.empty_views()
            overlays.round(loss)
            mirror.round(loss)
            assert {slot: overlays.view(slot) for slot in mirror.views()} == mirror.views(), f"seed {seed}, {number}"
            assert keepers_of(drawn, overlays) == mirror.keepers(), f"seed {seed}, round {number}"
        room = overlays.world.room[np.repeat(np.arange(drawn.topics), np.diff(drawn.first))]
        assert (overlays.world.size < room).all(), "a machine's view is never full"
        entered += mirror.entered
    assert entered > 50
    assert emptied, "nobody was left alone: nothing was tested"


def test_nobody_points_to_who_is_gone_and_the_isolated_are_counted():
    drawn = WORLDS["matched"](1)
    overlays = ChangingOverlays(drawn.first, drawn.members, mask(80, range(80)), seed=1)
    overlays.round()
    keep = int(drawn.of(0)[0])
    overlays.go(~mask(80, [keep]))
    mine = int((drawn.members == keep).sum())
    assert (overlays.isolated(), overlays.empty_views(), overlays.logical_links().sum()) == (1, mine, 0)
    overlays.come(mask(80, range(80)))
    assert overlays.there.all() and overlays.isolated() == 0
