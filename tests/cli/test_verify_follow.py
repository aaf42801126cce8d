"""`cubecast verify --follow` beside nodes that run: valid as far as it goes, until a node does something wrong."""

import asyncio
import json
from time import monotonic
from unittest.mock import patch
from urllib.request import urlopen

import pytest

from cubecast import Node, sync
from cubecast.protocol.cubecast.machine import Cubecast
from cubecast.protocol.effects import Deliver
from cubecast.report.journals import follow
from support.commands import complaint, running, running_node
from support.running import run

DEADLINE = 60


def until(command, wanted: str) -> dict:
    """The first verdict of this kind; those before it."""
    deadline = monotonic() + DEADLINE
    while monotonic() < deadline:
        said = json.loads(command.line())
        if said["verdict"] == wanted:
            return said
    raise AssertionError(f"no {wanted} in {DEADLINE} s")


@pytest.mark.interpreted
@pytest.mark.parametrize("asks", ["files", "nodes"])
def test_a_bug_that_is_switched_on_is_reported_with_its_witness(tmp_path, asks):
    """To a judge who reads the nodes' directory, and to one who asks the nodes, each with a directory of its own."""
    is_on, on_packet = False, Cubecast.on_packet

    def buggy(machine, now, sender, packet):
        effects = on_packet(machine, now, sender, packet)
        if is_on and machine.node == 1:
            return [again for one in effects for again in ([one, one] if isinstance(one, Deliver) else [one])]
        return effects

    def journal(number):
        return tmp_path if asks == "files" else tmp_path / f"{number}"

    async def story():
        listen = {"listen": "127.0.0.1:0", "http": "127.0.0.1:0"}
        async with (
            Node(**listen, journal=journal(0)) as one,
            Node(**listen, journal=journal(1), join=[one.address]) as two,
        ):
            told = [tmp_path] if asks == "files" else ["--node", one.address, "--node", two.address]
            with running("verify", "--follow", *told, "--every", "0.2", "--json") as command:
                return await judged(command, one, two)

    async def judged(command, one, two):
        nonlocal is_on
        ears = [node.subscribe("t") for node in (one, two)]
        for ear in ears:
            await ear.ready()
        await one.publish_batch("t", ["good"] * 20, wait="stable")
        said = await asyncio.to_thread(until, command, "VALID")
        assert said["rows"] > 0
        is_on = True
        await one.publish_batch("t", ["doubled"] * 3, wait="stable")
        began = monotonic()
        said = await asyncio.to_thread(until, command, "VIOLATED")
        taken = monotonic() - began
        page = await asyncio.to_thread(lambda: urlopen(f"http://{one.http_address}/api/faults.json").read())
        is_on = False
        return said, json.loads(page), taken

    with patch.object(Cubecast, "on_packet", buggy):
        said, page, taken = run(story(), 2 * DEADLINE)
    witness = said["witnesses"][0]
    assert (witness["property"], witness["node"], witness["topic"], witness["message"]) == ("P2", 1, "t", [0, 0, 21])
    assert taken < DEADLINE
    assert page["verdict"]["verdict"] == "VIOLATED"
    assert page["verdict"]["because"].startswith("P2: ")


def test_it_ends_with_the_nodes_and_says_what_they_kept(tmp_path):
    async def story():
        listen = {"listen": "127.0.0.1:0", "journal": tmp_path}
        async with Node(**listen) as one, Node(**listen, join=[one.address]) as two, two.subscribe("t"):
            await one.publish_batch("t", ["good"] * 20, wait="stable")

    run(story())
    with running("verify", "--follow", tmp_path, "--every", "0.1") as command:
        line = command.line()
        while "VALID" not in line:
            line = command.line()
        assert line.startswith("VALID up to ")
        assert command.process.wait(DEADLINE) in (0, 3)


def test_a_judge_whose_node_is_gone_says_that_it_does_not_know(tmp_path):
    """What a killed node did last may be on its disk only; when it comes back, that is fetched and judged."""
    words = ("--data", tmp_path / "data", "--trace", tmp_path / "journal", "--http", "127.0.0.1:0")
    with running_node(*words) as node:
        follow = ("verify", "--follow", "--node", node.address, "--every", "0.2", "--patience", "0.5", "--json")
        with running(*follow) as command, sync.connect(node.address) as client:
            client.publish_batch("t", ["good"] * 20, wait="stable")
            assert until(command, "VALID")["rows"] > 0
            node.kill()
            said = until(command, "UNKNOWN")
            assert "does not answer, so what it did since is not known" in said["unknown_because"][0]
            with running_node(*words, "--listen", node.address):
                assert until(command, "VALID")["rows"] >= said["rows"]


@pytest.mark.parametrize(
    ("protocol", "expected"), [("cubecast", "VIOLATED"), ("simple-gossip", "VALID"), (None, "VIOLATED")]
)
def test_nodes_are_held_to_what_their_protocol_promises(tmp_path, protocol, expected):
    """An effect before its cause; journals that do not say what their nodes ran are of the users' protocol."""
    begins = [*([["run", 0.0, protocol]] if protocol else []), ["start", 0.0, 0], ["subscribe", 0.0, "t"]]
    begins.append(["subscribed", 0.0, "t", []])
    cause, effect = ["deliver", 1.0, "t", 0, 0, 1, 1, [5]], ["deliver", 2.0, "t", 1, 0, 1, 1, [6]]
    said = [
        [["publish", 1.0, "t", 1, 1, [], [5]]],
        [cause, ["publish", 2.0, "t", 1, 1, [], [6]]],
        [effect, cause],
    ]
    for node, lines in enumerate(said):
        text = "".join(json.dumps(line) + "\n" for line in [*begins, *lines])
        (tmp_path / f"node-{node:05d}-00000-aaaaaaaa.jsonl").write_text(text)
    standing = next(follow([tmp_path], None, 0.0, lambda: None))
    assert str(standing.verdict) == expected, standing


def test_what_to_judge_has_to_be_said(tmp_path):
    for words in ((), ("--follow", tmp_path, "--node", "127.0.0.1:1"), ("--node", "127.0.0.1:1")):
        assert "say --follow --node HOST:PORT" in complaint("verify", *words)
    for words in (("--out", tmp_path / "out"), ("--master", "local[2]")):
        assert "leaves verdict.json beside the journals" in complaint("verify", "--follow", tmp_path, *words)
    with running_node() as node:
        assert "serves no HTTP; start it with --http" in complaint("verify", "--follow", "--node", node.address)
    with running_node("--http", "127.0.0.1:0") as node:
        assert "writes no journal; start it with --trace" in complaint("verify", "--follow", "--node", node.address)


def test_no_directory_is_said_in_one_line(tmp_path):
    assert "is no directory; name the one the nodes write their journals to" in complaint(
        "verify", "--follow", tmp_path / "x"
    )
