"""Held messages explained across living nodes, one of which does not hear another."""

import io

from rich.console import Console

from cubecast.api.connect import connect
from cubecast.report.live_status import held_across, print_held
from support.cluster import cluster
from support.live_codec import decode
from support.running import run, until


def test_what_one_node_misses_is_found_at_another():
    async def main():
        async with cluster(3) as nodes, nodes[1].subscribe("t") as heard, nodes[2].subscribe("t") as deaf:
            await heard.ready()
            await deaf.ready()
            for node in nodes[:2]:
                await node.publish("t", "hello", wait="stable")
            events = nodes[2]._live.life
            hears = events.packets

            def half_deaf(sender, frames):
                hears(sender, [frame for frame in frames if sender != 0 or not decode(frame).publication])

            events.packets = half_deaf
            await nodes[0].publish("t", "question")
            for _ in range(3):
                await heard.next(30)
            await nodes[1].publish("t", "answer")
            await until(lambda: nodes[2]._live.status()["held"])
            found = await held_across([nodes[2].address], connect, 30.0, ask_members=True)
            events.packets = hears
            assert [(await deaf.next(30)).data for _ in range(4)][2:] == ["question", "answer"]
            assert not (await held_across([nodes[2].address], connect, 30.0, ask_members=True))["nodes"][0]["held"]
            return found

    found = run(main())
    ((held,), (missing,)) = found["nodes"][0]["held"], found["nodes"][0]["held"][0]["chain"]
    assert held["message"] == [1, 0, 2] and missing["message"] == [0, 0, 2]
    assert missing["at"] == {"published": [0], "delivered": [1], "held": [], "absent": [], "unsaid": []}
    assert found["asked"] == [0, 1, 2] and found["silent"] == {}
    text = io.StringIO()
    print_held(Console(file=text, width=200), found)
    assert "waits for 0.0.2: not here; its source, node 0, is alive, comes from node 0" in text.getvalue()
    assert "elsewhere: published at 0; delivered at 1" in text.getvalue()


def test_who_does_not_answer_is_named():
    async def main():
        async with cluster(1) as (node,):
            return await held_across(
                [node.address, "127.0.0.1:1"], lambda one: connect(one, timeout=0.2), 30.0, ask_members=True
            )

    found = run(main())
    assert [one["node"] for one in found["nodes"]] == [0]
    assert "127.0.0.1:1" in found["silent"]["127.0.0.1:1"]
