"""`cubecast request` and `cubecast serve`: questions, and a program that answers them."""

import asyncio
import shutil
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from cubecast.api.message import Message
from cubecast.cli.client_options import (
    Contents,
    as_json,
    as_text,
    check_filter,
    client_options,
    connecting,
    content_options,
    parsed_headers,
    where_option,
)
from cubecast.cli.common import complain, print_json, say
from cubecast.errors import BadInput, CubecastError
from cubecast.headers import Headers
from cubecast.net.links.loop import run
from cubecast.patterns import check_pattern, check_topic

REQUEST_EXAMPLE = """
\b
Examples:
  cubecast serve upper -- tr a-z A-Z
  cubecast serve 'load.*' --concurrency 4 -- uptime
"""
MOST_COMPLAINT = 500
"""Characters of what a command wrote on standard error that the client is told."""


@click.command(epilog=REQUEST_EXAMPLE)
@click.argument("pattern", metavar="TOPIC")
@click.argument("command", nargs=-1, required=True, metavar="-- COMMAND...")
@click.option("--concurrency", type=click.IntRange(1), default=1, show_default=True, help="Requests at a time.")
@click.option(
    "--within", type=click.FloatRange(0, min_open=True), default=30.0, show_default=True, help="Seconds for each."
)
@where_option
@client_options
def serve(
    pattern: str,
    command: tuple[str, ...],
    concurrency: int,
    within: float,
    filter_text: str | None,
    **where: Any,
) -> None:
    """Answer every request on TOPIC with what COMMAND prints, until stopped.

    COMMAND is run once per request, without a shell, and reads the request on standard input. When it fails, whoever
    asked gets an error with what it wrote on standard error. Every server of a topic answers; the first answer counts.
    """
    check_pattern(pattern)
    check_filter(filter_text)
    if shutil.which(command[0]) is None:
        raise BadInput(f"there is no program {command[0]!r} to answer with")
    choice = {"concurrency": concurrency, "where": filter_text}
    run(_serve(pattern, command, choice, within, where))


async def _serve(
    pattern: str, command: tuple[str, ...], choice: dict[str, Any], within: float, where: dict[str, Any]
) -> None:
    stopped = asyncio.Event()
    for name in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError):  # Windows: Ctrl-C ends it less politely
            asyncio.get_running_loop().add_signal_handler(name, stopped.set)

    threads = ThreadPoolExecutor(choice["concurrency"])

    async def answer(message: Message) -> str | bytes:
        return await asyncio.get_running_loop().run_in_executor(threads, _output, command, message.body(), within)

    async with connecting(**where) as client:
        service = client.serve(pattern, answer, **choice)
        await service.ready()
        complain(f"serving {pattern}")
        stopping, ended = asyncio.ensure_future(stopped.wait()), asyncio.ensure_future(service.ended())
        await asyncio.wait({stopping, ended}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if ended.done():
            ended.result()
        ended.cancel()


def _output(command: tuple[str, ...], request: bytes, within: float) -> str | bytes:
    """What it printed, as text where it is, without the line's end; CubecastError for the client."""
    try:
        ended = subprocess.run(command, input=request, capture_output=True, timeout=within, check=False)
    except subprocess.TimeoutExpired:
        raise CubecastError(f"{command[0]} did not answer in {within} s") from None
    except OSError as error:
        raise CubecastError(f"cannot run {command[0]}: {error.strerror}") from None
    if ended.returncode:
        said = ended.stderr.decode(errors="replace").strip()[:MOST_COMPLAINT]
        raise CubecastError(f"{command[0]} ended with {ended.returncode}" + (f": {said}" if said else ""))
    try:
        return ended.stdout.decode().removesuffix("\n")
    except UnicodeDecodeError:
        return ended.stdout


SERVE_EXAMPLE = """
\b
Examples, with `cubecast serve upper -- tr a-z A-Z` beside it:
  cubecast request upper hello
  cubecast request upper < lines.txt
"""


@click.command(epilog=SERVE_EXAMPLE)
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
