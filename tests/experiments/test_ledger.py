"""The ledger measures distances as its tolerances say, and hides nothing."""

import pytest

from cubecast.experiments.ledger import WORST, Claim, Comparison, Finding, Ledger


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


def test_what_is_outside_is_explained_or_differs():
    findings = [Finding(claim(Comparison.POINTS, tolerance=1, name=name), ours) for name, ours in
                (("near", 10.5), ("far", 20), ("odd", 20))]  # fmt: skip
    ledger = Ledger(findings, {"far": "because", "near": "not needed"})
    assert [(row["verdict"], row["explanation"]) for row in ledger.rows()] == [
        ("reproduced", ""),
        ("explained", "because"),
        ("differs", ""),
    ]
    assert ledger.unexplained() == ["odd"]
    assert ledger.within == 1
    assert ledger.distance == pytest.approx((0.5 + WORST + WORST) / 3)
    assert ledger.to_json()["claims"] == 3
