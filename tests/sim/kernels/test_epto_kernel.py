"""The kernel and the machine do the same on the same draws, delivery by delivery."""

import heapq
from random import Random

import numpy as np
import pytest

from cubecast.errors import BadInput
from cubecast.experiments.epto.point import draw
from cubecast.protocol.effects import Deliver, Gap, Send
from cubecast.protocol.epidemic.epto import ROUND, Epto
from cubecast.protocol.epidemic.epto_parameters import Clock, EptoParameters, Expired, Rule
from cubecast.sim.kernels.epto_broadcast import EptoKernel, longest_increasing

TOPIC = "t"


class Told:
    """In place of random numbers: the peers of this round, from the table."""

    def __init__(self, rows):
        self.rows = rows
        self.round = 0

    def sample(self, view, k):
        return [int(peer) for peer in self.rows[self.round]]


def mirror(parameters, draws):
    """Machines, driven by the table: what each delivered when, and how many holes it told."""
    n, rounds = draws.periods.shape
    machines = [Epto(p, range(n), parameters, Told(draws.peers[p]), settled=(TOPIC,)) for p in range(n)]
    delivered, holes, copies, number = [[] for _ in range(n)], [0] * n, 0, n
    calendar = [(draws.phases[p], p, p, None) for p in range(n)]
    heapq.heapify(calendar)
    while calendar:
        now, _, p, packet = heapq.heappop(calendar)
        machine = machines[p]
        if packet is not None:
            machine.on_packet(now, packet[0], packet[1])
            continue
        k = machine._rng.round
        effects = machine.publish(now, TOPIC, [b""]) if draws.publishes[p, k] else []
        for effect in effects + machine.on_timer(now, ROUND):
            if isinstance(effect, Send):
                for j, peer in enumerate(effect.peers):
                    number += 1
                    copies += len(effect.packet.parts[0][1])
                    heapq.heappush(calendar, (now + draws.latencies[p, k, j], number, peer, (p, effect.packet)))
            elif isinstance(effect, Deliver):
                first = effect.message.counter
                delivered[p] += [(now, (effect.message.source, first + i)) for i in range(len(effect.payloads))]
            elif isinstance(effect, Gap):
                holes[p] += len(effect.missing)
        machine._rng.round += 1
        if k + 1 < rounds:
            number += 1
            heapq.heappush(calendar, (now + draws.periods[p, k], number, p, None))
    return delivered, holes, copies


def configuration(seed):
    rng = Random(seed)
    return rng.randint(4, 14), EptoParameters(
        clock=rng.choice(list(Clock)),
        period=rng.choice((20.0, 60.0, 125.0)),
        fanout=rng.choice((0, 2, 3)),
        ttl=rng.choice((0, 2, 4)),
        threshold=rng.choice((0, 1, 3)),
        relays=rng.choice((0, 0, 1, 2)),
        expired=rng.choice(list(Expired)),
        ties=rng.choice((Rule.CORRECTED, Rule.CORRECTED, Rule.PRINTED)),
        idle=0,
    )


def test_equal_draws_give_equal_deliveries():
    seen = {"deliveries": 0, "holes": 0, "inversions": 0}
    for seed in range(80):
        n, parameters = configuration(seed)
        kernel = EptoKernel(n, parameters)
        rng = np.random.default_rng(seed)
        draws = draw(n, kernel.fanout, parameters.threshold_of(n), rng, rate=0.3, period=parameters.period, drift=0.5)
        run = kernel.simulate(draws)
        delivered, holes, copies = mirror(parameters, draws)
        for p in range(n):
            ours = [(time, event) for time, event in zip(np.sort(run.delivered_at[p]), run.sequence(p), strict=False)]
            theirs = delivered[p] if parameters.ties is Rule.CORRECTED else sorted(delivered[p])
            ours = ours if parameters.ties is Rule.CORRECTED else sorted(ours)
            assert ours == theirs, f"seed {seed}, process {p}: {parameters}"
        assert run.copies == copies, f"seed {seed}"
        seen["deliveries"] += sum(map(len, delivered))
        seen["holes"] += sum(holes)
        seen["inversions"] += run.inversions
        assert not run.inversions or parameters.ties is Rule.PRINTED, f"seed {seed}"
    print(seen)
    assert seen["deliveries"] > 5_000 and seen["holes"] > 100 and seen["inversions"] > 100


def test_a_pool_that_is_too_small_changes_nothing(monkeypatch):
    kernel = EptoKernel(20, EptoParameters(clock=Clock.GLOBAL, relays=0, idle=0))
    draws = draw(20, kernel.fanout, 5, np.random.default_rng(1), rate=0.5)
    roomy = kernel.simulate(draws)
    monkeypatch.setattr("cubecast.sim.kernels.epto_broadcast._FIRST_POOL", 64)
    assert np.array_equal(kernel.simulate(draws).delivered_at, roomy.delivered_at)


def test_a_replaced_process_begins_anew():
    kernel = EptoKernel(16, EptoParameters(clock=Clock.GLOBAL, relays=0, idle=0))
    run = kernel.simulate(draw(16, kernel.fanout, 4, np.random.default_rng(1), rate=0.5, churn=0.25))
    assert run.stays[:8].all() and not run.stays[8:].all()
    assert run.clean.all() and run.inversions == 0


@pytest.mark.parametrize(("values", "longest"), [([0, 1, 2], 3), ([2, 1, 0], 1), ([1, 3, 0, 2, 4], 3), ([], 0)])
def test_longest_increasing(values, longest):
    assert longest_increasing(np.array(values, np.int64)) == longest


def test_what_the_kernel_cannot_do_is_refused():
    with pytest.raises(BadInput, match="ties only"):
        EptoKernel(8, EptoParameters(identity=Rule.PRINTED))
    kernel = EptoKernel(8, EptoParameters())
    with pytest.raises(BadInput, match="replaces"):
        kernel.simulate(draw(8, kernel.fanout, 4, np.random.default_rng(1), rate=0.5, churn=0.5))
    with pytest.raises(BadInput, match="draws"):
        kernel.simulate(draw(9, kernel.fanout, 4, np.random.default_rng(1), rate=0.5))
