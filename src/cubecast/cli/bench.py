"""`cubecast bench`: a live cluster on this machine under load, every delivery checked."""

from pathlib import Path
from typing import Any

import click

from cubecast.cli.common import OK, VIOLATED, json_option, print_json
from cubecast.cli.screen import output, stages

EXAMPLE = """
\b
Example:
  cubecast bench --nodes 8 --messages 200000 --size 64
"""
RATE = 100.0
LATENCY_SECONDS = 5.0


@click.command(epilog=EXAMPLE)
@click.option("--nodes", type=click.IntRange(2, 64), default=8, show_default=True, help="Member processes.")
@click.option(
    "--messages", type=click.IntRange(1), default=400_000, show_default=True, help="Published by all together."
)
@click.option("--size", type=click.IntRange(1, 60_000), default=64, show_default=True, help="Bytes of a message.")
@click.option(
    "--data", type=click.Path(path_type=Path, file_okay=False), help="Every member keeps a log of everything there."
)
@json_option
@click.pass_context
def bench(context: click.Context, nodes: int, messages: int, size: int, data: Path | None, as_json: bool) -> None:
    """Group chat on loopback: all publish and all subscribe one topic, first as fast as it goes, then at 100 a second
    each for the latency. Takes half a minute, or a minute on two busy cores. Exit code 1 when anything was lost or came
    out of order."""
    from cubecast.experiments.live_load.cluster import measure, measure_messages
    from cubecast.experiments.live_load.load import Load, smallest_payload
    from cubecast.report.tables import print_bench

    size = max(size, smallest_payload(nodes))
    each = max(1, messages // nodes)
    with stages("as fast as it goes"):
        fast = measure_messages(Load(nodes, size, messages=each, data=data and data / "fast"))
    with stages("at 100 messages a second each"):
        slow = measure(Load(nodes, size, publish="rate", rate=RATE, data=data and data / "slow"), LATENCY_SECONDS)
    result: dict[str, Any] = {
        "nodes": nodes,
        "messages": fast.published,
        "size": size,
        "deliveries_per_second": round(fast.rate),
        "latency": {"p50": round(slow.percentile(50), 3), "p99": round(slow.percentile(99), 3)},
        "order_violations": fast.violations + slow.violations,
        "lost": fast.lost + slow.lost,
    }
    if as_json:
        print_json(result)
    else:
        print_bench(output, result)
    context.exit(VIOLATED if result["order_violations"] or result["lost"] else OK)
