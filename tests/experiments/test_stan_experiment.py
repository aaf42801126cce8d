"""Chapter 3 of the thesis in small: universes have their shape, and StaN's figures are those of the model."""

import numpy as np
import pytest

from cubecast.errors import BadInput
from cubecast.experiments.ledger import claims_of
from cubecast.experiments.parallel import here
from cubecast.experiments.reproduction import Effort
from cubecast.experiments.stan import table_3_1
from cubecast.experiments.stan.figures import (
    LOSSES,
    SETTING,
    deployed,
    evolution,
    findings_of_figure_3_7,
    findings_of_figure_3_8,
    findings_of_figure_3_10,
    findings_of_figure_3_11,
    findings_of_figure_3_12,
    findings_of_figure_3_13,
    findings_of_figure_3_14,
    findings_of_figure_3_15,
    runs_of_figure_3_12,
    runs_of_figure_3_13,
    runs_of_figure_3_14,
    settings_of_figure_3_10,
    settings_of_figure_3_11,
    settings_of_figure_3_15,
)
from cubecast.experiments.stan.point import run_settings, savings, setting, triplets
from cubecast.experiments.stan.reproduce import reproduce
from cubecast.experiments.stan.table_3_1 import draw_log, extract, log_of
from cubecast.experiments.stan.universes import SHAPES, grid, matched, universe
from cubecast.pipeline.workloads.synthetic import Shape
from cubecast.sim.kernels.stan import ChangingOverlays, Overlays

SMALL = Shape(300, 60, 120, 1.6, 1000.0, 4, 0.7)


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setitem(SHAPES, "small", SMALL)


def test_members_are_drawn_once_and_from_the_seed_alone():
    for draw in (lambda seed: grid(np.random.default_rng(seed)), lambda seed: matched(seed, SMALL)):
        one, again, other = (draw(seed) for seed in (1, 1, 2))
        assert np.array_equal(one.members, again.members) and not np.array_equal(one.members, other.members)
        assert all((np.diff(one.of(topic)) > 0).all() for topic in range(one.topics))


@pytest.mark.parametrize(("name", "correlated", "most"), [("W8", 0.19, 600), ("L8", 0.03, 1500)])
def test_matched_universes_have_the_printed_size_and_correlate(name, correlated, most):
    found = []
    for seed in range(1, 6):
        drawn = matched(seed, SHAPES[name])
        assert (drawn.processes, drawn.topics) == (SHAPES[name].processes, SHAPES[name].topics)
        assert len(np.unique(drawn.members)) > 0.94 * drawn.processes
        assert drawn.sizes.min() >= 30 and drawn.sizes.max() <= most
        belongs = np.zeros((drawn.topics, drawn.processes))
        for topic in range(drawn.topics):
            belongs[topic, drawn.of(topic)] = 1
        found.append(np.corrcoef(belongs)[np.triu_indices(drawn.topics, 1)].mean())
    assert np.mean(found) == pytest.approx(correlated, abs=0.015)


def test_a_community_is_favoured_and_not_used_up():
    """A topic larger than its community takes others, though some of the community are left."""
    drawn = matched(1, Shape(400, 200, 120, 1.6, 1000.0, 8, 0.7))
    shares = [np.bincount(drawn.of(topic) // 50, minlength=8) for topic in np.flatnonzero(drawn.sizes > 75)]
    assert len(shares) > 20
    assert all(share.argmax() == np.argsort(share)[-1] and share.max() < 50 for share in shares)
    assert np.mean([share.max() / share.sum() for share in shares]) > 0.3


def test_an_empty_universe_is_refused():
    with pytest.raises(BadInput, match="empty"):
        universe(10, [])


def test_links_on_the_grid_are_those_of_the_figure():
    (runs,) = run_settings(here, [SETTING], range(1, 21))
    links = evolution(runs)
    assert (links[0], links[-1]) == (pytest.approx(24.7, rel=0.15), pytest.approx(15.1, rel=0.15))
    assert all(finding.within for finding in findings_of_figure_3_7(runs))


def test_machines_over_planetlabs_delays_take_longer_and_come_to_as_few_links():
    """Rounds begin whenever a process does, and one message in twenty is lost."""
    abroad = [deployed({"seed": seed}) for seed in (1, 2)]
    (here_alone,) = run_settings(here, [SETTING], range(1, 3))
    slow, fast = evolution(abroad), evolution(here_alone)
    assert slow[0] == pytest.approx(fast[0], rel=0.05)
    assert slow[1] > fast[1] + 1 and slow[-1] == pytest.approx(fast[-1], rel=0.05)


def test_a_finding_outside_its_tolerance_says_so():
    (runs,) = run_settings(here, [setting("grid", rounds=0)], range(1, 4))
    assert [finding.within for finding in findings_of_figure_3_7(runs)] == [True, False]


def test_loss_slows_down_in_the_order_of_its_rates():
    settings = settings_of_figure_3_11("small")
    runs = dict(zip(LOSSES, run_settings(here, settings, range(1, 3)), strict=True))
    final = [evolution(its)[-2] for its in runs.values()]
    assert final == sorted(final) and final[0] < final[-1]
    (finding,) = findings_of_figure_3_11("small", runs)
    assert finding.ours == pytest.approx(0.93, abs=0.07)


def test_printed_rules_lose_processes_and_pins_keep_them():
    repaired, printed = run_settings(here, settings_of_figure_3_10("small"), range(1, 3))
    found = {finding.claim.name: finding for finding in findings_of_figure_3_10("W8", repaired, printed)}
    assert found["ST-FIT-W8-reachable"].ours == 100
    assert max(run["final"]["reachable"] for run in printed) < 0.95
    assert found["ST-FIT-W8-weakly"].within


def test_fewer_improve_where_interests_correlate_less(monkeypatch):
    monkeypatch.setitem(SHAPES, "loose", Shape(1200, 60, 120, 1.8, 300.0, 20, 0.1))
    close, loose = run_settings(here, [setting("small"), setting("loose")], range(1, 2))
    assert [finding.within for finding in findings_of_figure_3_8(close, loose)] == [True, True]


def test_crossposts_save_messages_only_where_topics_share_links():
    drawn = matched(1, SMALL)
    assert all(len(set(three.tolist())) == 3 and len(common) for three, common in triplets(drawn))
    overlays = Overlays(drawn.first, drawn.members, seed=1)
    before = savings(drawn, overlays, np.random.default_rng(1))
    for _ in range(10):
        overlays.round()
    overlays.mend()
    after = savings(drawn, overlays, np.random.default_rng(1))
    assert before["saving"] < after["saving"]
    assert after["hops"] <= after["hops_apart"]
    (runs,) = run_settings(here, settings_of_figure_3_15("small"), range(1, 2))
    assert [finding.claim.name for finding in findings_of_figure_3_15("small", runs)] == ["ST-XP", "ST-XP-hops"]


def test_newcomers_take_over_links_and_no_view_shrinks():
    drawn = matched(1, SMALL)
    rng = np.random.default_rng(2)
    order = rng.permutation(drawn.processes)
    overlays = ChangingOverlays(drawn.first, drawn.members, order < 150, seed=1)
    old = overlays.there.copy()
    sizes = overlays.world.size.copy()
    assert not sizes[~old].any() and (sizes[old] > 0).any()
    overlays.round()
    assert np.array_equal(overlays.world.size, sizes)
    overlays.come(order < 300)
    assert overlays.there.all() and (overlays.world.size >= sizes).all() and (overlays.world.size > 0).all()
    for slot in range(len(drawn.members)):
        view = overlays.view(slot)
        assert len(set(view)) == len(view) and drawn.members[slot] not in view


def test_links_after_growth_are_those_of_all_from_the_start():
    (finding,) = findings_of_figure_3_13("small", runs_of_figure_3_13(here, "small", range(1, 2)))
    assert finding.ours == pytest.approx(1, abs=0.05)


def test_links_follow_the_number_of_processes_that_come_and_go(monkeypatch):
    monkeypatch.setattr("cubecast.experiments.stan.figures.ROUNDS", 30)
    done = runs_of_figure_3_12(here, "small", range(1, 2))
    found = {finding.claim.name: finding for finding in findings_of_figure_3_12(done)}
    assert set(found) == {"ST-CHURN-x1", "ST-CHURN-x4", "ST-CHURN-x16", "ST-CHURN-isolated"}
    assert found["ST-CHURN-isolated"].within
    swings = {factor: max(runs[0]["processes"]) - min(runs[0]["processes"]) for factor, runs in done.items()}
    assert swings[1] < swings[16]


def test_common_interests_give_fewer_links_and_overlays_that_are_not_whole():
    (stan,) = run_settings(here, [setting("small", measure="fitness")], range(1, 2))
    greedy = runs_of_figure_3_14(here, "small", 1)
    assert [finding.within for finding in findings_of_figure_3_14(greedy, stan)] == [True, True]
    assert greedy[0]["reachable"] < 0.1
    assert not all(finding.within for finding in findings_of_figure_3_14([_as_greedy(stan[0])], stan))


def _as_greedy(run):
    return {"links": run["links"][-1], "clustering": run["final"]["clustering"], "reachable": 1.0}


def test_a_universe_grows_from_its_seeds_as_by_hand():
    pairs = [(0, 1), (0, 2), (0, 1), (1, 1), (1, 2), (1, 3), (2, 3), (3, 3)]  # (topic, user); 0 is the seed
    log = log_of(*(np.array(column) for column in zip(*pairs, strict=True)))
    drawn = [extract(log, np.array([0]), np.random.default_rng(seed), 2) for seed in range(20)]
    grown = {tuple(sorted(map(tuple, pairs.tolist()))) for pairs in drawn}
    assert grown == {((0, 1), (0, 2)), ((0, 1), (0, 2), (1, 1), (1, 2))}
    assert len(extract(log, np.array([0]), np.random.default_rng(1), 3)) == 0
    with pytest.raises(BadInput, match="empty"):
        log_of(np.array([], int), np.array([], int))


def test_sizes_of_table_3_1_are_those_of_the_median_universe(monkeypatch):
    for name, value in (("PAGES", 600), ("USERS", 2000), ("CANDIDATES", 3), ("SEEDS", {"W8": 5, "W7": 10})):
        monkeypatch.setattr(table_3_1, name, value)
    done = table_3_1.runs(here, 1)
    assert len(list(table_3_1.findings(done))) == 4 and all(run["topics"] > 1 for run in done)
    log = draw_log(np.random.default_rng(1), SMALL)
    assert (np.diff(log.topic * 300 + log.user) > 0).all(), "a pair stands twice"


def test_the_full_reproduction_has_a_finding_for_every_claim(monkeypatch):
    for name in ("W8", "W7", "L8"):
        monkeypatch.setitem(SHAPES, name, SMALL)
    for name, value in (("PAGES", 600), ("USERS", 2000), ("CANDIDATES", 3)):
        monkeypatch.setattr(table_3_1, name, value)
    monkeypatch.setattr("cubecast.experiments.stan.figures.ROUNDS", 20)
    monkeypatch.setattr("cubecast.experiments.stan.figures.RUNS", 1)
    report = reproduce(Effort(runs=1, quick=False, seed=1), here)
    names = [finding.claim.name for finding in report.ledger.findings]
    assert sorted(names) == sorted(one.name for one in claims_of("stan"))
