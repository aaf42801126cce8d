"""Every planted bug is found by the swarm; the test prints how many seeds each took."""

import pytest

from cubecast.experiments.swarm import judge
from cubecast.sim.swarm import draw
from support.planted import COMMON, RARE


def seeds_needed(plant, most):
    with plant():
        for seed in range(1, most + 1):
            failure = judge(draw("cubecast", seed), careful=False)
            if failure is not None:
                return seed, failure
    return None, None


@pytest.mark.parametrize("plant", COMMON, ids=lambda plant: plant.__name__)
def test_is_found(plant):
    seed, failure = seeds_needed(plant, 400)
    assert failure is not None, f"400 schedules did not find {plant.__name__}"
    print(f"{plant.__name__}: {seed} seeds, {failure.kind}")


@pytest.mark.slow
@pytest.mark.parametrize("plant", RARE, ids=lambda plant: plant.__name__)
def test_a_rare_one_is_found(plant):
    seed, failure = seeds_needed(plant, 10_000)
    assert failure is not None, f"10,000 schedules did not find {plant.__name__}"
    print(f"{plant.__name__}: {seed} seeds, {failure.kind}")
