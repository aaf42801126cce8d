"""What this node published and a living subscriber will not get: told to the application, else to the log."""

import asyncio

import cubecast
from cubecast.api.message import Missing
from cubecast.ids import MessageRun
from support.running import run

LOST = MessageRun(0, 1, 3, 5)


def say_lost(node: cubecast.Node) -> None:
    """As the driver does when a subscriber has named them."""
    node._live.port.on_undelivered("t", LOST, 7)


def test_the_application_is_told_the_run_and_the_subscribers_node() -> None:
    told = []

    async def main():
        node = cubecast.Node()
        node.on_undelivered(lambda missing, peer: told.append((missing, peer)))
        async with node:
            say_lost(node)

    run(main())
    assert told == [(Missing("t", 0, 1, 3, 5), 7)]


def test_without_an_application_that_asks_it_is_a_warning(caplog) -> None:
    async def main():
        async with cubecast.Node() as node:
            say_lost(node)

    run(main())
    lines = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert any("t" in line and "3" in line and "5" in line and "7" in line for line in lines), lines


def test_a_function_that_fails_is_no_accident_of_the_node() -> None:
    reported = []

    def fail(missing, peer):
        raise ValueError("the application's own mistake")

    async def main():
        asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context["exception"]))
        async with cubecast.Node() as node, node.subscribe("t") as heard:
            node.on_undelivered(fail)
            say_lost(node)
            await node.publish("t", "still here")
            assert (await heard.next()).text() == "still here"

    run(main())
    assert [type(error) for error in reported] == [ValueError]
