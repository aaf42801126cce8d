"""`cubecast pub` and `cubecast sub`: publish through a running node, print what arrives."""

import asyncio
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from cubecast.api.message import Gap
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
from cubecast.cli.common import complain, json_option, print_json, say
from cubecast.errors import BadInput, HandedOver
from cubecast.headers import Headers
from cubecast.net.links.loop import run
from cubecast.net.port.port import parse
from cubecast.patterns import check_pattern, check_topic, is_pattern

PUB_EXAMPLE = """
\b
Examples:
  cubecast pub greetings hello --node 127.0.0.1:7400
  seq 1000 | cubecast pub numbers --rate 100
  cubecast pub orders --jsonl < orders.jsonl
  cubecast pub pictures --file cat.jpg --header type=image/jpeg
  cubecast pub orders.new '2 apples' --header region=eu --header price:=12.5
"""
STABLE_WITHIN = 30.0
"""Seconds the last messages have to reach everybody."""


@click.command(epilog=PUB_EXAMPLE)
@click.argument("topic")
@click.argument("text", required=False)
@click.option("--count", type=click.IntRange(1), help="How often to publish TEXT, or how many lines at most.")
@click.option(
    "--rate", type=click.FloatRange(0, min_open=True), help="Messages per second; as fast as possible without."
)
@content_options
@client_options
@json_option
def pub(
    topic: str,
    text: str | None,
    count: int | None,
    rate: float | None,
    headers: tuple[str, ...],
    file: Path | None,
    is_base64: bool,
    is_json: bool,
    as_json: bool,
    **where: Any,
) -> None:
    """Publish TEXT to TOPIC, or each line of standard input, and wait until everybody has it, where that is known."""
    check_topic(topic)
    contents = Contents(text, count, file, is_base64, is_json)
    published = run(_publish(topic, contents, parsed_headers(headers), rate, where))
    if as_json:
        print_json({"topic": topic, "published": published})
    else:
        click.echo(f"{published} published", err=True)


async def _publish(
    topic: str, contents: Contents, headers: Headers | None, rate: float | None, where: dict[str, Any]
) -> int:
    refused: list[str] = []
    async with connecting(**where, on_refused=refused.append) as client:
        published, began = 0, asyncio.get_running_loop().time()
        async for content in contents:
            if rate is not None:
                await asyncio.sleep(began + published / rate - asyncio.get_running_loop().time())
            await client.publish(topic, content, headers=headers)
            published += 1
            if refused:
                raise BadInput(refused[0])
        if published:
            try:
                await client.stable(topic, timeout=STABLE_WITHIN)
            except HandedOver as done:
                click.echo(str(done), err=True)
    return published


SUB_EXAMPLE = """
\b
Examples:
  cubecast sub greetings --node 127.0.0.1:7400
  cubecast sub 'orders.>' --count 10 --json
  cubecast sub greetings --since beginning
  cubecast sub greetings --since 2026-01-31T12:00
  cubecast sub 'orders.>' --where "price >= 10 and region in ('eu', 'us')"
"""


@click.command(epilog=SUB_EXAMPLE)
@click.argument("pattern", metavar="TOPIC")
@click.option("--count", type=click.IntRange(1), help="Stop after so many messages.")
@click.option("--json", "is_json", is_flag=True, help="One JSON object per message and line.")
@click.option("--since", metavar="PLACE", help="Begin in the node's log: beginning, now, an offset, a date and time.")
@where_option
@client_options
def sub(
    pattern: str, count: int | None, is_json: bool, since: str | None, filter_text: str | None, **where: Any
) -> None:
    """Print the messages of TOPIC, one a line, until stopped. In TOPIC * stands for one word, a final > for the rest.

    What will not come although it was published is announced on standard error, before what follows it.
    """
    check_pattern(pattern)
    check_filter(filter_text)
    choice = {"since": None if since is None else parse(since), "where": filter_text}
    run(_print(pattern, choice, count, is_json, where))


async def _print(pattern: str, choice: dict[str, Any], count: int | None, is_json: bool, where: dict[str, Any]) -> None:
    async with connecting(**where) as client, client.subscribe(pattern, **choice) as subscription:
        for name in (signal.SIGINT, signal.SIGTERM):
            with suppress(NotImplementedError):  # Windows: Ctrl-C ends it less politely
                asyncio.get_running_loop().add_signal_handler(name, subscription.close)
        complain(f"subscribed to {pattern}")
        left = count
        async for event in subscription:
            if isinstance(event, Gap):
                complain(f"gap: {event.reason}: {_missing(event)}")
                continue
            if is_json:
                print_json(as_json(event), indent=None)
            else:
                say(as_text(event, show_topic=is_pattern(pattern)))
            left = None if left is None else left - 1
            if left == 0:
                return


def _missing(gap: Gap) -> str:
    known = [f"{one.topic} {one.source}.{one.incarnation}.{one.first}–{one.last}" for one in gap.missing]
    return ", ".join(known) or "how many is not known"
