"""What is said of the topics of a workload, as people read it."""

import pytest

from cubecast.report.tables import correlation_line


@pytest.mark.parametrize(
    ("correlation", "expected"),
    [
        ({"mean": None, "interval": None, "pairs": 0}, "too few topics to correlate"),
        (
            {"mean": 0.25, "interval": None, "pairs": 1},
            "mean correlation of topics 0.2500 (of too few topics for an interval) over 1 pairs",
        ),
        (
            {"mean": 0.25, "interval": (0.125, 0.375), "pairs": 1000},
            "mean correlation of topics 0.2500 (95 %: 0.1250 to 0.3750) over 1,000 pairs",
        ),
    ],
)
def test_an_interval_is_said_only_where_there_is_one(correlation: dict, expected: str) -> None:
    assert correlation_line(correlation) == expected
