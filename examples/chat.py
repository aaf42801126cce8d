"""A chat in which nobody sees an answer before the question. Every participant is a node; there is no server.

    python examples/chat.py ann --listen 127.0.0.1:7400
    python examples/chat.py bob --join 127.0.0.1:7400
    python examples/chat.py cid --join 127.0.0.1:7400

Type lines; end with Ctrl-D.
"""

import argparse
import asyncio
import sys

import cubecast

ROOM = "chat.room"


async def show(heard: cubecast.Subscription[cubecast.Message | cubecast.Gap]) -> None:
    async for event in heard:
        match event:
            case cubecast.Message():
                print(said(event), flush=True)
            case cubecast.Gap():
                print(f"-- something is missing here: {event.reason}", flush=True)


def said(message: cubecast.Message) -> str:
    try:
        line = f"{message.headers.get('by', '?')}: {message.text()}"
        return line if line.isprintable() else repr(line)  # nobody steers somebody else's terminal
    except cubecast.CubecastError as error:
        return f"-- somebody sent what is no chat: {error}"


async def lines() -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    return reader


async def chat(name: str, listen: str, join: list[str]) -> None:
    async with cubecast.Node(listen=listen, join=join) as node, node.subscribe(ROOM) as heard:
        print(f"-- {name} is here; others may join {node.address}", flush=True)
        showing = asyncio.create_task(show(heard))
        async for line in await lines():
            await node.publish(ROOM, line.decode().rstrip("\n"), headers={"by": name}, wait="stable")
        showing.cancel()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name")
    parser.add_argument("--listen", default="127.0.0.1:0", metavar="HOST:PORT")
    parser.add_argument("--join", action="append", default=[], metavar="HOST:PORT")
    arguments = parser.parse_args()
    try:
        asyncio.run(chat(arguments.name, arguments.listen, arguments.join))
    except cubecast.CubecastError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
