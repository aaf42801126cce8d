"""Two thousand random worlds with a static membership, each judged by the reference checker.

One seed derives everything, the options too: size, subscriptions, workload, delays, FIFO links or not, coded or not.
"""

from collections import Counter

import pytest

from cubecast.check import Verdict
from support.random_runs import check_seed, draw_config

RUNS = 2000
PER_TEST = 100


@pytest.mark.parametrize("first", range(0, RUNS, PER_TEST))
def test_seeded_runs_keep_their_promises(first):
    messages = 0
    for seed in range(first, first + PER_TEST):
        report = check_seed(seed)
        messages += report.messages
        assert report.verdict is Verdict.VALID, (
            f"seed {seed}: {report.verdict}, {sorted(report.violated())} {report.unknown_because}\n"
            f"{draw_config(seed)}\n{report.witnesses[:1]}\n"
            f"reproduce with: PYTHONPATH=tests python -m support.random_runs {seed}"
        )
    assert messages > 5 * PER_TEST, "the worlds are supposed to publish something"


def test_the_seeds_reach_every_kind_of_world():
    configs = [draw_config(seed) for seed in range(RUNS)]
    assert {config.nodes for config in configs} == {2, 4, 8, 16, 32, 64}
    for name in ("protocol", "propagation", "fifo_links", "coded", "queued_control", "topics"):
        rarest = min(Counter(getattr(config, name) for config in configs).values())
        assert rarest > RUNS // 20, name
    assert {config.workload.split(":")[0] for config in configs} == {"uniform", "poisson", "respond"}
    assert any(int(config.subscribers) < config.nodes for config in configs)
