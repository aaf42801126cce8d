"""§5.3 in its quick form: the claims, and the figures our model of the network gives, within their tolerances."""

import numpy as np
import pytest

from cubecast.experiments.epto.point import Results, distinct_peers, draw, latency_quantile, run_settings, setting
from cubecast.experiments.parallel import here
from cubecast.experiments.reproduction import Effort, find_experiment


@pytest.mark.slow
def test_the_quick_reproduction_finds_or_explains_every_claim():
    done = find_experiment("epto")(Effort(runs=1, quick=True, seed=1), here)
    assert done.ledger.unexplained() == []
    rows = {row["claim"]: row["verdict"] for row in done.ledger.rows()}
    assert rows.pop("EP-DELAY-logical") == "explained"
    assert rows == dict.fromkeys(
        ("EP-F58", "EP-ORDER", "EP-DELAY-global", "EP-SCALE", "EP-PERIOD", "EP-DRIFT", "EP-CHURN"), "reproduced"
    )
    (order,) = (finding for finding in done.ledger.findings if finding.claim.name == "EP-ORDER")
    assert order.note == "12 runs", "two sizes, two clocks, three rates, each once"
    assert done.series["Figure 5.9"]["nodes"] == [100, 200]


def test_latencies_have_the_printed_percentiles_mean_and_deviation():
    latencies = latency_quantile(np.linspace(0, 1, 200_001))
    assert (np.diff(latencies) >= 0).all()
    assert np.percentile(latencies, [5, 50, 95]) == pytest.approx([15, 125, 366], abs=0.1)
    assert (latencies.mean(), latencies.std()) == (pytest.approx(157, abs=1), pytest.approx(119, abs=1))


def test_peers_are_different_others():
    peers = distinct_peers(9, 40, 8, np.random.default_rng(1))
    for me in range(9):
        assert all(sorted(row) == [other for other in range(9) if other != me] for row in peers[me].tolist())


def test_half_of_the_processes_stay():
    draws = draw(10, 3, 4, np.random.default_rng(1), rate=0.5, churn=0.4)
    assert not draws.replaced[:, :5].any() and (draws.replaced.sum(axis=1) == 2).all()


@pytest.mark.parametrize(
    ("clock", "delay", "over_first", "over_last"), [("global", 587, 3.4, 1.9), ("logical", 1490, 8.6, 5.0)]
)
def test_delays_of_a_hundred_processes(clock: str, delay: float, over_first: float, over_last: float):
    one = setting(100, clock)
    results = Results(run_settings(here, [one], range(1, 4)))
    assert results.mean(one, lambda run: run["delay"]) == pytest.approx(delay, rel=0.03)
    assert results.mean(one, lambda run: run["delay"] / run["first_reception"]) == pytest.approx(over_first, abs=0.2)
    assert results.mean(one, lambda run: run["delay"] / run["last_reception"]) == pytest.approx(over_last, abs=0.2)
    assert results.mean(one, lambda run: run["spontaneous"]) == pytest.approx(0.24, abs=0.05)


def test_short_rounds_leave_holes():
    """δ against a median latency of 125, n = 100, global clock; the figures of twenty runs."""
    model = {62.0: 1.0, 25.0: 0.88}
    settings = {period: setting(100, "global", period=period) for period in model}
    results = Results(run_settings(here, list(settings.values()), range(1, 4)))
    assert {period: results.mean(one, lambda run: run["clean"]) for period, one in settings.items()} == pytest.approx(
        model, abs=0.06
    )
