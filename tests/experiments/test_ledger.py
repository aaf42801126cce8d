"""The ledger measures distances as its tolerances say, and hides nothing."""

import pytest

from cubecast.experiments.ledger import (
    WORST,
    Claim,
    Comparison,
    Evidence,
    Explanation,
    Finding,
    Ledger,
    verdicts_of_claims,
)


def claim(comparison, value=10.0, tolerance=0.0, name="c"):
    return Claim(name, "Table 1", "something", value, "units", comparison, tolerance)


@pytest.mark.parametrize(
    ("comparison", "tolerance", "ours", "distance"),
    [
        (Comparison.EXACT, 0, 10, 0),
        (Comparison.EXACT, 0, 11, WORST),
        (Comparison.RELATIVE, 0.2, 12, 1),
        (Comparison.RELATIVE, 0.2, 9, 0.5),
        (Comparison.POINTS, 4, 12, 0.5),
        (Comparison.POINTS, 4, 100, WORST),
        (Comparison.FACTOR, 2, 20, 1),
        (Comparison.FACTOR, 2, 5, 1),
        (Comparison.FACTOR, 2, 0, WORST),
        (Comparison.AT_MOST, 0, 9, 0),
        (Comparison.AT_MOST, 0, 15, 1.5),
        (Comparison.AT_LEAST, 0, 11, 0),
        (Comparison.AT_LEAST, 0, 5, 1.5),
    ],
)
def test_distance(comparison, tolerance, ours, distance):
    finding = Finding(claim(comparison, tolerance=tolerance), ours)
    assert finding.distance == pytest.approx(distance)
    assert finding.within == (distance <= 1)


def test_a_shape_holds_or_not():
    assert Finding(claim(Comparison.SHAPE), 3, True).within
    assert not Finding(claim(Comparison.SHAPE), 3, False).within


def explained(low, high, *evidence):
    return Explanation("because", low, high, [Evidence("figure", *one) for one in evidence])


def test_what_is_outside_is_explained_or_differs():
    findings = [Finding(claim(Comparison.POINTS, tolerance=1, name=name), ours) for name, ours in
                (("near", 10.5), ("far", 20), ("odd", 20))]  # fmt: skip
    because = explained(15, 25, (3.0, 2, 4))
    ledger = Ledger(findings, {"far": because, "near": because}, [claim(Comparison.EXACT, name="later")])
    assert [(row["claim"], row["verdict"], bool(row["explanation"])) for row in ledger.rows()] == [
        ("near", "reproduced", False),
        ("far", "explained", True),
        ("odd", "differs", False),
        ("later", "not run", False),
    ]
    assert "figure 3 (2 … 4)" in ledger.rows()[1]["explanation"]
    assert ledger.unexplained() == ["odd"]
    assert ledger.within == 1
    assert ledger.distance == pytest.approx((0.5 + WORST + WORST) / 3)
    assert ledger.to_json()["claims"] == 3
    assert ledger.to_json()["not_run"] == ["later"]


@pytest.mark.parametrize(
    "explanation",
    [
        explained(15, 25),
        explained(15, 25, (1.0, 2, 4)),
        explained(15, 25, (3.0, 2, 4), (9.0, 2, 4)),
        explained(21, 25, (3.0, 2, 4)),
    ],
    ids=["no evidence", "evidence outside", "some evidence outside", "a value it does not speak of"],
)
def test_an_explanation_is_no_free_pass(explanation):
    finding = Finding(claim(Comparison.POINTS, tolerance=1), 20)
    assert Ledger([finding], {"c": explanation}).unexplained() == ["c"]


def test_a_claim_is_as_good_as_its_worst_row():
    rows = [{"part_of": claim, "verdict": verdict} for claim, verdict in
            (("a", "reproduced"), ("b", "reproduced"), ("b", "explained"), ("c", "not run"), ("c", "differs"),
             ("d", "not run"), ("d", "explained"))]  # fmt: skip
    assert verdicts_of_claims(rows) == {"a": "reproduced", "b": "explained", "c": "differs", "d": "not run"}
