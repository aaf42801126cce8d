"""The log of a node and what it delivers now are one sequence: a subscriber gets it from its beginning on."""

from cubecast.net.port.port import Run, from_cut
from support.memory_log import MemoryLog
from support.replays import LoggingNode, caught_up, turns
from support.running import run


def test_a_late_subscriber_gets_what_was_and_then_what_is():
    async def main():
        node = LoggingNode(MemoryLog(), recent=0)
        for _ in range(10):
            node.deliver("a", count=3)
        reader = node.subscribe("a", "beginning")
        for source in range(5):
            node.deliver("a", source)
            await turns(1)
        await caught_up([reader])
        node.deliver("a", 7)
        assert reader.entries == node.sequence and not reader.gaps
        assert reader.times == node.times == sorted(node.times)

    run(main())


def test_each_way_to_say_where():
    async def main():
        node = LoggingNode(MemoryLog(), recent=0)
        for source in (0, 1, 0, 2, 1, 0):
            node.deliver("a", source, 2)
        known = {("a", 0, 0): 3, ("a", 1, 0): 2}
        since = {"beginning": 0, "now": 12, 1: 0, 5: 4, 13: 12, node.times[6]: 6}
        readers = {begin: node.subscribe("a", begin) for begin in since}
        behind_cut = node.subscribe("a", known)
        node.deliver("a", 2)
        await caught_up([*readers.values(), behind_cut])
        for begin, place in since.items():
            assert readers[begin].entries == node.sequence[place:], begin
        unknown = [one for one in node.sequence if one.id.counter > known.get(("a", one.id.source, 0), 0)]
        assert behind_cut.entries == unknown

    run(main())


def test_a_pattern_gets_its_topics_in_the_order_the_node_delivered_them():
    async def main():
        node = LoggingNode(MemoryLog(turns=2), recent=0)
        for number in range(200):
            node.deliver(f"a.{number % 7}", number % 3, 1 + number % 2)
        node.deliver("b")
        reader = node.subscribe("a.*", "beginning", pause_after=5)
        half_way = node.subscribe("a.*", node.times[100])
        for number in range(50):
            node.deliver(f"a.{number % 9}", 5)
            await turns(1)
        await caught_up([reader, half_way])
        assert reader.entries == node.expected("a.*", 0)
        first = node.times.index(node.times[100])
        assert half_way.entries == node.expected("a.*", first)

    run(main())


def test_a_slow_reader_holds_nobody_back_and_misses_nothing():
    held = []

    async def main():
        node = LoggingNode(MemoryLog(), recent=200)
        node.port._hold_back = held.append
        node.deliver("a")
        reader = node.subscribe("a", "now")
        await caught_up([reader])
        reader.pause()
        for _ in range(100):
            node.deliver("a", 1, 3)
        await turns()
        assert reader.got == []
        await caught_up([reader])
        assert reader.entries == node.sequence[1:]

    run(main())
    assert held == []


def test_what_retention_took_away_is_a_gap_that_names_the_offsets():
    async def main():
        log = MemoryLog()
        node = LoggingNode(log, recent=0)
        for _ in range(10):
            node.deliver("a", count=2)
        log.forget("a", 8)
        asked = node.subscribe("a", 3)
        beginning = node.subscribe("a", "beginning")
        await caught_up([asked, beginning])
        assert [(gap.offsets, gap.count) for gap in asked.gaps] == [((3, 7), 5)]
        assert asked.got[1:] == node.sequence[7:] == beginning.got

    run(main())


def test_what_is_damaged_and_what_the_node_missed_are_gaps_in_their_places():
    async def main():
        log = MemoryLog()
        node = LoggingNode(log, recent=0)
        for number in range(10):
            node.deliver("a", count=2, missed=3 if number == 7 else 0)
        log.damage["a"] = [(5, 6)]
        reader = node.subscribe("a", "beginning")
        await caught_up([reader])
        places = [place for place, one in enumerate(reader.got) if one in reader.gaps]
        assert places == [4, 4 + 1 + 8]
        assert reader.gaps[0].offsets == (5, 6)
        assert reader.gaps[1].runs == (Run(0, 0, 15, 17),)
        assert reader.entries == node.sequence[:4] + node.sequence[6:]

    run(main())


def test_behind_a_cut_nothing_is_delivered_that_may_have_caused_what_is_known():
    async def main():
        node = LoggingNode(MemoryLog(), recent=0)
        node.deliver("a", 3, 2)  # of somebody who is not in the cut, before something that is
        node.deliver("a", 1, 2)
        node.deliver("a", 4)
        node.deliver("a", 2, 2)
        node.deliver("a", 5)  # behind all of it
        node.deliver("a", 1)
        known = {("a", 1, 0): 2, ("a", 2, 0): 1}
        strict = node.subscribe("a", from_cut(known, is_causal=True))
        open_handed = node.subscribe("a", known)
        await caught_up([strict, open_handed])
        assert [one.id for one in strict.entries] == [(2, 0, 2), (5, 0, 1), (1, 0, 3)]
        assert [gap.runs for gap in strict.gaps] == [(Run(3, 0, 1, 2), Run(4, 0, 1, 1))]
        assert isinstance(strict.got[0], type(strict.gaps[0])), "before anything else"
        assert len(open_handed.entries) == 6 and not open_handed.gaps

    run(main())


class Interrupted(MemoryLog):
    """Something happens while the disk is asked, once."""

    happens = None

    async def read(self, topic, offset, most_bytes):
        happens, self.happens = self.happens, None
        if happens is not None:
            happens()
        return await super().read(topic, offset, most_bytes)


def test_what_comes_while_one_topic_is_read_does_not_overtake_another_topic():
    async def main():
        log = Interrupted()
        node = LoggingNode(log, recent=0)

        def meanwhile():
            node.deliver("a")
            node.deliver("b")

        node.deliver("b")
        log.happens = meanwhile
        reader = node.subscribe(">", "beginning")
        await caught_up([reader])
        assert [entry.topic for entry in reader.entries] == ["b", "a", "b"]
        assert reader.entries == node.sequence

    run(main())
