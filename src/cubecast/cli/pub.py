"""`cubecast pub`: publish through a running node."""

import asyncio
import sys
from collections.abc import AsyncIterator
from typing import Any

import click

from cubecast.cli.client_options import client_options, connecting
from cubecast.cli.common import json_option, print_json
from cubecast.errors import BadInput
from cubecast.net.loop import run
from cubecast.net.patterns import check_topic

EXAMPLE = """
\b
Examples:
  cubecast pub greetings hello --node 127.0.0.1:7400
  seq 1000 | cubecast pub numbers --rate 100
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
@client_options
@json_option
def pub(topic: str, text: str | None, count: int | None, rate: float | None, as_json: bool, **where: Any) -> None:
    """Publish TEXT to TOPIC, or each line of standard input, and wait until everybody has it."""
    check_topic(topic)
    published = run(_publish(topic, _texts(text, count), rate, where))
    if as_json:
        print_json({"topic": topic, "published": published})
    else:
        click.echo(f"{published} published", err=True)


async def _publish(topic: str, texts: AsyncIterator[str], rate: float | None, where: dict[str, Any]) -> int:
    refused: list[str] = []
    async with connecting(**where, on_refused=refused.append) as client:
        published, began = 0, asyncio.get_running_loop().time()
        async for text in texts:
            if rate is not None:
                await asyncio.sleep(began + published / rate - asyncio.get_running_loop().time())
            await client.publish(topic, text)
            published += 1
            if refused:
                raise BadInput(refused[0])
        if published:
            await client.stable(topic, timeout=STABLE_WITHIN)
    return published


async def _texts(text: str | None, count: int | None) -> AsyncIterator[str]:
    if text is not None:
        for _ in range(count or 1):
            yield text
        return
    given = 0
    while given != count and (line := await asyncio.to_thread(sys.stdin.buffer.readline)):
        try:
            yield line.decode().rstrip("\r\n")
        except UnicodeDecodeError:
            raise BadInput(f"line {given + 1} of the input is not UTF-8 text; {given} lines were published") from None
        given += 1
