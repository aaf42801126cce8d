"""`cubecast pub`: publish through a running node."""

import asyncio
from pathlib import Path
from typing import Any

import click

from cubecast.cli.client_options import client_options, connecting
from cubecast.cli.common import json_option, print_json
from cubecast.cli.contents import Contents, content_options, parsed_headers
from cubecast.errors import BadInput, HandedOver
from cubecast.headers import Headers
from cubecast.net.links.loop import run
from cubecast.patterns import check_topic

EXAMPLE = """
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


@click.command(epilog=EXAMPLE)
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
