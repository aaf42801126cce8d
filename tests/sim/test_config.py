"""A configuration is validated once, before anything runs."""

import pytest

from cubecast.errors import BadInput
from cubecast.protocol.families import FAMILIES, find
from cubecast.sim.config import SimConfig
from cubecast.sim.run import prepare


@pytest.mark.parametrize(
    "options",
    [
        *({"nodes": 12}, {"nodes": 1}, {"nodes": 1 << 14}, {"messages": 0}, {"topics": 0}, {"window": 0.0}),
        *({"window": float("nan")}, {"window": float("inf")}, {"processing": -1.0}, {"transmission": float("nan")}),
        *({"payload_bytes": -1}, {"zipf": -0.5}, {"churn_session": 0.0}, {"detection_delay": -1.0}),
        *({"publishers": "0"}, {"publishers": "65"}, {"publishers": "x"}, {"subscribers": "101%"}),
        *({"subscribers": "nan%"}, {"publishers": "1.5"}, {"protocol": "carrier-pigeon"}, {"workload": "lazy"}),
        *({"propagation": "warp"}, {"faults": "meteor:1@2-3"}, {"settings": {"colour": "red"}}),
        *({"settings": {"first_reception": "maybe"}}, {"protocol": "srpt-b", "settings": {"brokers": "0"}}),
        *({"protocol": "srpt-b", "settings": {"brokers": "65"}}, {"protocol": "srpt-b", "settings": {"brokers": "x"}}),
    ],
    ids=str,
)
def test_what_cannot_be_is_refused(options):
    with pytest.raises(BadInput):
        prepare(SimConfig(**({"protocol": "vcube-ps"} | options)))


@pytest.mark.parametrize(("text", "count"), [("25%", 16), ("100%", 64), ("1", 1), ("64", 64), ("0.1%", 1), ("33%", 21)])
def test_shares_and_counts(text: str, count: int):
    assert SimConfig("vcube-ps", nodes=64, publishers=text).count("publishers", 64) == count


def test_publishers_are_drawn_among_the_subscribers():
    simulation = prepare(SimConfig("vcube-ps", nodes=64, subscribers="10", publishers="4"))
    members = [node for node, topics in simulation.world.subscriptions.items() if topics]
    assert len(members) == 10 and len(simulation.publishers) == 4
    assert set(simulation.publishers) <= set(members)


def test_every_protocol_says_what_it_promises_and_what_can_be_set():
    for name in FAMILIES:
        family = find(name)
        assert family.name == name and family.summary and family.promises and family.described
        assert list(family.choose({})) == list(family.settings)
        assert all(one.text for one in family.settings.values())
