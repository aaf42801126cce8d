"""The JSON that pages are drawn from, asked of living nodes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from cubecast.api.node import Node
from cubecast.net.node.status import MOST_TOPICS
from cubecast.net.web import routes
from cubecast.protocol.cubecast import inspection
from cubecast.protocol.families import FAMILIES, find
from cubecast.protocol.inputs import Advertise
from cubecast.report.live_status import status_tables
from support.asking import HTTP, ask, ask_json
from support.brokers import settings
from support.cluster import cluster
from support.commands import running_node
from support.running import run, until


async def sampled(node, path, enough, deadline=30.0):
    """Ask until the answer satisfies."""
    async with asyncio.timeout(deadline):
        while not enough(answer := await ask_json(node, path)):
            await asyncio.sleep(0)
        return answer


def test_the_cube_its_members_and_trees():
    async def main():
        async with cluster(4, http=HTTP) as nodes, nodes[3].subscribe("t") as wanted:
            await wanted.ready()
            cube = await ask_json(nodes[1], "/api/cube.json")
            assert (cube["node"], cube["dimension"], cube["cluster"]) == (1, 3, "cubecast")
            assert [(one["node"], one["state"]) for one in cube["members"]] == [
                (0, "alive"),
                (1, "self"),
                (2, "alive"),
                (3, "alive"),
            ]
            assert cube["tree"] == {
                "root": 1,
                "topic": None,
                "whole": True,
                "children": {"1": [0, 3], "0": [], "3": [2], "2": []},
            }
            other = await ask_json(nodes[1], "/api/cube.json?root=0&topic=t")
            assert other["tree"] == {"root": 0, "topic": "t", "whole": True, "children": {"0": [3], "3": []}}
            assert (await ask_json(nodes[1], "/api/cube.json?topic=unheard"))["tree"]["children"] == {"1": []}
            assert (await ask(nodes[1], "/api/cube.json?root=8"))[0] == 400
            assert (await ask(nodes[1], "/api/cube.json?root=x"))[0] == 400

    run(main())


def test_the_way_of_a_stream_also_where_its_publisher_is_not_known():
    async def main():
        async with cluster(3, http=HTTP, protocol="brisa") as nodes, nodes[2].subscribe("t") as heard:
            publisher, other = nodes[0], nodes[2]
            await heard.ready()
            await until(lambda: all(len(node.neighbours) == 2 for node in nodes))
            await publisher.publish("t", "1")
            await heard.next()
            (stream,) = (await ask_json(other, "/api/topics.json"))["streams"]
            assert (stream["topic"], stream["publisher"], stream["messages"]) == ("t", publisher.id, 1)
            other._live.life.directory.places.pop(publisher.id)
            cube = await ask_json(other, "/api/cube.json")
            tree = cube["tree"]
            assert tree["root"] == publisher.id and not tree["whole"], "whom it hears, not what it publishes itself"
            way = {int(node): below for node, below in tree["children"].items()}
            assert other.id in way and way[stream["path"][-2]] == [other.id]
            states = {one["node"]: one["state"] for one in cube["members"]}
            assert states[publisher.id] == "unknown" and way.keys() <= states.keys()
            assert (await ask(other, f"/api/cube.json?root={publisher.id}"))[0] == 200
            assert (await ask(other, "/api/cube.json?root=8"))[0] == 400, "it never heard of that one"

    run(main())


def test_topics_and_rates():
    async def main():
        async with cluster(2, http=HTTP) as (one, two), two.subscribe("a.*") as heard:
            await heard.ready()
            for number in range(30):
                await one.publish("a.b", number, wait="stable")
            rates = await sampled(two, "/api/rates.json", lambda said: said["samples"])
            assert rates["totals"]["delivered"] == 30 and rates["totals"]["published"] == 0
            assert sum(sample["delivered"] for sample in rates["samples"]) > 0
            (topic,) = (await ask_json(two, "/api/topics.json"))["topics"]
            assert (topic["topic"], topic["subscribed"], topic["delivered"], topic["lag"]) == ("a.b", True, 30, 0)
            there = await sampled(one, "/api/rates.json?last=1", lambda said: said["samples"])
            assert there["totals"]["published"] == 30 and len(there["samples"]) == 1

    run(main())


@asynccontextmanager
async def two_of(protocol: str) -> AsyncIterator[tuple[Node, Node]]:
    shared = settings("0-1", 0) if Advertise in find(protocol).requests else {"protocol": protocol}
    async with AsyncExitStack() as stack:
        nodes: list[Node] = []
        for number in range(2):
            place = {"node": number} if "peers" in shared else {"join": [node.address for node in nodes]}
            nodes.append(await stack.enter_async_context(Node(http=HTTP, **shared, **place)))
        yield nodes[0], nodes[1]


def states_in(cube):
    return sorted(each["state"] for each in cube["members"])


@pytest.mark.parametrize("protocol", [name for name in FAMILIES if find(name).live])
def test_every_protocol_tells_its_members_and_topics(protocol: str):
    async def main():
        async with two_of(protocol) as (one, two), two.subscribe("t"), two.subscribe("quiet"):
            for node in (one, two):  # gossip goes to those a node knows
                await sampled(node, "/api/cube.json", lambda said: states_in(said) == ["alive", "self"])
            for number in range(3):
                await one.publish("t", number)
                await two.publish("t", number)  # what another one published may be lost where that is not promised
            said = await sampled(
                two, "/api/topics.json", lambda said: sum(each["delivered"] for each in said["topics"]) > 2
            )
            topics = {each["topic"]: each for each in said["topics"]}
            assert topics.keys() == {"t", "quiet"} and topics["t"]["delivered"] > 2 and topics["t"]["subscribed"]
            assert (await ask(two, "/api/held.json"))[0] == (await ask(two, "/metrics"))[0] == 200
            status = await two.status()
            assert status["topics"].keys() == topics.keys() and status["topics_in_all"] == 2
            assert all(each["alive"] for each in status["members"])
            assert any(table.title == "topics: 2" for table in status_tables(status))

    run(main())


def test_a_killed_node_shows_by_its_connections():
    """They end; nobody waits for the patience, which is longer than the test here."""

    async def main(address: str, kill):
        async with Node(join=[address], http=HTTP, patience=600.0) as watcher:
            kill()

            def is_seen(cube):
                return {one["node"]: one["state"] for one in cube["members"]}[0] in ("disconnected", "suspected")

            await sampled(watcher, "/api/cube.json", is_seen)
            await sampled(watcher, "/api/faults.json", lambda said: "suspected" in said["counts"])

    with running_node("--dimension", 3) as victim:
        run(main(victim.address, victim.kill))


def test_a_node_that_left_in_good_order():
    async def main():
        async with cluster(2, http=HTTP) as (stays, leaves):
            await leaves.close()
            cube = await sampled(stays, "/api/cube.json", lambda said: said["members"][1]["state"] == "left")
            assert cube["members"][1]["connected"] is False
            events = (await ask_json(stays, "/api/faults.json"))["events"]
            assert events[0]["kind"] in ("left", "suspected") and events[0]["node"] == 1

    run(main())


@pytest.mark.interpreted
def test_of_very_many_topics_the_busiest_are_told(monkeypatch):
    """Describing all of them would keep the node from delivering."""
    names = [f"topic.{number:04}" for number in range(routes.MOST_TOPICS + 150)]

    async def main():
        async with cluster(2, http=HTTP) as (one, two), two.subscribe("topic.>") as heard:
            await heard.ready()
            await asyncio.gather(*(one.publish(name, "x", wait="stable") for name in names))
            described = []
            look_at = inspection._topic
            monkeypatch.setattr(
                inspection, "_topic", lambda life, topic: described.append(topic) or look_at(life, topic)
            )
            two._live.observer.samples.topic_rates = {"delivered": {names[-1]: 2.0, names[-2]: 1.0}, "published": {}}
            told = routes.topics(two._live.observer)
            assert [one["topic"] for one in told["topics"][:2]] == [names[-1], names[-2]]
            assert len(told["topics"]) == len(described) == routes.MOST_TOPICS and told["topics_in_all"] == len(names)
            described.clear()
            status = await two.status()
            assert len(status["topics"]) == len(described) == MOST_TOPICS and status["topics_in_all"] == len(names)
            assert status["observed"]["totals"]["delivered"] == len(names), "so rates are known without them"

    run(main())
