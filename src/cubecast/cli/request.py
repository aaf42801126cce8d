"""`cubecast request`: ask those who serve a topic."""

from pathlib import Path
from typing import Any

import click

from cubecast.cli.client_options import client_options, connecting
from cubecast.cli.common import print_json, say
from cubecast.cli.contents import Contents, content_options, parsed_headers
from cubecast.cli.messages import as_json, as_text
from cubecast.errors import CubecastError
from cubecast.headers import Headers
from cubecast.net.links.loop import run
from cubecast.patterns import check_topic

EXAMPLE = """
\b
Examples, with `cubecast serve upper -- tr a-z A-Z` beside it:
  cubecast request upper hello
  cubecast request upper < lines.txt
"""


@click.command(epilog=EXAMPLE)
@click.argument("topic")
@click.argument("text", required=False)
@content_options
@click.option(
    "--within", type=click.FloatRange(0, min_open=True), default=5.0, show_default=True, help="Seconds for an answer."
)
@client_options
@click.option("--json", "wants_json", is_flag=True, help="One JSON object per answer and line.")
def request(
    topic: str,
    text: str | None,
    headers: tuple[str, ...],
    file: Path | None,
    is_base64: bool,
    is_json: bool,
    within: float,
    wants_json: bool,
    **where: Any,
) -> None:
    """Ask TEXT on TOPIC, or each line of standard input one after the other, and print the first answer to each.

    Exit code 2 when nobody serves the topic, nobody answers in time, or the server could not.
    """
    check_topic(topic)
    contents = Contents(text, None, file, is_base64, is_json)
    run(_ask(topic, contents, parsed_headers(headers), within, wants_json, where))


async def _ask(
    topic: str,
    contents: Contents,
    headers: Headers | None,
    within: float,
    wants_json: bool,
    where: dict[str, Any],
) -> None:
    async with connecting(**where) as client:
        async for content in contents:
            try:
                answer = await client.request(topic, content, headers=headers, timeout=within)
            except TimeoutError as error:
                raise CubecastError(str(error)) from None
            if wants_json:
                print_json(as_json(answer), indent=None)
            else:
                say(as_text(answer))
