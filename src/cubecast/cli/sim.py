"""`cubecast sim` and `cubecast protocols`: one simulation, its figures, and its trace on request; what can be simulated
and run live, what each promises, what can be chosen about it.
"""

from pathlib import Path
from typing import Any

import click

from cubecast.cli.common import json_option, print_json, seed_option
from cubecast.cli.screen import output, stages
from cubecast.protocol.families import FAMILIES, find
from cubecast.protocol.family import Family
from cubecast.report.tables import parameters_table, protocols_table

SIM_EXAMPLE = """
\b
Example:
  cubecast sim cubecast --nodes 256 --publishers 100% --propagation constant:100 --trace out/run1
  cubecast check out/run1
"""


def _settings(_: click.Context, __: click.Parameter, pairs: tuple[str, ...]) -> dict[str, str]:
    wrong = [pair for pair in pairs if "=" not in pair]
    if wrong:
        raise click.BadParameter(f"{wrong[0]!r} is not name=value")
    return dict(pair.split("=", 1) for pair in pairs)


@click.command(epilog=SIM_EXAMPLE)
@click.argument("protocol")
@click.option(
    "--nodes", default=64, show_default=True, help="How many nodes; a hypercube has a power of two, up to 8192."
)
@click.option(
    "--publishers", default="25%", show_default=True, help="How many subscribers publish: a count or a share."
)
@click.option("--subscribers", default="100%", show_default=True, help="How many nodes subscribe: a count or a share.")
@click.option("--messages", default=1, show_default=True, help="Publications per publisher.")
@click.option("--window", default=1000.0, show_default=True, help="Publications fall into [0, window] u.t.")
@click.option(
    "--workload",
    default="uniform",
    show_default=True,
    help="uniform, poisson:MEAN, periodic:PERIOD, respond:FIRST:WAIT, respond-poisson:FIRST:MEAN.",
)
@click.option("--topics", default=1, show_default=True, help="Number of topics.")
@click.option("--zipf", default=0.0, show_default=True, help="Zipf exponent of publications over topics; 0 is uniform.")
@click.option("--tags", default=1, show_default=True, help="Topics of each message, where the protocol can.")
@click.option("--payload-bytes", default=50, show_default=True, help="Size of a payload.")
@click.option(
    "--propagation",
    default="constant:100",
    show_default=True,
    help="constant:100, normal:100:25, uniform:10:20, quantiles:…, matrix:FILE, planetlab.",
)
@click.option("--processing", default=1.0, show_default=True, help="Processing time per packet, u.t.")
@click.option("--transmission", default=1.0, show_default=True, help="Transmission time per packet, u.t.")
@click.option("--reception", default=0.0, show_default=True, help="Time per packet received, one at a time, u.t.")
@click.option("--fifo-links", is_flag=True, help="A link delivers in the order of sending, as TCP does.")
@click.option(
    "--queued-control/--free-control", default=True, help="Whether acknowledgements wait in the output queue."
)
@click.option("--churn-session", type=float, help="Subscribers come and go with this mean session time, u.t.")
@click.option("--faults", default="", help="For example crash:3@500,partition:0+1|2+3@200-600,loss:5%@0-1000.")
@click.option("--detection-delay", type=float, help="Report crashes to all nodes within this time, u.t.")
@click.option("--until", type=float, help="End here, u.t.; for protocols that do not come to rest by themselves.")
@click.option("--roles", default="", help="For example broker=16,publisher=4; the rest play the protocol's last role.")
@click.option("--publishers-from", default="subscribers", show_default=True, help="subscribers, all, or a role.")
@click.option("--subscriptions", default="", help="Who subscribes to what: a table of `cubecast workload`.")
@click.option("--churn-nodes", default="", help="Nodes leave and return: 5%/1000 is five in a hundred per 1000 u.t.")
@click.option("--join-window", type=float, help="Nodes come one after another within this time, u.t.")
@click.option("--contacts", default=1, show_default=True, help="Nodes a newcomer knows, where it is told of no others.")
@click.option("--coded", is_flag=True, help="Pass every packet through the wire codec.")
@click.option("--set", "settings", multiple=True, callback=_settings, help="A protocol parameter, name=value.")
@click.option("--trace", type=click.Path(path_type=Path), help="Write the trace to this new directory.")
@click.option("--no-packets", is_flag=True, help="Leave sends and receptions out of the trace.")
@seed_option
@json_option
def sim(protocol: str, trace: Path | None, no_packets: bool, as_json: bool, **options: Any) -> None:
    """Simulate PROTOCOL (`cubecast protocols` lists them) once, deterministically."""
    from cubecast.report.tables import figures_table
    from cubecast.sim.config import SimConfig
    from cubecast.sim.run import simulate, simulate_to_directory

    config = SimConfig(protocol, **options)
    with stages(f"simulating {protocol} on {config.nodes} nodes"):
        figures = simulate(config) if trace is None else simulate_to_directory(config, trace, packets=not no_packets)
    if not figures["rested"]:
        click.echo(
            f"something was still under way at {config.until:,.0f} u.t.: with a later --until "
            "judges can say more than UNKNOWN",
            err=True,
        )
    if as_json:
        print_json(figures)
    else:
        output.print(figures_table(figures))


PROTOCOLS_EXAMPLE = """
\b
Example:
  cubecast protocols
  cubecast protocols cubecast
"""


@click.command(epilog=PROTOCOLS_EXAMPLE)
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
    lines.append(("runs live", "yes" if family.live else "no: in the simulator only"))
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
        "live": family.live,
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
