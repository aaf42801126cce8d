"""What TLS costs: the same load in the clear and over mutual TLS 1.3, side by side. `--nodes N --size B --rounds R`.

Rounds alternate, so that whatever else the machine does falls on both. Deliveries per second by the clock and per
second of processor time; the best of each, and the ratio.
"""

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory

from cubecast.experiments.live_load.cluster import Measured, measure
from cubecast.experiments.live_load.load import Load
from cubecast.net.security.certificates import Authority, Subject
from cubecast.net.settings.security import TlsSettings

GOAL = 0.6
"""Of the throughput in the clear."""


def certificates(directory: Path) -> TlsSettings:
    path = Authority.create(directory).issue(Subject("node", nodes=(None,)))
    return TlsSettings(cert=path, key=path.with_suffix(".key"), ca=directory / "ca.pem")


def per_processor_second(found: Measured) -> float:
    return found.deliveries / found.cpu_seconds


def compare(load: Load, secured: Load, rounds: int, seconds: float) -> dict[str, tuple[float, float]]:
    """Plain and secured: by the clock, and by processor time."""
    plain, tls = [], []
    for _ in range(rounds):
        plain.append(measure(load, seconds))
        tls.append(measure(secured, seconds))
    for found in (*plain, *tls):
        assert not found.violations and not found.lost, "a benchmark of what does not work"
    return {
        "deliveries per second": (max(one.rate for one in plain), max(one.rate for one in tls)),
        "deliveries per second of processor time": (
            max(map(per_processor_second, plain)),
            max(map(per_processor_second, tls)),
        ),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--size", type=int, nargs="+", default=[64, 1024])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=3.0)
    options = parser.parse_args()
    with TemporaryDirectory() as directory:
        tls = certificates(Path(directory))
        for size in options.size:
            load = Load(options.nodes, size)
            found = compare(load, Load(options.nodes, size, tls=tls), options.rounds, options.seconds)
            print(f"{options.nodes} nodes, messages of {size} bytes")
            for what, (plain, secured) in found.items():
                ratio = secured / plain
                verdict = "" if ratio >= GOAL else f"  below the goal of {GOAL:.0%}"
                print(f"  {what:42} plain {plain:10,.0f}   TLS {secured:10,.0f}   {ratio:6.1%}{verdict}")


if __name__ == "__main__":
    main()
