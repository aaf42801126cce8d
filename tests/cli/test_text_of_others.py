"""Text that publishers and callers choose, on an operator's terminal: shown, never obeyed. Files get it as it came."""

import os
import subprocess
from collections.abc import Iterator

import pytest

from cubecast.api.connect import connect
from cubecast.errors import BadInput
from support.commands import DEADLINE, PROGRAM, RunningNode, cubecast, running_node
from support.running import run
from support.terminal import on_a_terminal

HOSTILE = "\x1b]0;owned\x07\x1b[2Jtea\x9b31m\u202egpj.exe\r\nsubscribed to nothing"
SHOWN = "\\x1b]0;owned\\x07\\x1b[2Jtea\\x9b31m\\u202egpj.exe\\r\\nsubscribed to nothing"
TOPIC = "tables.[/bold]"
"""A legal name that is no tag of markup. Names that could be commands to the terminal are refused."""
COMMANDING = "tables.\x9b2J"


@pytest.fixture(scope="module")
def node() -> Iterator[RunningNode]:
    with running_node() as one:
        yield one


def publish(node: RunningNode, topic: str, text: str) -> None:
    async def publishing() -> None:
        async with connect(node.address) as client:
            await client.publish(topic, text, wait="stable")

    run(publishing())


def test_a_message_cannot_steer_the_subscribers_terminal(node: RunningNode):
    with on_a_terminal("sub", "screens", "--node", node.address, "--count", 1) as terminal:
        terminal.until("subscribed to screens")
        publish(node, "screens", HOSTILE)
        assert terminal.all() == f"subscribed to screens\r\n{SHOWN}\r\n"


def test_a_message_goes_into_a_pipe_as_it_was_published(node: RunningNode):
    words = [*PROGRAM, "sub", "pipes", "--node", node.address, "--count", "1"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as subscriber:
        assert subscriber.stdout is not None and subscriber.stderr is not None
        try:
            assert subscriber.stderr.readline() == b"subscribed to pipes" + os.linesep.encode()
            publish(node, "pipes", HOSTILE)
            assert subscriber.communicate(timeout=DEADLINE)[0] == f"{HOSTILE}\n".encode()
        finally:
            subscriber.kill()


@pytest.mark.parametrize("command", [("status",), ("status", "--watch", "--times", "1"), ("held",)])
def test_names_of_topics_are_neither_markup_nor_commands(node: RunningNode, command: tuple[str, ...]):
    publish(node, TOPIC, "x")
    with on_a_terminal(*command, "--node", node.address) as terminal:
        shown = terminal.all()
    assert command != ("status",) or TOPIC in shown
    assert cubecast(*command, "--node", node.address).returncode == 0


def test_names_that_command_a_terminal_are_refused(node: RunningNode):
    with pytest.raises(BadInput, match="a character that is not seen"):
        publish(node, COMMANDING, "x")


def test_an_error_is_one_line_whoever_worded_it(node: RunningNode):
    ended = cubecast("status", "--node", node.address, "--cluster", "other\n\x1b[2Jcubecast: all is well")
    assert ended.returncode == 2
    (line,) = ended.stderr.splitlines()
    assert "other" in line and "\x1b" not in line
