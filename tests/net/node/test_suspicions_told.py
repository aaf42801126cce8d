"""What a node's log says of verdicts: a warning about who is gone, none about an earlier life of who is here."""

import logging

import pytest

from support.cluster import cluster
from support.running import run, until

GONE = 6
"""Nobody has this id."""


@pytest.mark.parametrize(("peer", "level"), [(1, logging.INFO), (GONE, logging.WARNING)])
def test_a_verdict_about_an_earlier_life_is_no_warning(peer, level, caplog):
    """Where all nodes were killed and are started, each learns that everybody's earlier life is over."""

    async def main():
        async with cluster(2) as (node, _):
            with caplog.at_level(logging.INFO, "cubecast"):
                node._live.life.on_suspect(peer)
                await until(lambda: any("held faulty" in one.getMessage() for one in caplog.records))

    run(main())
    assert [one.levelno for one in caplog.records if "held faulty" in one.getMessage()] == [level]
