"""What a node remembers from one life to the next."""

import pytest

from cubecast.errors import BadInput
from cubecast.net.live_node import LiveNode
from cubecast.net.members.memory import last_incarnation, remember
from cubecast.net.settings.config import NodeConfig
from support.cluster import FAST
from support.running import run

QUICK = FAST | {"patience": 0.5}
"""Who lived before and is alone waits that long for the others."""


def test_a_data_directory_is_for_one_node_at_a_time(tmp_path):
    async def main():
        first, second = (LiveNode(NodeConfig(data=tmp_path, **QUICK)) for _ in range(2))
        await first.start()
        with pytest.raises(BadInput, match="is the data directory of another node that runs; give each its own"):
            await second.start()
        assert first.place.incarnation == 0
        await first.close()
        third = LiveNode(NodeConfig(data=tmp_path, **QUICK))
        await third.start()
        assert third.place.incarnation == 1
        await third.close()

    run(main())


def test_what_was_remembered_is_found_again(tmp_path):
    config = NodeConfig(data=tmp_path)
    assert last_incarnation(config) == last_incarnation(NodeConfig()) == -1
    remember(config, 5)
    remember(NodeConfig(), 7)
    assert last_incarnation(config) == 5


@pytest.mark.parametrize("text", ["", "x", "-5", "99999999999999999999", "1.5", "\x00\xff"])
def test_what_nobody_remembered_is_refused(tmp_path, text):
    (tmp_path / "incarnation").write_bytes(text.encode("latin-1"))
    with pytest.raises(BadInput, match="does not hold the number of an incarnation; remove it to start anew"):
        last_incarnation(NodeConfig(data=tmp_path))
