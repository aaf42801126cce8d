"""The road between two nodes: it carries, breaks and heals at any moment of a connection's life."""

import asyncio
from random import Random

from cubecast.addresses import Address
from cubecast.experiments.live_faults.link_proxy import Conditions, Direction, LinkProxy
from support.running import run, until


async def _echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(100):
        writer.write(data)
    writer.close()


async def _road() -> tuple[asyncio.Server, LinkProxy, Address]:
    target = await asyncio.start_server(_echo, "127.0.0.1", 0)
    proxy = LinkProxy(Address(*target.sockets[0].getsockname()[:2]), Random(1))
    return target, proxy, await proxy.open()


def test_a_link_heals_while_a_connection_is_only_half_made():
    async def main():
        target, proxy, address = await _road()
        proxy.conditions[Direction.THERE] = Conditions(standing=True)
        reader, writer = await asyncio.open_connection(*address)
        writer.write(b"hello")
        await until(lambda: proxy.carried)
        proxy.heal()
        assert await reader.readexactly(5) == b"hello"
        writer.close()
        proxy.close()
        target.close()

    run(main())


def test_a_connection_dropped_while_it_was_half_made_ends_on_both_sides():
    async def main():
        accepted: list[asyncio.StreamReader] = []
        target = await asyncio.start_server(lambda reader, _: accepted.append(reader), "127.0.0.1", 0)
        proxy = LinkProxy(Address(*target.sockets[0].getsockname()[:2]), Random(1))
        reader, writer = await asyncio.open_connection(*await proxy.open())
        await until(lambda: proxy.carried)
        await asyncio.sleep(0)  # the turn in which it is dialled
        proxy.reset()
        await until(lambda: accepted)
        assert [await _what_is_left(one) for one in (reader, *accepted)] == [b"", b""]
        writer.close()
        proxy.close()
        target.close()

    run(main())


async def _what_is_left(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read()
    except ConnectionResetError:
        return b""


def test_what_stands_still_arrives_after_healing():
    async def main():
        target, proxy, address = await _road()
        reader, writer = await asyncio.open_connection(*address)
        writer.write(b"one")
        assert await reader.readexactly(3) == b"one"
        proxy.conditions[Direction.BACK] = Conditions(standing=True)
        writer.write(b"two")
        coming = asyncio.create_task(reader.readexactly(3))
        await asyncio.wait([coming], timeout=0.05)
        assert not coming.done()
        proxy.heal()
        assert await coming == b"two"
        writer.close()
        proxy.close()
        target.close()

    run(main())
