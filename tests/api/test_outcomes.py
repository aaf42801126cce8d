"""Whether it happened is true in every error that publishers get: each row of the table in docs/guarantees.md, for each
kind of client, before, during and after a move to another node."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from itertools import count
from typing import Any

import pytest

from cubecast.addresses import Address
from cubecast.api.connect import connect
from cubecast.api.envelope import text
from cubecast.api.node import Node
from cubecast.errors import (
    BadInput,
    Closed,
    CubecastError,
    NoRoom,
    NotDurable,
    OutcomeUnknown,
    PartlyPublished,
)
from support.cluster import FAST
from support.raw import raw_client, web_client
from support.running import run, until

KINDS = {"thin client": lambda node: connect(node.address), "raw client": raw_client, "WebSocket": web_client}
EVERYBODY = [*KINDS, "node"]
WEB = {"http": Address("127.0.0.1", 0)}


class Witness:
    """Reads everything at a node, and the logs of nodes: what happened, whatever publishers were told."""

    def __init__(self, *keepers: Node) -> None:
        self._keepers = keepers
        self.delivered: list[str] = []

    def on_batch(self, batch: Any) -> None:
        self.delivered += [message.text() for message in batch]

    async def on_disk(self, topic: str) -> list[str]:
        found: list[str] = []
        for keeper in self._keepers:
            store = keeper._live.port.recorder.store
            await store.synced(store.ticket)
            if topic in store.topics():
                records = await store.read(topic, 1, 1 << 20)
                found += [text(payload) for record in records for payload in record.payloads]
        return found

    async def judge(self, topic: str, outcomes: dict[str, BaseException | None]) -> None:
        """Of publications that were waited for until they were durable."""
        on_disk = await self.on_disk(topic)
        for message, error in outcomes.items():
            match error:
                case None:
                    assert message in on_disk, f"{message} was called durable and is on no disk"
                case NotDurable() if "published, and not durable" in str(error):
                    await until(lambda message=message: message in self.delivered)
                case BadInput() | Closed() | NoRoom() | NotDurable() | TimeoutError():
                    assert message not in self.delivered, f"{message} was published: {error!r}"
                    assert "othing was published" in str(error), error
                case OutcomeUnknown():
                    assert "may have been published" in str(error) or "accepted" in str(error), error
                case _:
                    raise AssertionError(f"{message}: {error!r} says nothing")


@asynccontextmanager
async def surroundings(tmp_path, **options: Any) -> AsyncIterator[tuple[Node, Node, Node, Witness]]:
    """A node that logs everything, one that logs other topics, one without a log, which hears everything."""
    async with AsyncExitStack() as stack:
        plain = await stack.enter_async_context(Node(**FAST | WEB | options))
        join = [plain.address]
        keeper = await stack.enter_async_context(
            Node(join=join, data=tmp_path / "a", log=(">",), **FAST | WEB | options)
        )
        other = await stack.enter_async_context(
            Node(join=join, data=tmp_path / "b", log=("other.>",), **FAST | WEB | options)
        )
        witness = Witness(keeper, other)
        await plain.subscribe(">", on_batch=witness.on_batch).ready()
        yield keeper, other, plain, witness


@asynccontextmanager
async def client_of(kind: str, node: Node) -> AsyncIterator[Any]:
    if kind == "node":
        yield node
    else:
        async with KINDS[kind](node) as client:
            yield client


async def outcome(publishing: Any) -> BaseException | None:
    try:
        await publishing
    except (CubecastError, TimeoutError) as error:
        return error
    return None


def lose(client: Any) -> None:
    """As if its node had died at this very moment: what was not sent has not been sent."""
    connection = client._port._connection
    client._port._on_lost(connection, ConnectionResetError("the node died"))
    connection.abort("the node died")


async def same_turn(publications: dict[str, Any]) -> dict[str, asyncio.Task[Any]]:
    """All of them are accepted, and not yet sent when this returns."""
    tasks = {message: asyncio.create_task(outcome(one)) for message, one in publications.items()}
    await asyncio.sleep(0)
    return tasks


@pytest.mark.parametrize("where", ["a node that logs other topics", "a node without a log", "a node that logs it"])
def test_durable_publications_that_were_not_sent_when_their_node_died(tmp_path, where):
    async def main():
        async with surroundings(tmp_path) as (keeper, other, plain, witness):
            target = plain if where == "a node without a log" else other
            is_logged = where == "a node that logs it"
            topic = "other.t" if is_logged else "t"
            async with connect(keeper.address, target.address) as client:
                await client.publish(topic, "before", wait="durable")
                messages = [f"n{number}" for number in range(13)]
                tasks = await same_turn({one: client.publish(topic, one, wait="durable") for one in messages})
                lose(client)
                outcomes = {message: await task for message, task in tasks.items()}
                assert client._port.node.startswith(f"node {target.id} ")
                await witness.judge(topic, {"before": None} | outcomes)
                kinds = {type(error) for error in outcomes.values()}
                assert kinds == ({type(None)} if is_logged else {NotDurable}), outcomes
                await until(lambda: set(messages) <= set(witness.delivered))
                after = {"after": await outcome(client.publish(topic, "after", wait="durable"))}
                await witness.judge(topic, after)
                assert isinstance(after["after"], BadInput) or is_logged

    run(main())


@pytest.mark.parametrize("kind", ["raw client", "WebSocket"])
def test_who_publishes_without_asking_hears_that_it_is_published_and_not_durable(tmp_path, kind):
    """Also where nobody at that node subscribes, so that nothing is ever delivered there."""

    async def main():
        async with surroundings(tmp_path) as (_, other, plain, witness):
            for node in (other, plain):
                async with client_of(kind, node) as client:
                    message = f"at {node.id}"
                    told = {message: await outcome(client.publish("t", message, wait="durable"))}
                    assert isinstance(told[message], NotDurable)
                    await witness.judge("t", told)
                    unheard = await outcome(client.ask("never", "durable"))
                    assert isinstance(unheard, OutcomeUnknown), "a yes for what was never published"

    run(main())


@pytest.mark.parametrize("wait", ["stable", "durable"])
@pytest.mark.parametrize("kind", EVERYBODY)
def test_what_a_node_refuses_is_not_published_and_what_it_takes_after_that_is(tmp_path, kind, wait):
    async def main():
        async with (
            surroundings(tmp_path, max_payload=1000) as (keeper, _, _, witness),
            client_of(kind, keeper) as client,
        ):
            large = "x" * 2000
            assert await outcome(client.publish("t", "first", wait=wait)) is None
            told = await outcome(client.publish("t", large, wait=wait))
            assert isinstance(told, BadInput) and "Nothing was published" in str(told)
            with suppress(BadInput):
                await client.publish("t", large)  # refused, and nobody waits for it
            await client.publish("u", "a frame of its own")
            assert await outcome(client.publish("t", "second", wait=wait)) is None, "told of another one's refusal"
            await until(lambda: sorted(witness.delivered) == ["a frame of its own", "first", "second"])

    run(main())


def test_a_message_that_is_too_large_takes_no_other_of_its_turn_with_it(tmp_path):
    async def main():
        async with (
            surroundings(tmp_path, max_payload=1000) as (keeper, _, _, witness),
            connect(keeper.address) as client,
        ):
            await client.publish("t", "before")
            assert isinstance(await outcome(client.publish("t", "x" * 2000)), BadInput)
            await client.publish("t", "after", wait="durable")
            await until(lambda: witness.delivered == ["before", "after"])

    run(main())


def test_what_the_node_after_a_move_refuses_is_not_published(tmp_path):
    async def main():
        refused: list[str] = []
        async with (
            surroundings(tmp_path, max_payload=1000) as (strict, _, _, witness),
            Node(join=[strict.address], data=tmp_path / "c", log=(">",), **FAST) as lenient,
            connect(lenient.address, strict.address, on_refused=refused.append) as client,
        ):
            await client.publish("t", "before", wait="durable")
            messages = {wait: client.publish("t", wait.ljust(2000), wait=wait) for wait in ("stable", "durable")}
            tasks = await same_turn(messages)
            lose(client)
            for task in tasks.values():
                told = await task
                assert isinstance(told, BadInput) and "Nothing was published" in str(told)
            await client.publish("t", "after", wait="durable")
            await until(lambda: witness.delivered == ["before", "after"])
            assert refused, "publishers that wait for nothing are told, too"

    run(main())


@pytest.mark.parametrize("kind", EVERYBODY)
def test_a_topic_that_is_none_is_refused(tmp_path, kind):
    async def main():
        async with surroundings(tmp_path) as (keeper, _, _, witness), client_of(kind, keeper) as client:
            assert isinstance(await outcome(client.publish("a..b", "x", wait="stable")), BadInput)
            await client.publish("t", "end", wait="stable")
            await until(lambda: witness.delivered == ["end"])

    run(main())


async def _at_once(client: Any, message: str) -> None:
    client.publish_nowait("t", message)


WAYS = [
    _at_once,
    lambda client, message: client.publish("t", message, timeout=0.01),
    lambda client, message: client.publish_batch("t", [message], timeout=0.01),
]


@pytest.mark.parametrize("kind", ["node", "thin client"])
def test_without_room_nothing_is_published_and_of_a_list_what_is_said(tmp_path, kind):
    async def main():
        options = {"topic_budget": 64 << 10}
        async with surroundings(tmp_path, **options) as (keeper, _, plain, witness), client_of(kind, keeper) as client:
            held = plain.subscribe("t", budget=1000, patience=60.0)
            await held.ready()
            published: list[str] = []
            seen: set[str] = set()
            for number in count():  # until each of them found no room; what it finds meanwhile it uses
                message = f"{number:06}".ljust(50_000, ".")
                error = await outcome(WAYS[number % 3](client, message))
                if error is None:
                    published.append(message)
                else:
                    assert isinstance(error, NoRoom | TimeoutError) and "nothing was published" in str(error)
                    seen.add(f"{number % 3}")
                if len(seen) == 3:
                    break
            held.close()
            await client.stable("t")
            await until(lambda: len(witness.delivered) >= len(published))
            assert witness.delivered == published

    run(main())


@pytest.mark.parametrize("is_late", [True, False], ids=["no room in time", "refused"])
def test_a_list_that_is_published_in_part_says_how_much(is_late):
    async def main():
        witness = Witness()
        async with Node(**FAST, topic_budget=128 << 10, max_payload=100_000) as node:
            heard = node.subscribe("t", on_batch=witness.on_batch)
            await heard.ready()
            if is_late:
                paused = node.subscribe("t", budget=1000, patience=60.0)
                await paused.ready()
                await node.publish("t", "x" * 2000)
                await until(lambda: node._live.port.subscribing._subscriptions.is_paused("t"))
                batch = [f"{number}".ljust(60_000, ".") for number in range(10)]
                with pytest.raises(TimeoutError, match=r"the first (\d+) messages were published, and no more") as late:
                    await node.publish_batch("t", batch, timeout=0.01)
                said = int(str(late.value).partition("the first ")[2].split()[0])
                paused.close()
            else:
                batch = [*(f"{number}".ljust(50_000, ".") for number in range(2)), "x" * 200_000, "end"]
                with pytest.raises(PartlyPublished, match="the first 2 of 4 messages were published") as partly:
                    await node.publish_batch("t", batch)
                said = partly.value.args[1]
            await node.stable("t")
            published = [one for one in witness.delivered if not one.startswith("xx")]
            assert published == batch[:said] and 0 < said < len(batch)

    run(main())


@pytest.mark.parametrize("wait", ["stable", "durable"])
def test_of_what_was_sent_when_the_node_died_nobody_knows(tmp_path, wait):
    async def main():
        async with (
            surroundings(tmp_path) as (keeper, _, plain, witness),
            connect(keeper.address, plain.address) as client,
        ):
            await client.publish("t", "before", wait=wait)
            tasks = await same_turn({"sent": client.publish("t", "sent", wait=wait)})
            await until(lambda: client._port._publications._outbox.sent == 2)
            lose(client)
            outcomes = {message: await task for message, task in tasks.items()}
            assert isinstance(outcomes["sent"], OutcomeUnknown)
            await witness.judge("t", outcomes)

    run(main())


def test_when_no_node_is_left_what_was_not_sent_is_not_published_and_said_so(tmp_path):
    async def main():
        refused: list[str] = []
        async with Node(data=tmp_path, log=(">",), **FAST) as node:
            client = await connect(node.address, patience=0.05, on_refused=refused.append)
            await client.publish("t", "before", wait="durable")
            waiting = await same_turn({wait: client.publish("t", wait, wait=wait) for wait in ("stable", "durable")})
            await client.publish("t", "nobody waits for it")
            lose(client)
            await node._live.reception.close()
            for task in waiting.values():
                told = await task
                assert isinstance(told, Closed) and "Nothing was published" in str(told)
            for publishing in (client.publish("t", "later"), client.publish("t", "later", wait="durable")):
                assert isinstance(await outcome(publishing), Closed)
            (line,) = refused
            assert line.startswith("3 messages on t were not sent, and not published")
            assert node._live.port.recorder.store.bounds("t") == (1, 1)
            await client.close()

    run(main())


@pytest.mark.parametrize("kind", ["node", "thin client"])
def test_closing_while_a_publication_is_waited_for_does_not_say_that_it_did_not_happen(tmp_path, kind, monkeypatch):
    monkeypatch.setattr("cubecast.net.live_node.CLOSING_TIME", 0.05)

    async def main():
        async with Node(**FAST) as founder, Node(join=[founder.address], **FAST) as node:
            heard = founder.subscribe("t")
            await heard.ready()
            client = node if kind == "node" else await connect(node.address)
            await client.publish("t", "before", wait="stable")
            founder._live.life.packets = lambda *_: None  # it hears nothing, so nothing becomes stable
            waiting = asyncio.create_task(outcome(client.publish("t", "x", wait="stable")))
            await until(lambda: node._live.port.publishing.outgoing["t"].published == 2)
            await client.close()
            assert isinstance(await waiting, OutcomeUnknown)
            assert isinstance(await outcome(client.publish("t", "later")), Closed)

    run(main())
