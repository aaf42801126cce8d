"""What observing costs: the same live load with nodes that count what happens and nodes that do not, in turns.

Processor time per delivery, because the clock on the wall also measures the neighbours; the best of several rounds of
each, one after the other. `--nodes N --messages M --rounds R --single`.
"""

import argparse
import json

from cubecast.experiments.live_load.cluster import measure, measure_messages
from cubecast.experiments.live_load.member import Load

LOADS = {
    "batches of 256": {"publish": "batch"},
    "one call per turn": {"publish": "single"},
}
RATE, RATE_SECONDS = 100.0, 4.0


def cost(nodes: int, messages: int, observe: bool, how: dict[str, str]) -> float:
    """Microseconds of processor time per delivery, over all nodes."""
    measured = measure_messages(Load(nodes, messages=messages // nodes, observe=observe, **how))
    assert not measured.lost and not measured.violations, measured
    return 1e6 * measured.cpu_seconds / measured.deliveries


def cost_at_rate(nodes: int, observe: bool) -> float:
    measured = measure(Load(nodes, publish="rate", rate=RATE, observe=observe), RATE_SECONDS)
    assert not measured.lost and not measured.violations, measured
    return 1e6 * measured.cpu_seconds / measured.deliveries


def compare(name: str, rounds: int, once: "dict[bool, list[float]]") -> None:
    off, on = min(once[False]), min(once[True])
    told = {"load": name, "rounds": rounds, "off": round(off, 3), "on": round(on, 3), "unit": "µs CPU per delivery"}
    print(json.dumps(told | {"more": f"{100 * (on / off - 1):+.1f} %"}, ensure_ascii=False), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--messages", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args()
    for name, how in LOADS.items():
        messages = chosen.messages if how["publish"] == "batch" else chosen.messages // 5
        found: dict[bool, list[float]] = {False: [], True: []}
        for number in range(2 * chosen.rounds):
            observe = bool(number % 2)
            found[observe].append(cost(chosen.nodes, messages, observe, how))
        compare(name, chosen.rounds, found)
    at_rate: dict[bool, list[float]] = {False: [], True: []}
    for number in range(2 * chosen.rounds):
        at_rate[bool(number % 2)].append(cost_at_rate(chosen.nodes, bool(number % 2)))
    compare(f"{RATE:g} messages a second and node", chosen.rounds, at_rate)


if __name__ == "__main__":
    main()
