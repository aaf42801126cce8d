"""What every command shares: lazy loading, exit codes, JSON or tables, progress."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import click
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from cubecast import __version__
from cubecast.errors import CubecastError

OK, VIOLATED, BAD_INPUT, UNKNOWN = 0, 1, 2, 3
"""Exit codes."""

EXIT_CODES = {"VALID": OK, "VIOLATED": VIOLATED, "UNKNOWN": UNKNOWN}

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
seed_option = click.option("--seed", default=1, show_default=True, help="Every random choice comes from it.")

output = Console(highlight=False)
errors = Console(stderr=True, highlight=False)


class CubecastGroup(click.Group):
    """Commands named by module, and every error we raise on purpose as one line and exit code 2."""

    def __init__(self, *, commands_at: Mapping[str, str], **options: Any) -> None:
        super().__init__(context_settings={"help_option_names": ["-h", "--help"]}, **options)
        self._commands_at = commands_at
        self.params.append(
            click.Option(
                ["--version"],
                is_flag=True,
                is_eager=True,
                expose_value=False,
                callback=_print_version,
                help="Print the version and stop.",
            )
        )

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._commands_at)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._commands_at:
            return None
        module, _, name = self._commands_at[cmd_name].partition(":")
        command: click.Command = getattr(import_module(module), name)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except CubecastError as error:
            click.echo(f"cubecast: {error}", err=True)
            ctx.exit(BAD_INPUT)
        except click.UsageError as error:
            where = error.ctx.command_path if error.ctx is not None else self.name
            click.echo(f"cubecast: {error.format_message()} (see {where} --help)", err=True)
            ctx.exit(BAD_INPUT)


def _print_version(ctx: click.Context, _: click.Parameter, asked: bool) -> None:
    if asked:
        from cubecast.net.compiled import IS_COMPILED  # brings asyncio along, which most commands do without

        click.echo(f"{__version__}, compiled" if IS_COMPILED else __version__)
        ctx.exit()


def print_json(data: Mapping[str, Any]) -> None:
    click.echo(json.dumps(data, indent=2))


@contextmanager
def progress(text: str) -> Iterator[Progress]:
    """A spinner with the time spent on standard error; nothing when that is not a terminal."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal) as bar:
        bar.add_task(text, total=None)
        yield bar
