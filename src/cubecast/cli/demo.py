"""`cubecast demo`: the main job end to end on this machine."""

from pathlib import Path

import click

from cubecast.cli.common import OK, VIOLATED, errors, json_option, output, print_json, progress, seed_option
from cubecast.experiments.demo import DAMAGED, run_demo
from cubecast.report.demo_tables import demo_tables

EXAMPLE = """
\b
Example:
  cubecast demo --out out/demo
"""


@click.command(epilog=EXAMPLE)
@click.option(
    "--out", default="out/demo", show_default=True, type=click.Path(path_type=Path), help="Where everything goes."
)
@click.option("--master", help="Spark master URL; default: all cores of this machine.")
@seed_option
@json_option
@click.pass_context
def demo(context: click.Context, out: Path, master: str | None, seed: int, as_json: bool) -> None:
    """A simulated conversation on two systems: traces, two judges, metrics, and a damaged trace that must be caught."""
    with progress("demonstration") as bar:
        say = (lambda text: bar.update(bar.task_ids[0], description=text)) if errors.is_terminal else errors.print
        result = run_demo(out, seed, master, say)
    found = [(one["verdict"], result["verified"][name]) for name, one in result["checked"].items()]
    expected = [("VIOLATED",) * 2 if name == DAMAGED else ("VALID",) * 2 for name in result["checked"]]
    if as_json:
        print_json(result)
    else:
        for table in demo_tables(result):
            output.print(table)
        output.print(f"the report with plots is {result['report']}")
        output.print(f"traces are in {out / 'traces'}; look closer with: cubecast check {out / 'traces' / 'vcube-ps'}")
    context.exit(OK if found == expected else VIOLATED)
