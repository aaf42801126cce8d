"""A mistake of ours inside a step stops the node: a member that answers and delivers nothing is worse than none."""

import pytest

from cubecast.errors import CubecastError
from support.cluster import cluster
from support.running import run, until

pytestmark = pytest.mark.interpreted  # the machine's methods are replaced


def broken(*_):
    raise KeyError("a mistake")


@pytest.mark.parametrize("where", ["a packet", "a call", "a timer", "an effect"])
def test_it_leaves_the_cluster_and_its_users_are_told(where, caplog):
    async def main():
        async with cluster(2) as (well, ill):
            heard = ill.subscribe("t")
            await heard.ready()
            machine, port = ill._live.machine, ill._live.port
            match where:
                case "a packet":
                    machine.on_packet = broken
                case "a call":
                    machine.subscribe = broken
                    ill.subscribe("u")
                case "a timer":
                    machine.on_timer = broken
                case "an effect":
                    port.on_deliver = broken
            await well.publish("t", b"x")
            with pytest.raises(CubecastError, match="a step of its protocol failed"):
                async for _ in heard:  # what came before it
                    pass
            with pytest.raises(CubecastError, match="a step of its protocol failed"):
                await ill.publish("t", b"y")
            await until(lambda: well._live.machine.living == [well.id])
            await well.publish("t", b"z", wait="stable", timeout=60)

    run(main())
    assert len([record for record in caplog.records if record.levelname == "CRITICAL"]) == 1
