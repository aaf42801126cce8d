"""What a swarm run did, for people."""

from collections.abc import Mapping
from typing import Any

from rich.table import Table

_COUNTS = ("schedules", "violations", "messages", "deliveries", "lost_and_announced", "reincarnations")


def swarm_table(figures: Mapping[str, Any]) -> Table:
    caption = f"{figures['schedules_per_cpu_second']:,.0f} schedules per CPU second"
    title = f"swarm · {figures['protocol']} · seed {figures['seed']}"
    table = Table(title=title, caption=caption, title_justify="left", caption_justify="left", show_header=False)
    table.add_column("")
    table.add_column("", justify="right")
    for name in _COUNTS:
        table.add_row(name.replace("_", " "), f"{figures[name]:,}")
    if figures["vacuous"]:
        table.add_row("vacuous: never put to the test", " ".join(figures["vacuous"]))
    table.add_section()
    for name, count in figures["faults"].items():
        table.add_row(f"fault: {name}", f"{count:,}")
    table.add_section()
    for name, spread in figures["distribution"].items():
        if spread:
            middle = f"half of them up to {spread['p50']:,}, at most {spread['p100']:,}"
            table.add_row(f"{name.replace('_', ' ')} per schedule", middle)
    table.add_section()
    for name, count in figures["premises"].items():
        table.add_row(f"occasions to break {name}", f"{count:,}")
    for name, count in figures["settings"].items():
        table.add_row(f"schedules: {name}", f"{count:,}")
    return table
