"""Wildcards at a node: what the machine is told of them, how often, and who hears of what meanwhile."""

import asyncio
from time import process_time

from hypothesis import given
from hypothesis import strategies as st

from cubecast.api.connect import connect
from cubecast.ids import MessageId
from cubecast.net.node.local_port import LocalPort
from cubecast.net.settings.config import NodeConfig
from cubecast.patterns import Selection, matcher
from support.cluster import cluster
from support.hosts import Alone
from support.running import run


class Heard:
    def __init__(self) -> None:
        self.topics, self.is_ready = [], False

    def on_batch(self, topic, first, payloads, logged=None):
        self.topics.append(topic)

    def on_ready(self):
        self.is_ready = True

    def on_gap(self, gap): ...
    def on_end(self, error): ...


class Scene:
    """A port, and what the machine behind it was told to follow."""

    def __init__(self) -> None:
        self.told = []
        self.port = LocalPort(NodeConfig(), Alone(self._call))
        self.port.open()

    def _call(self, name, *arguments):
        if name == "follow":
            self.told.append(arguments[0] and set(arguments[0].patterns))

    def open(self, pattern):
        heard = Heard()
        return heard, self.port.subscribe(pattern, heard)


def in_a_scene(test):
    async def main():
        await test(Scene())

    run(main())


def test_the_machine_is_told_once_a_turn_and_only_what_is_new():
    async def test(scene):
        opened = [scene.open(pattern) for pattern in ("a.*", "b.>", "a.*")]
        assert scene.told == []
        await asyncio.sleep(0)
        assert scene.told == [{"a.*", "b.>"}]
        scene.port.unsubscribe(opened[2][1])
        scene.open("b.>")
        await asyncio.sleep(0)
        assert scene.told == [{"a.*", "b.>"}]
        scene.port.unsubscribe(opened[0][1])
        await asyncio.sleep(0)
        scene.port.subscribing.unsubscribe_all()
        assert scene.told == [{"a.*", "b.>"}, {"b.>"}, None]

    in_a_scene(test)


def test_ready_is_who_the_machine_was_told_of_before_it_knew():
    async def test(scene):
        first, _ = scene.open("a.*")
        await asyncio.sleep(0)
        second, _ = scene.open("b.*")
        scene.port.on_interest_known()
        assert first.is_ready and not second.is_ready
        await asyncio.sleep(0)
        third, _ = scene.open("b.*")
        await asyncio.sleep(0)
        assert not third.is_ready
        scene.port.on_interest_known()
        assert second.is_ready and third.is_ready
        fourth, _ = scene.open("b.*")  # nothing new for the machine, which will say nothing
        await asyncio.sleep(0)
        assert fourth.is_ready

    in_a_scene(test)


def test_who_comes_as_another_goes_hears_of_the_same_topics():
    """The machine never left them, so it says nothing of them."""

    async def test(scene):
        _, going = scene.open("a.*")
        await asyncio.sleep(0)
        scene.port.on_interest_matched("a.b")
        scene.port.on_subscribed("a.b")
        scene.port.unsubscribe(going)
        wider, _ = scene.open("a.>")
        named, number = scene.open("a.b")
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        scene.port.on_deliver("a.b", MessageId(0, 0, 1), [b"x"])
        assert wider.topics == named.topics == ["a.b"] and named.is_ready
        scene.port.unsubscribe(number)
        assert scene.port.describe()["subscribed"] == ["a.b"]

    in_a_scene(test)


def test_in_another_life_nobody_is_ready_before_the_machine_has_asked_again():
    async def test(scene):
        scene.open("a.*")
        await asyncio.sleep(0)
        scene.port.on_interest_known()
        scene.port.on_reincarnated(1)
        late, _ = scene.open("a.*")
        await asyncio.sleep(0)
        assert not late.is_ready
        scene.port.on_interest_known()
        assert late.is_ready

    in_a_scene(test)


def test_a_client_with_very_many_wildcards_does_not_stop_a_node():
    """With 750 of them a node did nothing else for minutes."""

    async def main():
        async with cluster(2) as (one, two), connect(str(two.address)) as client:
            before = process_time()
            opened = [client.subscribe(f"public.*.{number}") for number in range(2000)]
            await opened[-1].ready()
            await one.publish("public.x.1999", "heard")
            assert (await opened[-1].next(30)).data == "heard"
            for subscription in opened:
                subscription.close()
            assert process_time() - before < 20.0

    run(main())


words = st.sampled_from(["a", "b", "_a", "*"])
patterns = st.builds(
    lambda some, rest: [*some, *rest], st.lists(words, min_size=1, max_size=3), st.sampled_from([[], [">"]])
)
topics = st.lists(st.sampled_from(["a", "b", "c", "_a"]), min_size=1, max_size=4)


@given(st.lists(patterns, max_size=4), topics)
def test_many_patterns_select_what_one_of_them_selects(many, topic):
    texts, name = [".".join(one) for one in many], ".".join(topic)
    assert Selection(texts)(name) is any(matcher(text)(name) for text in texts)
