"""The swarm finds each rule of EpTO that does not work as printed, and nothing where it is corrected."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from cubecast.experiments.swarm import Failure, Tally, judge
from cubecast.protocol.family import Nemesis
from cubecast.sim.swarm import draw

SCHEDULES = 60


@dataclass(frozen=True)
class Plant:
    rule: str
    printed: str
    broken: tuple[str, ...]
    """Properties that the printed rule breaks; none: agreement, which is likely and not promised, becomes less so."""
    faults: tuple[str, ...] = ("restart",)
    settings: Mapping[str, str] = field(default_factory=dict)
    schedules: int = SCHEDULES

    def judged(self, value: str) -> tuple[list[Failure], float]:
        """Schedules that fail, and how many of the deliveries that agreement wants are missing."""
        settings = {**self.settings, self.rule: value}
        profile = Nemesis(
            self.faults, outsiders=True, returning=True, settings={name: (one,) for name, one in settings.items()}
        )
        tally = Tally()
        schedules = (draw("epto", seed, profile) for seed in range(self.schedules))
        failures = [judge(one, careful=False, tally=tally) for one in schedules]
        agreement = tally.measured["P4"]
        return [failure for failure in failures if failure is not None], 1 - (agreement.rate or 0)


PLANTS = (
    Plant("ties", "printed", ("P9a", "P9b", "P5", "P6"), settings={"clock": "logical"}),
    Plant("identity", "printed", ("P1", "P1b", "P2", "P3b", "K0", "assertion")),
    Plant("expired", "drop", (), ("slow",), {"period": "1000", "fanout": "3"}),
    Plant("newcomer", "printed", (), ("restart",), {"period": "400", "clock": "logical"}, 200),
)
CORRECTED = {"expired": "order"}


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.rule)
def test_the_printed_rule_is_found_and_the_corrected_one_is_not(plant: Plant):
    printed, less = plant.judged(plant.printed)
    corrected, least = plant.judged(CORRECTED.get(plant.rule, "corrected"))
    failed = f"{len(printed)} and {len(corrected)} of {plant.schedules} fail"
    print(f"{plant.rule}: {failed}, {less:.4%} and {least:.4%} missing")
    for failure in printed[:1]:
        print(f"seed {failure.schedule.seed}, {failure.kind}: {failure.reasons[0]}")
    assert not corrected
    if plant.broken:
        assert printed and {failure.kind for failure in printed} <= set(plant.broken)
    else:
        assert not printed and less > 3 * least and less > 0.001
