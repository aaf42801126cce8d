"""Settings of a node that cannot work are refused before anything is done."""

from pathlib import Path

import pytest

from cubecast.addresses import Address
from cubecast.errors import BadInput
from cubecast.net.settings.config import NodeConfig
from cubecast.net.settings.fields import FULL_BATCH, declared, leaves
from cubecast.protocol.families import DEFAULT_PROTOCOL, find
from support.cluster import cluster
from support.running import run

BUDGETS = ("peer_budget", "topic_budget", "client_budget")
EVERYWHERE = Address("0.0.0.0", 7400)
HERE = Address("10.0.0.7", 7400)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"listen": EVERYWHERE}, "advertise"),
        ({"listen": Address("::", 7400)}, "advertise"),
        ({"listen": EVERYWHERE, "advertise": HERE}, "without TLS .* --insecure"),
        ({"listen": HERE}, "without TLS .* --insecure"),
        ({"dimension": 0}, "dimension"),
        ({"node": 64}, "does not exist"),
        ({"max_payload": 1 << 21}, "max_payload must be"),
        ({"cluster": ""}, "cluster"),
        *(({name: value}, f"{name} must be") for name in BUDGETS for value in (0, -1, 1 << 60, "much", True)),
        *(({name: 0}, f"{name} must be") for name in ("window", "max_batch", "max_batch_bytes", "retry", "patience")),
        ({"eager": -1}, "eager must be"),
        ({"max_clients": -1}, "max_clients must be"),
        ({"max_batch": FULL_BATCH + 1}, "max_batch must be"),
        ({"retry": float("nan")}, "retry must be"),
        ({"patience": float("inf")}, "patience must be"),
        ({"round_length": 2.0, "patience": 3.0}, "two rounds"),
        ({"node": -1}, "node must be"),
    ],
)
def test_refused(settings, reason):
    with pytest.raises(BadInput, match=reason):
        NodeConfig(**settings)


def test_a_node_that_listens_everywhere_says_where_it_is_found():
    assert NodeConfig(listen=EVERYWHERE, advertise=HERE, insecure=True).advertise == HERE


@pytest.mark.parametrize("dimension", range(1, 14))
def test_acknowledgements_kept_at_every_level_arrive_before_the_retry(dimension):
    chosen = NodeConfig(retry=0.1, ack_delay=0.09).chosen(dimension)
    assert 0 < float(chosen["ack_delay"]) * dimension < float(chosen["retry"])
    assert float(NodeConfig().chosen(6)["ack_delay"]) == NodeConfig().ack_delay


def test_the_defaults_of_a_node_are_those_its_protocol_declares():
    declared = find("cubecast").settings
    for name, text in NodeConfig().chosen(6).items():
        assert declared[name].parse(text) == declared[name].live, name


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"protocol": "pigeon"}, "there are cubecast"),
        ({"protocol": "vcube-ps"}, "runs in the simulator only; live nodes run cubecast"),
        ({"parameters": {"colour": "red"}}, "has no parameter 'colour'"),
        ({"protocol": "epto", "parameters": {"window": "4"}}, "epto has no parameter 'window'; it has period"),
        ({"protocol": "epto", "window": 4}, "no parameter 'window', which is one of cubecast; it has, as .*, period"),
        (
            {"protocol": "epto", "data": Path("d"), "log": ("a", "b.>")},
            "epto follows no patterns such as 'b.>': name each",
        ),
        ({"protocol": "locaps", "data": Path("d"), "log": ("a",)}, "locaps keeps no log: leave `log` out"),
        ({"parameters": {"window": "0"}}, "window takes a whole number from 1"),
    ],
)
def test_protocols_and_parameters_that_cannot_be_are_refused(settings, told):
    with pytest.raises(BadInput, match=told):
        NodeConfig(**settings)


def test_patience_is_every_protocols():
    assert NodeConfig(protocol="epto", patience=20.0).patience == 20.0


@pytest.mark.parametrize("most", [1, FULL_BATCH])
def test_the_smallest_and_the_largest_batches_work(most):
    async def main():
        async with cluster(2, max_batch=most) as (ann, bob), bob.subscribe("t", gaps="raise") as heard:
            await ann.publish_batch("t", range(3000), wait="stable", timeout=30)
            assert [(await heard.next(30)).data for _ in range(3000)] == list(range(3000))

    run(main())


def test_settings_that_are_parameters_of_the_protocol_are_those_it_declares():
    """A node takes a value exactly where its machine would, but for what a network cannot do."""
    parameters, known = find(DEFAULT_PROTOCOL).settings, leaves(NodeConfig)
    shared = [name for name in parameters if name in known]
    assert {"window", "eager", "retry", "ack_delay", "patience", "max_batch", "aggregation"} <= set(shared)
    for name in shared:
        assert known[name].text.lower().startswith(parameters[name].text.lower())
    assert (known["window"].limits.least, known["window"].limits.most) == (1, 4096)
    assert (known["retry"].default, known["retry"].limits.unit) == (0.5, "seconds")
    assert known["aggregation"].default is False
    assert NodeConfig().chosen(6)["aggregation"] == "off"


def test_a_setting_allows_nothing_its_declaration_refuses():
    with pytest.raises(ValueError, match="the declaration allows from 1 to 4096"):
        declared("window", most=5000)
    with pytest.raises(ValueError, match="which is the least"):
        declared("retry")
