"""What a node keeps and says for one client has an end, and the client is told where it is."""

from cubecast.errors import NotKept
from cubecast.net.gateway import client_subscriptions
from cubecast.net.gateway.gateway import MOST_STATUS, Gateway
from cubecast.net.gateway.messages import (
    Ended,
    Resumed,
    StatusReply,
    StatusRequest,
    Subscribe,
    Unsubscribe,
    decode_from_node,
    encode,
)
from cubecast.net.node.status import MOST_SHOWN, fitting
from cubecast.net.port.port import FromBeginning, FromCut
from support.bus import Bus
from support.running import run, until


class Wire:
    host = label = "a client"
    is_full = False

    def __init__(self) -> None:
        self.sent = []

    def send(self, frame):
        self.sent.append(decode_from_node(frame))

    def said(self, kind):
        return [message for message in self.sent if isinstance(message, kind)]


class Keeping:
    """The port of a node with a log, of which only subscriptions are asked."""

    def __init__(self) -> None:
        self.opened = []

    def subscribe(self, pattern, sink, since=None):
        if isinstance(since, FromBeginning):
            raise NotKept("nothing is kept")
        self.opened.append((pattern, since))
        return len(self.opened)

    def unsubscribe(self, number): ...

    def forget_producer(self, on_fenced): ...


def test_a_subscription_too_many_is_refused_and_the_others_stay():
    async def main():
        port, wire = Bus().port(), Wire()
        gateway = Gateway(port, wire, subscriptions=3)
        gateway.on_frames([encode(Subscribe(number, f"t{number}")) for number in range(5)])
        assert [message.subscription for message in wire.said(Ended)] == [3, 4] and len(port.wires) == 3
        assert wire.said(Ended)[0].reason == "a client may have 3 subscriptions here, and has them"
        gateway.on_frames([encode(Unsubscribe(0)), encode(Subscribe(3, "t3"))])
        assert len(wire.said(Ended)) == 2 and len(port.wires) == 3
        gateway.close()

    run(main())


def test_a_client_shares_what_comes_in_rather_than_subscribing_to_it_again_and_again():
    """Each message went to all ten thousand of them, which took a node all its time."""

    async def main():
        port, wire = Bus().port(), Wire()
        gateway = Gateway(port, wire, alike=2)
        gateway.on_frames([encode(Subscribe(number, "t")) for number in range(3)])
        (ended,) = wire.said(Ended)
        assert ended.subscription == 2 and ended.reason.endswith("share what comes in on t")
        gateway.on_frames([encode(Subscribe(3, "u")), encode(Unsubscribe(0)), encode(Subscribe(4, "t"))])
        assert len(wire.said(Ended)) == 1
        gateway.close()

    run(main())


def test_the_cuts_of_a_client_are_counted_while_its_subscriptions_are_open(monkeypatch):
    """Each entry is kept for as long as the subscription is: a few hundred full cuts would fill a node's memory."""
    monkeypatch.setattr(client_subscriptions, "MOST_KNOWN", 5)
    cut = [("t", source, 0, 1) for source in range(3)]

    async def main():
        port, wire = Keeping(), Wire()
        gateway = Gateway(port, wire)
        gateway.on_frames([encode(Subscribe(1, "t", FromCut(cut))), encode(Subscribe(2, "t", FromCut(cut)))])
        (ended,) = wire.said(Ended)
        assert ended.subscription == 2 and "may name 5 publishers" in ended.reason
        gateway.on_frames([encode(Subscribe(3, "t", FromCut(cut, resumes=True)))])
        assert wire.said(Resumed) == [Resumed(3, is_complete=False)], "live with a gap rather than not at all"
        gateway.on_frames([encode(Unsubscribe(1)), encode(Subscribe(4, "t", FromCut(cut, resumes=True)))])
        assert wire.said(Resumed)[1:] == [Resumed(4, is_complete=True)]
        gateway.on_frames([encode(Subscribe(5, "t", FromBeginning()))])
        assert wire.said(Ended)[1:] == [Ended(5, "nothing is kept", "NotKept")]
        assert [since for _, since in port.opened] == [FromCut(cut), None, FromCut(cut, resumes=True)]
        gateway.close()

    run(main())


def test_however_much_there_is_to_say_of_a_node_the_most_important_is_said():
    topics = {f"topic-{number}": {"publishers": [{"lag": 0, "source": n} for n in range(99)]} for number in range(1000)}
    status = {"node": 3, "members": [1, 2], "topics": topics, "topics_in_all": 20_000, "held": list(range(1000))}

    async def main():
        port, wire = Bus().port(), Wire()

        async def told():
            return status

        port.status = told
        gateway = Gateway(port, wire)
        gateway.on_frames([encode(StatusRequest(1))])
        await until(lambda: wire.sent)
        (reply,) = wire.said(StatusReply)
        said = reply.status
        assert (said["node"], said["members"], said["topics_in_all"]) == (3, [1, 2], 20_000)
        assert 100 <= len(said["topics"]) < MOST_SHOWN and said["topics"].keys() <= topics.keys()
        assert len(encode(reply)) <= MOST_STATUS + 100
        gateway.close()

    run(main())
    assert "error" in fitting({"members": ["x" * 100] * 1000}, 1000)
    assert fitting(status, 1 << 30) is status
