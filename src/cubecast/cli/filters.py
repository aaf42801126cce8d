"""The filter of `sub` and `serve`."""

import click

from cubecast.errors import BadInput
from cubecast.protocol.filters import parse

where_option = click.option(
    "--where",
    "filter_text",
    metavar="FILTER",
    help="Only messages whose headers match, such as \"price >= 10 and region in ('eu', 'us')\".",
)


def check_filter(text: str | None) -> None:
    """Before any node is asked."""
    if text is not None:
        try:
            parse(text)
        except BadInput as error:
            raise BadInput(f"--where: {error}") from None
