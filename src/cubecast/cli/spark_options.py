"""`--master` and `--conf`, the same on every command that uses Spark."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])


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


def spark_options(command: Command) -> Command:
    """Adds `master` and `conf` to a command's parameters."""
    command = click.option("--conf", multiple=True, type=KeyValue(), help="Spark option KEY=VALUE; repeatable.")(
        command
    )
    return click.option("--master", help="Spark master URL; default: all cores of this machine.")(command)
