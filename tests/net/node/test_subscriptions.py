"""Which subscribers hear of which topic."""

from collections.abc import Sequence

import pytest

from cubecast.errors import BadInput, Closed, CubecastError
from cubecast.ids import MessageId
from cubecast.net.node.subscriptions import Subscriptions
from cubecast.net.port.port import GapNotice

FIRST = MessageId(0, 0, 1)


class Recorder:
    def __init__(self) -> None:
        self.heard: list[object] = []

    def on_batch(self, topic: str, first: MessageId, payloads: Sequence[bytes]) -> None:
        self.heard.append((topic, *payloads))

    def on_ready(self) -> None:
        self.heard.append("ready")

    def on_gap(self, gap: GapNotice) -> None:
        self.heard.append(gap.reason)

    def on_end(self, error: CubecastError | None) -> None:
        self.heard.append(error)


def test_a_topic_is_shared_and_left_by_the_last():
    subscriptions = Subscriptions()
    ann, bob = Recorder(), Recorder()
    one, two = subscriptions.open("t", ann), subscriptions.open("t", bob)
    assert subscriptions.attach(one, "t") and not subscriptions.attach(two, "t"), "only the first tells the machine"
    subscriptions.confirmed("t")
    subscriptions.deliver("t", FIRST, [b"x"])
    subscriptions.close(one)
    assert subscriptions.names("t")
    subscriptions.deliver("t", FIRST, [b"y"])
    subscriptions.close(two)
    subscriptions.forget_unheard(["t", "unheard of"])
    assert not subscriptions.names("t") and subscriptions.topics == []
    assert ann.heard == ["ready", ("t", b"x"), None]
    assert bob.heard == ["ready", ("t", b"x"), ("t", b"y"), None]
    assert subscriptions.close(two) is None


def test_wildcards_hear_what_they_match_once_it_comes_up():
    subscriptions = Subscriptions()
    ann = Recorder()
    subscriptions.open("a.*", ann)
    assert subscriptions.interest.patterns == ("a.*",)
    subscriptions.attach_matching("a.b.c")
    subscriptions.attach_matching("a.b")
    subscriptions.attach_matching("a.b")
    subscriptions.confirmed("a.b")
    subscriptions.interest_known({"a.*"})
    subscriptions.deliver("a.b", FIRST, [b"x"])
    subscriptions.deliver("a.b.c", FIRST, [b"y"])
    subscriptions.gap(GapNotice("a.b", (), "lost"))
    subscriptions.end_all(Closed("over"))
    assert ann.heard[:3] == ["ready", ("a.b", b"x"), "lost"]
    assert isinstance(ann.heard[3], Closed)


def test_one_slow_reader_is_enough_to_pause_a_topic():
    subscriptions = Subscriptions()
    numbers = [subscriptions.open("t", Recorder()) for _ in range(2)]
    for number in numbers:
        subscriptions.attach(number, "t")
    assert list(subscriptions.pause(numbers[1])) == ["t"]
    assert subscriptions.is_paused("t") and subscriptions.is_any_paused
    subscriptions.pause(numbers[0])
    subscriptions.close(numbers[1])
    assert subscriptions.is_paused("t"), "the other one still is"
    subscriptions.resume(numbers[0])
    assert not subscriptions.is_paused("t") and not subscriptions.is_any_paused
    with pytest.raises(BadInput):
        subscriptions.open("a..b", Recorder())
