"""A disk that refuses to promise anything for a while: publishers are told the truth, and then all is as before."""

import errno
import os

import pytest

from cubecast.errors import NotDurable
from support.cluster import cluster
from support.running import run, until


def _refuse(_: int) -> None:
    raise OSError(errno.EIO, "the disk does not answer")


def test_when_syncs_succeed_again_what_is_published_is_durable_again(tmp_path, monkeypatch):
    async def main():
        async with cluster(1, data=tmp_path, log=("t",), patience=1.0) as (node,):
            await node.publish("t", 1, wait="durable")
            with monkeypatch.context() as failing:
                failing.setattr(os, "fsync", _refuse)
                failing.setattr(os, "fdatasync", _refuse)
                with pytest.raises(NotDurable, match="published, and not durable so far"):
                    await node.publish("t", 2, wait="durable")
                with pytest.raises(NotDurable, match="Nothing was published"):
                    await node.publish("t", 3, wait="durable")
            await until(lambda: node._live.port.recorder.store.trouble is None)
            for number in range(4, 10):
                await node.publish("t", number, wait="durable", timeout=30)
        async with cluster(1, data=tmp_path, log=("t",), patience=1.0) as (again,):
            subscription = again.subscribe("t", since="beginning")
            assert [(await subscription.next(30)).data for _ in range(8)] == [1, 2, *range(4, 10)]

    run(main())
