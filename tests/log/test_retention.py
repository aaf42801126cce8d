"""Forgetting what exceeds a topic's limits, and telling readers that come too late."""

from time import time

import pytest

from cubecast.errors import BadInput, Forgotten
from cubecast.log.retention import STEP
from cubecast.log.store import Store
from cubecast.net.settings.config import NodeConfig, Retention
from support.logs import batch, everything, fill, payloads
from support.running import run, until


def test_too_many_messages_are_forgotten_and_readers_told_which(tmp_path):
    async def story():
        store = await Store.open(tmp_path, retention={"a": Retention(max_messages=10)})
        await fill(store, "a", 10)
        await fill(store, "b", 10)
        await until(lambda: store.bounds("a")[0] > 1)
        assert store.bounds("a") == (29, 40), "whole batches, so that at least 10 messages are left"
        assert store.bounds("b") == (1, 40)
        with pytest.raises(Forgotten, match="the first one is 29") as told:
            await store.read("a", 28, 1000)
        assert told.value.args[1] == 29
        assert len(payloads(await everything(store, "a"))) == 12
        assert store.cut("a") == {0: (0, 16), 1: (0, 12), 2: (0, 12)}, "what was logged is known, kept or not"
        await store.close()
        again = await Store.open(tmp_path)
        assert again.bounds("a") == (29, 40)
        assert again.append("a", *batch(0, 17, 1), 0.0) == 41
        await again.close()

    run(story())


def test_large_and_old_topics_shrink(tmp_path):
    async def story():
        rules = {"large": Retention(max_bytes=5 * 460), "old": Retention(max_age=100.0)}
        store = await Store.open(tmp_path, retention=rules)
        await fill(store, "large", 20, count=4, size=97)
        store.append("old", *batch(0, 1, 1), time() - 200)
        store.append("old", *batch(0, 2, 1), time() - 150)
        store.append("old", *batch(0, 3, 1), time())
        await until(lambda: store.bounds("old")[0] > 1 and store.bounds("large")[0] > 1)
        assert store.bounds("old") == (3, 3)
        assert store.bounds("large") == (61, 80)
        await store.close()

    run(story())


def test_a_topic_far_too_large_is_forgotten_in_many_small_steps(tmp_path):
    async def story():
        store = await Store.open(tmp_path)
        await fill(store, "a", 3 * STEP, count=1)
        await store.close()
        store = await Store.open(tmp_path, retention={">": Retention(max_messages=1)})
        steps = set()
        await until(lambda: steps.add(store.bounds("a")[0]) or store.bounds("a")[0] == 3 * STEP)
        assert len(steps) >= 3
        assert len(await everything(store, "a")) == 1
        await store.close()

    run(story())


def test_the_first_pattern_that_selects_a_topic_counts(tmp_path):
    async def story():
        rules = {"a.keep": Retention(), "a.*": Retention(max_messages=4)}
        store = await Store.open(tmp_path, retention=rules)
        await fill(store, "a.keep", 5)
        await fill(store, "a.b", 5)
        await until(lambda: store.bounds("a.b")[0] == 17)
        assert store.bounds("a.keep") == (1, 20)
        await store.close()

    run(story())


def test_rules_are_for_patterns():
    with pytest.raises(BadInput, match="nothing follows it"):
        NodeConfig(retention={">.a": Retention(max_messages=1)})
