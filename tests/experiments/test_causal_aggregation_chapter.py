"""Chapter 4 in small: the points are pure functions, the readings draw what they say, the quick ledger holds."""

import json
import re

import numpy as np
import pytest

from cubecast.errors import BadInput
from cubecast.experiments.causal_aggregation.chapter import (
    QUICK_SIZES,
    SIZES,
    all_findings,
    run_chapter,
    run_rates,
    table_4_1,
)
from cubecast.experiments.causal_aggregation.point import CHOSEN, PUBLISHED, READINGS, Links, run_point
from cubecast.experiments.causal_aggregation.reproduce import compare_readings
from cubecast.experiments.ledger import Comparison, claims_of
from cubecast.experiments.parallel import here, in_processes
from cubecast.experiments.reproduction import Effort, find_experiment
from cubecast.sim.kernels.causal_broadcast import CausalKernel


def test_a_point_is_a_pure_function_and_plain_data():
    point = {"nodes": 32, "seed": 7, "reading": "bell"}
    once, again = run_point(point), run_point(point)
    assert once == again
    assert json.loads(json.dumps(once)) == once
    assert once != run_point({**point, "seed": 8})


def test_a_point_counts_what_the_thesis_says_it_must():
    figures = run_point({"nodes": 64, "seed": 1, "reading": "window"})
    assert figures["none"]["packets"] == 64 * 63
    assert figures["single_none"]["packets"] == 64 * 63 + 63  # handing over to the root comes on top
    with_ = figures["aggr"]
    assert sum(count * packets for count, packets in enumerate(with_["messages_per_packet"])) == 64 * 63
    assert sum(with_["packets_by_size"]) == with_["packets"] < 64 * 63
    assert sum(figures["dependencies"]) == 64
    assert with_["holding"] < figures["none"]["holding"]


def test_unknown_readings_are_refused():
    with pytest.raises(BadInput, match=re.escape("unknown reading 'x'")):
        run_point({"nodes": 8, "seed": 1, "reading": "x"})


@pytest.mark.parametrize("name", READINGS)
def test_every_reading_draws_times_and_delays_the_kernel_takes(name):
    reading, rng = READINGS[name], np.random.default_rng(1)
    times, delays = reading.publication_times(16, rng), reading.delays(16, rng)
    assert CausalKernel(16, order=reading.order, queue=reading.queue).simulate(times, delays).complete()
    per_link = len(np.unique(delays)) < delays.size / 2
    assert per_link == (reading.links in (Links.LINK, Links.DIRECTION))


def test_a_link_has_the_same_latency_in_every_tree_and_direction():
    delays = READINGS["window-links"].delays(8, np.random.default_rng(1))
    # 5 gets messages of 4 and 6 over the link from 4, and 4 those of 5 and 1 over the same link
    assert delays[4, 5] == delays[6, 5] == delays[5, 4] == delays[1, 4]


def test_the_quick_chapter_reproduces_table_4_1_up_to_128_nodes():
    results = run_chapter(CHOSEN, 20, 1, here, QUICK_SIZES)
    findings = list(table_4_1(results))
    assert len(findings) == 12
    assert all(finding.within for finding in findings), [f.claim.name for f in findings if not f.within]


def test_the_published_parameters_do_not_give_the_published_table():
    results = run_chapter(PUBLISHED, 5, 1, here, (64, 128))
    saved = [finding for finding in table_4_1(results) if finding.claim.name.endswith("-red")]
    assert all(finding.ours < finding.claim.value / 2 for finding in saved)


def test_every_claim_of_the_chapter_is_judged():
    """One run: the claims about means of thirty are not asked for, the exact ones and most others hold already."""
    findings = all_findings(run_rates(1, 1, here, (1024,)), run_chapter(CHOSEN, 1, 1, here, SIZES))
    names = [finding.claim.name for finding in findings]
    assert sorted(names) == sorted(claim.name for claim in claims_of("causal-aggregation"))
    assert all(finding.within for finding in findings if finding.claim.comparison is Comparison.EXACT)


@pytest.mark.slow
def test_the_whole_chapter_has_no_difference_without_a_figure_that_explains_it():
    done = find_experiment("causal-aggregation")(Effort(seed=1), in_processes)
    assert done.ledger.unexplained() == []
    assert done.ledger.within >= 47, done.ledger.to_json()


def test_readings_are_compared_claim_by_claim():
    rows = list(compare_readings(Effort(runs=2, quick=True), here, [CHOSEN, PUBLISHED]))
    assert [row["reading"] for row in rows] == [CHOSEN.name, PUBLISHED.name]
    assert rows[0]["distance"] < rows[1]["distance"]


def test_effort_and_names_are_checked():
    with pytest.raises(BadInput, match="at least 1"):
        Effort(runs=0)
    with pytest.raises(BadInput, match="unknown experiment"):
        find_experiment("chapter-4")
