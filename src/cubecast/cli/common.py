"""What every command shares: lazy loading, exit codes, JSON, complaints, the options of those that use Spark."""

import json
import logging
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from typing import Any, TypeVar

import click

from cubecast import __version__
from cubecast.errors import CubecastError
from cubecast.escaping import visible, visible_json

OK, VIOLATED, BAD_INPUT, UNKNOWN = 0, 1, 2, 3
"""Exit codes."""
MISTAKE = 70
"""Exit code of a mistake in this program, which is no verdict on anything (`EX_SOFTWARE` of sysexits.h)."""

EXIT_CODES = {"VALID": OK, "VIOLATED": VIOLATED, "UNKNOWN": UNKNOWN}

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
seed_option = click.option("--seed", default=1, show_default=True, help="Every random choice comes from it.")
EXTRAS = {
    "numpy": "lab",
    "pyarrow": "arrow",
    "pyspark": "spark",
    "pandas": "spark",
    "numba": "kernels",
    "matplotlib": "report",
    "jinja2": "report",
}
"""Packages that a plain installation does not bring, and the extra that does."""


@dataclass(frozen=True)
class Command:
    """A command, as the list of commands shows it without loading it."""

    module: str
    """Where it is, by its own name."""
    about: str
    extra: str = ""
    """What has to be installed besides: cubecast[extra]."""


class CubecastGroup(click.Group):
    """Commands named by module, and every error we raise on purpose as one line and exit code 2."""

    def __init__(self, *, sections: Mapping[str, Mapping[str, Command]], **options: Any) -> None:
        super().__init__(context_settings={"help_option_names": ["-h", "--help"]}, **options)
        self._sections = sections
        self._known = {name: command for inside in sections.values() for name, command in inside.items()}
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
        return list(self._known)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._known:
            return None
        command: click.Command = getattr(import_module(self._known[cmd_name].module), cmd_name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in self._known and not args[0].startswith("-"):
            longer = [name for name in self._known if args[0].startswith(name)]  # `publish` for pub
            close = longer or get_close_matches(args[0], [*self._known, "--help"], n=1)
            ctx.fail(f"there is no command {args[0]!r}" + (f"; did you mean {close[0]}?" if close else ""))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """What is known of them without loading them."""
        widest = max(map(len, self._known))
        for section, inside in self._sections.items():
            with formatter.section(section):
                formatter.write_dl([(name.ljust(widest), _listed(command)) for name, command in inside.items()])

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return self._invoke(ctx)
        except (click.exceptions.Exit, click.Abort, click.ClickException, BrokenPipeError):
            raise
        except Exception:
            # Python would end with exit code 1, which is a verdict.
            complain_at_length(traceback.format_exc())
            complain("cubecast: this is a mistake in cubecast and says nothing about its input; please report it")
            ctx.exit(MISTAKE)

    def _invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except CubecastError as error:
            complain(f"cubecast: {error}")
            ctx.exit(BAD_INPUT)
        except click.exceptions.NoArgsIsHelpError:
            raise  # whose message is the whole help
        except click.UsageError as error:
            where = error.ctx.command_path if error.ctx is not None else self.name
            complain(f"cubecast: {error.format_message()} (see {where} --help)")
            ctx.exit(BAD_INPUT)
        except ModuleNotFoundError as error:
            package = (error.name or "").partition(".")[0]
            if package not in EXTRAS:
                raise
            asked = self._known.get(ctx.invoked_subcommand or "")
            extra = asked.extra if asked is not None and asked.extra else EXTRAS[package]
            complain(
                f"cubecast: this needs {package}, which is not installed; nothing was done: "
                f"pip install 'cubecast[{extra}]'"
            )
            ctx.exit(BAD_INPUT)


def _listed(command: Command) -> str:
    return f"{command.about} [{command.extra}]" if command.extra else command.about


def _print_version(ctx: click.Context, _: click.Parameter, asked: bool) -> None:
    if asked:
        from cubecast.net.links.loop import IS_COMPILED  # brings asyncio along, which most commands do without

        click.echo(f"{__version__}, compiled" if IS_COMPILED else __version__)
        ctx.exit()


def say(text: str) -> None:
    """A line that is somebody else's: spelled out on a terminal, as it came into files and pipes."""
    click.echo(visible(text) if sys.stdout.isatty() else text, color=True)


def complain(text: str) -> None:
    """One line on standard error, whatever is in it."""
    click.echo(visible(text), err=True)


def complain_at_length(text: str) -> None:
    """Several lines on standard error."""
    for line in text.splitlines():
        complain(line)


class _Complaints(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        complain(record.getMessage())


def complain_of_warnings() -> None:
    """What happens to a connection while a command uses it, as lines on standard error."""
    of_package = logging.getLogger("cubecast")
    if not of_package.handlers:
        of_package.addHandler(_Complaints(logging.WARNING))
        of_package.propagate = False


def print_json(data: Mapping[str, Any], indent: int | None = 2) -> None:
    click.echo(visible_json(json.dumps(data, indent=indent)))


Decorated = TypeVar("Decorated", bound=Callable[..., Any])


class KeyValue(click.ParamType[tuple[str, str]]):
    """KEY=VALUE → (KEY, VALUE)."""

    name = "KEY=VALUE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        if isinstance(value, tuple):
            return value
        key, equals, rest = str(value).partition("=")
        if not key or not equals:
            self.fail(f"{value!r} is not KEY=VALUE", param, ctx)
        return key, rest


def spark_options(command: Decorated) -> Decorated:
    """Adds `master` and `conf` to a command's parameters."""
    command = click.option("--conf", multiple=True, type=KeyValue(), help="Spark option KEY=VALUE; repeatable.")(
        command
    )
    return click.option("--master", help="Spark master URL; default: all cores of this machine.")(command)
