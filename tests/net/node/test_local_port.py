"""A node's own port: what it asks of the machine and of the driver."""

import pytest

from cubecast.errors import Closed
from cubecast.ids import MessageId
from cubecast.net.gateway.gateway import MOST_STATUS
from cubecast.net.gateway.messages import encode
from cubecast.net.links.turn import Turn
from cubecast.net.node.driver import Driver
from cubecast.net.node.local_port import LocalPort
from cubecast.net.node.status import MOST_SHOWN
from cubecast.net.settings.config import NodeConfig
from cubecast.protocol.cubecast import Cubecast, Parameters
from cubecast.protocol.cubecast.publication_packets import Publication
from cubecast.protocol.families import find
from support.hosts import Alone
from support.live_codec import encode as packed
from support.running import run


class Quiet:
    def on_batch(self, topic, first, payloads): ...
    def on_ready(self): ...
    def on_gap(self, gap): ...
    def on_end(self, error): ...


def a_port(held=None, through=None):
    ignore = [].append
    port = LocalPort(NodeConfig(), Alone(hold_back=held or ignore, let_through=through or ignore))
    port.open()
    return port


def test_a_topic_that_begins_while_its_reader_is_full_is_held_back_too():
    async def main():
        held, through = [], []
        port = a_port(held.append, through.append)
        wild = port.subscribe("a.*", Quiet())
        port.on_interest_matched("a.b")
        assert held == []
        port.pause(wild)
        port.on_interest_matched("a.c")
        assert held == ["a.b", "a.c"]
        port.resume(wild)
        assert through == ["a.b", "a.c"]

    run(main())


def test_a_wildcard_hears_of_topics_that_are_named_at_its_node_later():
    heard = []

    class Listening(Quiet):
        def on_batch(self, topic, first, payloads, logged=None):
            heard.append(topic)

    async def main():
        port = a_port()
        port.subscribe("a.*", Listening())
        port.subscribe("a.b", Quiet())
        port.on_deliver("a.b", MessageId(0, 0, 1), [b"x"])
        assert heard == ["a.b"]

    run(main())


def test_what_a_port_says_of_itself_is_bounded():
    async def main():
        port = a_port()
        for number in range(3 * MOST_SHOWN):
            port.subscribe(f"in.{number}" + "x" * 100, Quiet())
            port.publish(f"out.{number}" + "x" * 100, [b"x"])
        said = port.describe()
        assert len(encode(said)) < MOST_STATUS // 2
        assert said["subscribed_in_all"] == said["outgoing_in_all"] == 3 * MOST_SHOWN

    run(main())


def test_a_bad_publication_that_had_to_wait_does_not_fail_its_reader():
    async def main():
        machine = Cubecast(1, Parameters(1, founders=0b11))
        driver = Driver(machine, find("cubecast"), a_port(), lambda *_: None, Turn(), deferral_budget=1000)
        driver.hold_back("t")
        unaddressed = Publication(0, (), "t", MessageId(0, 0, 1), (b"x",), b"\x01", (), (), (), 0)
        driver.packets(0, [packed(unaddressed)])
        assert driver.deferred.counts == {"t": 1}
        driver.let_through("t")
        assert driver.deferred.counts == {}

    run(main())


def test_asking_about_a_topic_leaves_nothing_behind():
    async def main():
        port = a_port()
        assert port.publish("t", ()) == 0
        await port.stable("t", 0)
        assert port.has_room("t") and port.describe()["outgoing_in_all"] == 0
        port.shut(None)
        with pytest.raises(Closed):
            port.publish("t", ())

    run(main())
