"""`cubecast protocols`: what can be simulated and run live, what each promises, what can be chosen about it."""

from typing import Any

import click

from cubecast.cli.common import json_option, print_json
from cubecast.cli.screen import output
from cubecast.protocol.families import FAMILIES, find
from cubecast.protocol.family import Family
from cubecast.report.tables import parameters_table, protocols_table

EXAMPLE = """
\b
Example:
  cubecast protocols
  cubecast protocols cubecast
"""


@click.command(epilog=EXAMPLE)
@click.argument("name", required=False)
@json_option
def protocols(name: str | None, as_json: bool) -> None:
    """List the protocols with what they promise, or show all about the one of this NAME."""
    if name is None:
        families = [find(one) for one in FAMILIES]
        if as_json:
            print_json({"protocols": [_to_json(one) for one in families]})
        else:
            output.print(protocols_table(families))
        return
    family = find(name)
    if as_json:
        print_json(_to_json(family))
        return
    output.print(f"{family.name}: {family.summary}")
    for title, text in _lines(family):
        output.print(f"{title}: {text}")
    if family.settings:
        output.print(parameters_table(family))


def _lines(family: Family) -> list[tuple[str, str]]:
    said = _to_json(family)
    named = [
        ("promises", "promises"),
        ("promises besides while no process joins or leaves", "static_promises"),
        ("measured", "measured"),
        ("requests", "requests"),
        ("packets", "packets"),
    ]
    lines = [(title, ", ".join(said[key])) for title, key in named if said[key]]
    size = family.population
    kind = ", a power of two" if size.power_of_two else ""
    lines.append(("nodes", f"{size.least} to {size.most}{kind}"))
    if size.roles:
        lines.append(("roles", ", ".join(size.roles)))
    lines.append(("comes to rest", "yes" if _rests(family) else "no: a simulation needs --until"))
    return [*lines, ("described in", family.described)]


def _rests(family: Family) -> bool:
    return family.rests(family.chosen({}))


def _to_json(family: Family) -> dict[str, Any]:
    return {
        "name": family.name,
        "summary": family.summary,
        "promises": list(family.promises),
        "static_promises": list(family.static_promises),
        "measured": list(family.measured),
        "requests": sorted(one.__name__.lower() for one in family.requests),
        "packets": [one.__name__ for one in family.packets if one is not None],
        "least_nodes": family.population.least,
        "most_nodes": family.population.most,
        "power_of_two": family.population.power_of_two,
        "roles": list(family.population.roles),
        "rests": _rests(family),
        "described": family.described,
        "parameters": [
            {
                "name": one.name,
                "default": getattr(one.default, "value", one.default),
                "live": getattr(one.live, "value", one.live),
                "takes": one.allowed,
                "unit": one.unit,
                "text": one.text,
            }
            for one in family.settings.values()
        ],
    }
