"""`cubecast sub`: print what arrives."""

import asyncio
import base64
import signal
from contextlib import suppress
from typing import Any

import click

from cubecast.api.message import Gap, Message
from cubecast.cli.client_options import client_options, connecting
from cubecast.cli.common import complain, print_json, say
from cubecast.errors import RemoteProtocolError
from cubecast.net.log.since import Since, parse
from cubecast.net.loop import run
from cubecast.net.patterns import check_pattern, is_pattern

EXAMPLE = """
\b
Examples:
  cubecast sub greetings --node 127.0.0.1:7400
  cubecast sub 'orders.>' --count 10 --json
  cubecast sub greetings --since beginning
  cubecast sub greetings --since 2026-01-31T12:00
"""


@click.command(epilog=EXAMPLE)
@click.argument("pattern", metavar="TOPIC")
@click.option("--count", type=click.IntRange(1), help="Stop after so many messages.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per message and line.")
@click.option("--since", metavar="PLACE", help="Begin in the node's log: beginning, now, an offset, a date and time.")
@client_options
def sub(pattern: str, count: int | None, as_json: bool, since: str | None, **where: Any) -> None:
    """Print the messages of TOPIC, one a line, until stopped. In TOPIC * stands for one word, a final > for the rest.

    What will not come although it was published is announced on standard error, before what follows it.
    """
    check_pattern(pattern)
    place = None if since is None else parse(since)
    run(_print(pattern, place, count, as_json, where))


async def _print(pattern: str, since: Since | None, count: int | None, as_json: bool, where: dict[str, Any]) -> None:
    async with connecting(**where) as client, client.subscribe(pattern, since=since) as subscription:
        for name in (signal.SIGINT, signal.SIGTERM):
            with suppress(NotImplementedError):  # Windows: Ctrl-C ends it less politely
                asyncio.get_running_loop().add_signal_handler(name, subscription.close)
        complain(f"subscribed to {pattern}")
        left = count
        async for event in subscription:
            if isinstance(event, Gap):
                complain(f"gap: {event.reason}: {_missing(event)}")
                continue
            if as_json:
                print_json(_as_json(event), indent=None)
            else:
                say(_as_text(event, is_pattern(pattern)))
            left = None if left is None else left - 1
            if left == 0:
                return


def _as_text(message: Message, show_topic: bool) -> str:
    try:
        text = message.body().decode(errors="replace")
    except RemoteProtocolError as error:
        text = f"({error})"  # somebody sent what no client of ours sends: that is no reason to stop listening
    return f"{message.topic} {text}" if show_topic else text


def _as_json(message: Message) -> dict[str, Any]:
    about = {"topic": message.topic, "source": message.source, "incarnation": message.incarnation}
    logged = {} if message.offset is None else {"offset": message.offset, "time": message.time}
    try:
        content = _content(message)
    except RemoteProtocolError as error:
        content = {"garbled": str(error), "base64": base64.b64encode(message.sealed).decode()}
    return {**about, "counter": message.counter, **logged, **content}


def _content(message: Message) -> dict[str, Any]:
    data = message.data
    content = {"base64": base64.b64encode(data).decode()} if isinstance(data, bytes) else {"data": data}
    named = {"principal": message.principal, "headers": message.headers}
    return content | {name: value for name, value in named.items() if value}


def _missing(gap: Gap) -> str:
    known = [f"{one.topic} {one.source}.{one.incarnation}.{one.first}–{one.last}" for one in gap.missing]
    return ", ".join(known) or "how many is not known"
