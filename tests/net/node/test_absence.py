"""`partition.stable = "everybody"`: a publisher that waits is told "stable" only when nobody may be cut off."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from cubecast.api.connect import connect
from cubecast.errors import BadInput, OutcomeUnknown
from cubecast.net.links.handshake import Place
from cubecast.net.node import absence
from cubecast.net.node.absence import Lacking, Member, lacking
from cubecast.net.settings.config import NodeConfig, PartitionSettings
from support.cluster import cluster
from support.ports import free_addresses
from support.roads import roads
from support.running import run, until

EVERYBODY = {"partition": {"stable": "everybody"}}
HERE, AWAY, GONE = Member(b"a", 0, False), Member(b"a", None, False), Member(b"a", None, True)
NEVER_HEARD_OF = Member(b"", None, False)


@pytest.fixture(autouse=True)
def _hasty(monkeypatch):
    """No test waits long for the proof that somebody is gone where it does not come."""
    monkeypatch.setattr(absence, "PROOF_TAKES", 0.3)


@pytest.mark.parametrize(
    ("was", "now", "expected"),
    [
        (HERE, HERE, ""),
        (HERE, AWAY, "silent"),
        (HERE, GONE, ""),
        (HERE, Member(b"a", 1, False), "returned"),
        (HERE, Member(b"b", 1, False), ""),
        (HERE, Member(b"b", None, False), ""),
        (AWAY, AWAY, "silent"),
        (AWAY, GONE, ""),
        (AWAY, Member(b"a", 1, False), "returned"),
        (AWAY, Member(b"b", 1, False), ""),
        (NEVER_HEARD_OF, NEVER_HEARD_OF, "silent"),
        (NEVER_HEARD_OF, HERE, "returned"),
        (None, HERE, ""),
        (None, AWAY, "silent"),
    ],
)
def test_who_may_lack_it(was, now, expected):
    """Whose process was away, or is in another life than when the publisher began to wait."""
    found = lacking({} if was is None else {3: was}, {3: now})
    assert found == Lacking([3] if expected == "silent" else [], [3] if expected == "returned" else [])


def test_everybody_is_named():
    assert str(Lacking([1], [])) == "node 1 is cut off or down, and may lack it"
    both = "nodes 1, 2 are cut off or down, and may lack it; node 3 is back after having been held faulty, and may have"
    assert str(Lacking([1, 2], [3])) == f"{both} missed it"


def test_protocols_that_cannot_tell_are_refused():
    with pytest.raises(BadInput, match="epto cannot tell"):
        NodeConfig(protocol="epto", partition=PartitionSettings("everybody"))


@asynccontextmanager
async def cut_in_two(**options):
    """Nodes 0 and 1, and 2, which is cut off; each side holds the other faulty. Whatever was subscribed is ready."""
    async with roads((0, 1, 2), **options) as built:
        for node in built.nodes.values():
            await (await node.subscribe("t", gaps="ignore").__aenter__()).ready()
        for one in (0, 1):
            built.hold(one, 2)
            built.hold(2, one)
        for one, other in ((0, 2), (1, 2), (2, 0), (2, 1)):
            built.nodes[one]._live.life.on_down(other)
        yield built


def test_on_a_side_that_is_cut_off_nobody_is_told_that_everybody_has_it():
    async def main():
        async with cut_in_two(**EVERYBODY) as built:
            with pytest.raises(OutcomeUnknown, match="nodes 0, 1 are cut off or down"):
                await built.nodes[2].publish("t", "alone", wait="stable")
            with pytest.raises(OutcomeUnknown, match="node 2 is cut off or down"):
                await built.nodes[0].publish("t", "together", wait="stable")
            async with connect(built.nodes[1].address) as client:
                with pytest.raises(OutcomeUnknown, match="node 2 is cut off or down"):
                    await client.publish("t", "by a client", wait="stable")
            built.free()
            await until(lambda: all(node._live.life.inspector.living == [0, 1, 2] for node in built.nodes.values()))
            await built.nodes[2].publish("t", "back", wait="stable")

    run(main())


def test_those_who_can_be_reached_are_enough_unless_it_is_asked_for():
    async def main():
        async with cut_in_two() as built:
            await built.nodes[2].publish("t", "alone", wait="stable")

    run(main())


def test_who_comes_back_may_have_missed_it():
    async def main():
        async with cluster(2, **EVERYBODY) as (node, other), other.subscribe("t", gaps="ignore") as heard:
            await heard.ready()
            waiting = asyncio.ensure_future(node.publish("t", "m", wait="stable"))
            await until(lambda: "t" in node._live.port.publishing.outgoing)
            node._live.life.on_down(other.id)
            with pytest.raises(OutcomeUnknown, match=f"node {other.id} is"):
                await waiting
            await until(lambda: node._live.life.inspector.living == [node.id, other.id])
            await node.publish("t", "later", wait="stable")

    run(main())


def test_the_gone_are_not_waited_for():
    """One said goodbye; where another one should be nothing listens, which a call finds out."""

    async def main():
        async with cluster(2, **EVERYBODY) as (node, other):
            await other.close()
            await node.publish("t", "after the goodbye", wait="stable")
            node._live.life.directory.learn([Place(5, 0, b"12345678", free_addresses(1)[0])])
            await node.publish("t", "after its end", wait="stable")

    run(main())
