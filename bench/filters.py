"""How many events per second a broker matches against many filters: the index beside a scan of all of them.

Orders of an exchange: filters demand a topic of ten, some of 500 symbols or a prefix of them, a range of prices, sides
and flags, in the mixture below; events have all of these attributes. Both sides answer the same events, and the
answers are compared. Where RabbitMQ is installed, its headers exchange stands beside the index, for filters of
equality only (`bench.headers_exchange`).
"""

import argparse
from collections.abc import Callable, Sequence
from random import Random
from time import process_time

from bench.headers_exchange import compare
from cubecast.protocol.filters import Attributes, Filter, MatchingIndex, parse

EVENTS = 2000
SCANNED = 2_000_000
"""Comparisons that the scan is given time for."""


def draw_filter(rng: Random) -> Filter:
    terms = [f"topic = 'orders.{rng.randrange(10)}'"]
    kind = rng.random()
    if kind < 0.6:
        terms.append(f"symbol = 'S{rng.randrange(500):03}'")
    elif kind < 0.8:
        terms.append(f"symbol ^= 'S{rng.randrange(50):02}'")
    if kind > 0.4:
        low = rng.uniform(0, 1000)
        terms.append(f"price >= {low:.2f} and price < {low + rng.uniform(1, 20):.2f}")
    if rng.random() < 0.3:
        terms.append(f"side = '{rng.choice(('buy', 'sell'))}'")
    if rng.random() < 0.1:
        terms.append("urgent = true")
    return parse(" and ".join(terms))


def draw_event(rng: Random) -> Attributes:
    return {
        "topic": f"orders.{rng.randrange(10)}",
        "symbol": f"S{rng.randrange(500):03}",
        "price": round(rng.uniform(0, 1000), 2),
        "side": rng.choice(("buy", "sell")),
        "urgent": rng.random() < 0.2,
    }


def rate(match: Callable[[Attributes], list[int]], events: Sequence[Attributes]) -> tuple[float, list[list[int]]]:
    started = process_time()
    answers = [match(event) for event in events]
    return len(events) / max(process_time() - started, 1e-9), answers


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--filters", type=int, nargs="+", default=[10, 1000, 10_000, 100_000])
    parser.add_argument("--exchange", type=int, nargs="*", default=[10, 1000], help="filters, for RabbitMQ")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    print(f"{'filters':>8} {'matches':>8} {'index events/s':>15} {'scan events/s':>14} {'ratio':>8}")
    for count in options.filters:
        rng = Random(options.seed)
        filters = [draw_filter(rng) for _ in range(count)]
        events = [draw_event(rng) for _ in range(EVENTS)]
        index: MatchingIndex[int] = MatchingIndex()
        for number, wanted in enumerate(filters):
            index.add(number, wanted)
        fast, found = rate(index.matching, events)
        few = events[: max(1, SCANNED // count)]
        slow, expected = rate(lambda event, all_=filters: [n for n, one in enumerate(all_) if one.matches(event)], few)
        assert found[: len(few)] == expected, "the index and the scan disagree"
        matches = sum(map(len, found)) / EVENTS
        print(f"{count:>8,} {matches:>8.2f} {fast:>15,.0f} {slow:>14,.1f} {fast / slow:>8.1f}", flush=True)
    compare(options.exchange, options.seed)


if __name__ == "__main__":
    main()
