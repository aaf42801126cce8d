"""Traces switched on in the middle of living nodes: what the judge can read of them, and what it must not believe."""

import asyncio
import json
from pathlib import Path
from random import Random

import pytest

from cubecast.check import check_directory
from cubecast.errors import BadInput
from cubecast.protocol.families import find
from cubecast.trace.event import RunInfo
from cubecast.trace.journal import collect
from cubecast.trace.reader import read_trace
from support.asking import HTTP, ask, ask_json
from support.cluster import cluster
from support.running import run

INFO = RunInfo("switched", "cubecast", find("cubecast").promises)
MEMBERS, ROUNDS = 4, 60


class Talk:
    """Everybody publishes now and then, and sometimes answers what it hears."""

    def __init__(self, nodes, random: Random) -> None:
        self.nodes, self.random = nodes, random
        self.whims = Random(random.random())
        """Of those who answer; apart, because who answers when is not ours to repeat."""
        self.open = {}

    def subscribe(self, node, topic: str) -> None:
        def answer(batch) -> None:
            if self.whims.random() < 0.2:
                node.publish_nowait(topic, f"{node.id} heard {len(batch)}")

        self.open[node.id, topic] = node.subscribe(topic, on_batch=answer)

    async def round(self, number: int) -> None:
        node = self.random.choice(self.nodes)
        topic = self.random.choice("ttu")
        await node.publish(topic, f"{number}", wait="stable" if not number % 5 else None)
        if self.random.random() < 0.05 and len(self.open) > 2:
            key = self.random.choice(sorted(self.open))
            self.open.pop(key).close()
        elif self.random.random() < 0.1:
            node = self.random.choice(self.nodes)
            if (node.id, "u") not in self.open:
                self.subscribe(node, "u")


async def talk(directory: Path, seed: int, *, switch_off: bool) -> None:
    """Each node's trace goes on at a random moment; some go off before the end."""
    random = Random(seed)
    async with cluster(MEMBERS, traces=directory, retry=0.3) as nodes:
        talk = Talk(nodes, random)
        for node in nodes:
            talk.subscribe(node, "t")
        on = {random.randrange(ROUNDS // 2): node for node in nodes}
        off = {ROUNDS // 2 + random.randrange(ROUNDS // 2): node for node in nodes[: 2 * switch_off]}
        for number in range(ROUNDS):
            if number in on:
                on[number]._live.switch_tracing("run")
            if number in off and off[number]._live.tracing()["on"]:
                off[number]._live.switch_tracing(None)
            await talk.round(number)


@pytest.mark.parametrize("switch_off", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_a_trace_switched_on_late_can_be_judged(tmp_path: Path, seed: int, switch_off: bool):
    run(talk(tmp_path / "traces", seed, switch_off=switch_off))
    rows = collect(tmp_path / "traces" / "run", tmp_path / "trace", INFO)
    report = check_directory(tmp_path / "trace")
    assert str(report.verdict) == "VALID", report.to_json()
    assert rows > 100 and report.deliveries > 20
    info = read_trace(tmp_path / "trace").info
    assert "P13" not in info.promises and "partial" in info.parameters


def test_what_is_wrong_in_such_a_trace_is_found(tmp_path: Path):
    async def main():
        async with cluster(2, traces=tmp_path / "traces") as (one, two), two.subscribe("t") as heard:
            await heard.ready()
            for number in range(6):
                if number == 3:
                    one._live.switch_tracing("run")
                    two._live.switch_tracing("run")
                await one.publish("t", number, wait="stable")
            two._live.switch_tracing(None)

    run(main())
    (path,) = (tmp_path / "traces" / "run").glob("node-00001-*")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line[5] for line in lines if line[0] == "deliver"] == [4, 5, 6]
    collect(path.parent, tmp_path / "whole", INFO)
    assert str(check_directory(tmp_path / "whole").verdict) == "VALID"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines if line[0] != "deliver" or line[5] != 5))
    collect(path.parent, tmp_path / "broken", INFO)
    report = check_directory(tmp_path / "broken")
    assert {name for name, verdict in report.verdicts.items() if str(verdict) == "VIOLATED"} == {"P6", "P8"}


def test_publishers_without_a_journal_are_left_out_and_named(tmp_path: Path):
    async def main():
        async with cluster(2, traces=tmp_path / "traces") as (one, two), two.subscribe("t") as heard:
            await heard.ready()
            two._live.switch_tracing("run")
            for node in (one, two):
                await node.publish("t", "x", wait="stable")
            await heard.next(30)

    run(main())
    collect(tmp_path / "traces" / "run", tmp_path / "trace", INFO)
    report = check_directory(tmp_path / "trace")
    assert (str(report.verdict), report.deliveries) == ("VALID", 1)
    assert read_trace(tmp_path / "trace").info.parameters["publishers_without_a_journal"] == [[0, 0]]


def test_switching_over_http(tmp_path: Path):
    async def main():
        async with cluster(1, http=HTTP, data=tmp_path) as (node,):
            assert (await ask_json(node, "/trace"))["on"] is False
            assert (await ask(node, "/trace", method="POST"))[0] == 400
            status, text = await ask(node, "/trace?on=true&run=one", method="POST")
            assert (status, json.loads(text)["directory"]) == (200, str(tmp_path / "traces" / "one"))
            told = await ask_json(node, "/trace")
            assert told["on"] and not told["from_the_beginning"]
            assert (await ask(node, "/trace?on=true&run=two", method="POST"))[0] == 409
            assert (await ask(node, "/trace?on=false", method="POST"))[0] == 200
            assert (await ask(node, "/trace?on=false", method="POST"))[0] == 409
            status, text = await ask(node, "/trace?on=true&run=one", method="POST")
            assert status == 409 and "holds a trace of this node already" in text
            for name in ("..", "../x", "a/b", "", "x" * 65, "-x", "%2e%2e"):
                status, text = await ask(node, f"/trace?on=true&run={name}", method="POST")
                assert status == 409 and "is no name for a trace" in text
            assert [one.name for one in (tmp_path / "traces").iterdir()] == ["one"]

    run(main())


def test_a_node_without_a_place_for_traces_says_so():
    async def main():
        async with cluster(1) as (node,):
            with pytest.raises(BadInput, match="no place for traces"):
                node._live.switch_tracing("run")
            await asyncio.sleep(0)

    run(main())
