"""Many packets in one call are the same as one after the other."""

from random import Random
from typing import Any

import pytest

from cubecast.errors import LocalProtocolError, RemoteProtocolError
from cubecast.protocol.contract import Outcomes
from cubecast.protocol.effects import Effects, Observe
from cubecast.protocol.hypercube.packets import Test
from cubecast.protocol.hypercube.vcube_ps import VCubePS
from cubecast.sim.config import SimConfig
from cubecast.sim.run import prepare


class Listening:
    """Between the world and a machine: notes what the machine is asked."""

    def __init__(self, machine: VCubePS, asked: list[tuple[str, tuple[Any, ...]]]) -> None:
        self._machine = machine
        self._asked = asked

    def __getattr__(self, name: str) -> Any:
        return getattr(self._machine, name)

    def on_packet(self, *arguments: Any) -> Any:
        self._asked.append(("on_packet", arguments))
        return self._machine.on_packet(*arguments)

    def publish(self, *arguments: Any) -> Any:
        self._asked.append(("publish", arguments))
        return self._machine.publish(*arguments)

    def subscribe(self, *arguments: Any) -> Any:
        self._asked.append(("subscribe", arguments))
        return self._machine.subscribe(*arguments)

    def unsubscribe(self, *arguments: Any) -> Any:
        self._asked.append(("unsubscribe", arguments))
        return self._machine.unsubscribe(*arguments)

    def on_timer(self, *_: Any) -> Any:
        raise AssertionError("there are no timers")


def drawn(rng: Random) -> SimConfig:
    subscribers = rng.choice(("60%", "100%"))
    return SimConfig(
        "vcube-ps",
        nodes=rng.choice((4, 16, 32)),
        publishers=rng.choice(("50%", "100%")),
        subscribers=subscribers,
        messages=rng.randint(1, 4),
        window=rng.choice((50.0, 600.0)),
        topics=rng.choice((1, 1, 3)),
        propagation=rng.choice(("constant:100", "uniform:10:200")),
        churn_session=300.0 if subscribers == "60%" else None,
        settings={"first_reception": rng.choice(("block", "pass"))},
        seed=rng.randrange(1000),
    )


def a_nodes_life(config: SimConfig, node: int) -> list[tuple[str, tuple[Any, ...]]]:
    asked: list[tuple[str, tuple[Any, ...]]] = []
    world = prepare(config).world
    world.wrap(node, lambda machine: Listening(machine, asked))
    world.start()
    assert world.run()
    return asked


def mistreated(asked: list[tuple[str, tuple[Any, ...]]], rng: Random) -> list[tuple[str, tuple[Any, ...]]]:
    """Some packets come twice or too late, some never: the order of a network no rule of the paper foresees."""
    result = []
    for name, arguments in asked:
        copies = rng.choice((0, 1, 1, 1, 1, 1, 1, 1, 2)) if name == "on_packet" else 1
        result += [(name, arguments)] * copies
    for _ in range(len(result) // 10):
        k = rng.randrange(len(result) - 1)
        if result[k][0] == result[k + 1][0] == "on_packet":
            result[k], result[k + 1] = result[k + 1], result[k]
    return result


def columns(outcomes: Outcomes, packets: dict[int, Any]) -> tuple[Any, ...]:
    sent = list(zip(outcomes.sent_by, outcomes.peers, outcomes.packets, strict=True))
    delivered = list(zip(outcomes.delivered_by, outcomes.deliveries, strict=True))
    delivered += [(number, packets[number].delivery) for number in outcomes.passed]
    return sent, sorted(delivered, key=lambda one: one[0]), outcomes.others


def state(machine: VCubePS) -> Any:
    def shown(value: Any) -> Any:
        if hasattr(type(value), "__slots__") and not isinstance(value, tuple):
            names = [name for cls in type(value).__mro__ for name in getattr(cls, "__slots__", ())]
            return [(name, shown(getattr(value, name))) for name in names if name not in ("_handlers", "frame", "born")]
        if isinstance(value, dict):
            return sorted(((key, shown(one)) for key, one in value.items()), key=lambda item: str(item[0]))
        return [shown(one) for one in value] if isinstance(value, list) else value

    return shown(machine)


def answer(machine: VCubePS, name: str, arguments: tuple[Any, ...]) -> Effects:
    try:
        effects: Effects = getattr(machine, name)(*arguments)
    except LocalProtocolError as refusal:  # mistreated nodes may still be joining or leaving
        return [Observe("discard", detail=str(refusal))]
    return effects


@pytest.mark.parametrize("seed", range(40))
def test_many_packets_in_one_call_are_the_same_as_one_after_the_other(seed: int):
    rng = Random(seed)
    config = drawn(rng)
    node = rng.randrange(config.nodes)
    asked = a_nodes_life(config, node)
    if seed % 2:
        asked = mistreated(asked, rng)
    single, bulk = (prepare(config).world.machines[node] for _ in range(2))
    assert isinstance(single, VCubePS) and isinstance(bulk, VCubePS)
    one_by_one, at_once = Outcomes(), Outcomes()
    series: list[Any] = []
    for number, (name, arguments) in enumerate(asked):
        one_by_one.add(number, answer(single, name, arguments))
        if name == "on_packet":
            series.append((number, *arguments))
            if rng.random() < 0.9 and number + 1 < len(asked):
                continue
        bulk.on_packets(series, at_once)
        series.clear()
        if name != "on_packet":
            at_once.add(number, answer(bulk, name, arguments))
        assert state(bulk) == state(single)
    packets = {number: arguments[2] for number, (name, arguments) in enumerate(asked) if name == "on_packet"}
    assert columns(at_once, packets) == columns(one_by_one, packets)


def test_a_packet_of_another_protocol_is_refused_either_way():
    machine = prepare(SimConfig("vcube-ps", nodes=4)).world.machines[0]
    assert isinstance(machine, VCubePS)
    with pytest.raises(RemoteProtocolError, match="VCube-PS does not know"):
        machine.on_packets([(0, 1.0, 1, Test(1, 0))], Outcomes())
