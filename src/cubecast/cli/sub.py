"""`cubecast sub`: print what arrives."""

import asyncio
import signal
from contextlib import suppress
from typing import Any

import click

from cubecast.api.message import Gap
from cubecast.cli.client_options import check_filter, client_options, connecting, where_option
from cubecast.cli.common import complain, print_json, say
from cubecast.cli.contents import as_json, as_text
from cubecast.net.links.loop import run
from cubecast.net.port.since import parse
from cubecast.patterns import check_pattern, is_pattern

EXAMPLE = """
\b
Examples:
  cubecast sub greetings --node 127.0.0.1:7400
  cubecast sub 'orders.>' --count 10 --json
  cubecast sub greetings --since beginning
  cubecast sub greetings --since 2026-01-31T12:00
  cubecast sub 'orders.>' --where "price >= 10 and region in ('eu', 'us')"
"""


@click.command(epilog=EXAMPLE)
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
