"""`cubecast stream`: publish to, or print, a stream that many receive, as a member of its overlay."""

import asyncio
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from cubecast.api.message import Gap, Message
from cubecast.api.node import Node
from cubecast.cli.client_options import Contents, as_json, as_text, content_options, parsed_headers
from cubecast.cli.common import complain, json_option, print_json, say
from cubecast.cli.node import node_options, sources
from cubecast.errors import BadInput, Closed
from cubecast.headers import Headers
from cubecast.net.links.loop import run
from cubecast.net.settings.config import NodeConfig
from cubecast.net.settings.resolve import resolve
from cubecast.patterns import check_topic
from cubecast.protocol.families import STREAM_PROTOCOL

EXAMPLE = """
\b
Examples, one publisher and any number of receivers:
  seq 1000000 | cubecast stream pub numbers --listen 127.0.0.1:7500 --wait-for 1
  cubecast stream sub numbers --join 127.0.0.1:7500
  cubecast stream sub numbers --join 127.0.0.1:7500 --json
"""
LOOK_EVERY = 0.05


@click.group(epilog=EXAMPLE)
def stream() -> None:
    """One publisher, many receivers, on a tree that grows and heals by itself.

    Both commands run a member of the overlay: it receives from one other and relays to a few. Receivers begin where the
    stream is when they come. Kept is each publisher's order; docs/streams.md says when to use what.
    """


def _member_options(command: Callable[..., Any]) -> Callable[..., Any]:
    help_ = f"Of the protocol, as `cubecast protocols {STREAM_PROTOCOL}` shows them: --parameter parents=2."
    return click.option("--parameter", "parameters", metavar="NAME=VALUE", multiple=True, help=help_)(
        node_options(command)
    )


@stream.command()
@click.argument("topic")
@click.argument("text", required=False)
@click.option("--count", type=click.IntRange(1), help="How often to publish TEXT, or how many lines at most.")
@click.option("--rate", type=click.FloatRange(0, min_open=True), help="Messages per second; without, as fast as read.")
@click.option("--wait-for", type=click.IntRange(0), default=0, metavar="N", help="Begin when N others are linked here.")
@click.option("--stay", is_flag=True, help="Go on relaying when everything is published, until stopped.")
@content_options
@_member_options
@json_option
def pub(
    topic: str,
    text: str | None,
    count: int | None,
    rate: float | None,
    wait_for: int,
    stay: bool,
    headers: tuple[str, ...],
    file: Path | None,
    is_base64: bool,
    is_json: bool,
    as_json: bool,
    config: Path | None,
    **options: Any,
) -> None:
    """Publish TEXT, or each line of standard input, to everybody who receives TOPIC."""
    check_topic(topic)
    contents = Contents(text, count, file, is_base64, is_json)
    node_config = _config(config, options)
    published = run(_publish(node_config, topic, contents, parsed_headers(headers), rate, wait_for, stay))
    if as_json:
        print_json({"topic": topic, "published": published})
    else:
        click.echo(f"{published} published", err=True)


@stream.command()
@click.argument("topic")
@click.option("--count", type=click.IntRange(1), help="Stop after so many messages.")
@click.option("--json", "is_json", is_flag=True, help="One JSON object per message and line.")
@click.option(
    "--within", type=click.FloatRange(0, min_open=True), metavar="SECONDS", help="Fail if nothing comes so long."
)
@_member_options
def sub(
    topic: str, count: int | None, is_json: bool, within: float | None, config: Path | None, **options: Any
) -> None:
    """Print the messages of TOPIC, one a line, until stopped, and relay them to others.

    What cannot be had any more is announced on standard error, before what follows it.
    """
    check_topic(topic)
    if not options.get("join"):
        raise BadInput("a receiver joins somebody: --join HOST:PORT of the publisher or of any other member")
    run(_print(_config(config, options), topic, count, is_json, within))


def _config(file: Path | None, options: dict[str, Any]) -> NodeConfig:
    if options.get("protocol") not in (None, STREAM_PROTOCOL):
        raise BadInput(
            f"streams run {STREAM_PROTOCOL}, not {options['protocol']}; for others use `cubecast node` and `pub`"
        )
    parameters = dict(_parameter(one) for one in options.pop("parameters"))
    chosen = options | {"protocol": STREAM_PROTOCOL}
    config = resolve(NodeConfig, sources(file, chosen)).config
    return replace(config, parameters=config.parameters | parameters)


def _parameter(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise BadInput(f"--parameter {text}: write NAME=VALUE, for example --parameter parents=2")
    return name, value


@asynccontextmanager
async def _member(config: NodeConfig) -> AsyncIterator[Node]:
    async with Node.of(config) as node:
        complain(f"node {node.id} of overlay {config.cluster!r} listens on {node.address}")
        yield node


async def _publish(
    config: NodeConfig,
    topic: str,
    contents: Contents,
    headers: Headers | None,
    rate: float | None,
    wait_for: int,
    stay: bool,
) -> int:
    loop, stopped = asyncio.get_running_loop(), asyncio.Event()
    async with _member(config) as node:
        _on_signals(stopped.set)
        while len(node.neighbours) < wait_for and not stopped.is_set():
            await asyncio.sleep(LOOK_EVERY)
        published, began = 0, loop.time()
        async for content in contents:
            if rate is not None:
                await asyncio.sleep(began + published / rate - loop.time())
            if stopped.is_set():
                break
            await node.publish(topic, content, headers=headers)
            published += 1
        if stay:
            await stopped.wait()
    return published


async def _print(config: NodeConfig, topic: str, count: int | None, is_json: bool, within: float | None) -> None:
    async with _member(config) as node, node.subscribe(topic) as subscription:
        _on_signals(subscription.close)
        left = count
        while True:
            try:
                event = await subscription.next(within)
            except TimeoutError:
                raise BadInput(_nothing_came(node, topic, within)) from None
            except Closed:
                return
            _show(event, is_json)
            if isinstance(event, Message) and left is not None:
                left -= 1
                if left == 0:
                    return


def _show(event: Message | Gap, is_json: bool) -> None:
    if isinstance(event, Gap):
        complain(f"gap: {event.reason}: {event.count} messages")
    elif is_json:
        print_json(as_json(event), indent=None)
    else:
        say(as_text(event))


def _nothing_came(node: Node, topic: str, within: float | None) -> str:
    others = [name for name in node.topics_here if name != topic]
    flowing = f"what flows here is {', '.join(sorted(others)[:10])}" if others else "nothing flows here"
    return f"no message of {topic!r} came within {within:g} s; {flowing}"


def _on_signals(stop: Callable[[], None]) -> None:
    for name in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError):  # Windows: Ctrl-C ends it less politely
            asyncio.get_running_loop().add_signal_handler(name, stop)
