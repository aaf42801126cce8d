"""The live benchmark's figures for people."""

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table


def print_bench(console: Console, result: Mapping[str, Any]) -> None:
    table = Table(title=f"{result['nodes']} nodes, messages of {result['size']} bytes, every delivery checked")
    table.add_column("figure")
    table.add_column("value", justify="right")
    table.add_row("messages published", f"{result['messages']:,}")
    table.add_row("deliveries per second", f"{result['deliveries_per_second']:,}")
    table.add_row("latency at 100 messages/s each, p50", f"{result['latency']['p50']:.3f} ms")
    table.add_row("latency at 100 messages/s each, p99", f"{result['latency']['p99']:.3f} ms")
    table.add_row("out of order", f"{result['order_violations']:,}")
    table.add_row("lost", f"{result['lost']:,}")
    console.print(table)
