"""Producers that number what they publish, so that what was published is not published again.

A producer is a name; a client that publishes under it says which epoch of it this is, and registers with every member.
From then on members take nothing from connections that registered with an older epoch, and from no other connection of
the same one: what such a connection has under way is either accepted before the answer or never. The answer has the
last number the node's log has on each topic. How a producer gets from these answers to what it may publish is in
`api/producer.py`.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from cubecast.errors import BadInput, Fenced, NotKept, OutcomeUnknown
from cubecast.ids import Topic
from cubecast.net.node.durable.recorder import Recorder
from cubecast.net.port.port import ProducerState
from cubecast.patterns import check_topic

MOST_PRODUCERS = 10_000
"""Whose epochs are remembered; of more, those asked about longest ago are forgotten."""
MOST_TOPICS = 1_000
MOST_NAME = 200


class Producers:
    def __init__(self) -> None:
        self._epochs: OrderedDict[str, tuple[int, Callable[[str], None]]] = OrderedDict()

    async def register(
        self,
        name: str,
        epoch: int,
        topics: Sequence[Topic],
        on_fenced: Callable[[str], None],
        recorder: Recorder | None,
        accepted: Callable[[Topic], int],
        status: Callable[[], dict[str, Any]],
    ) -> ProducerState:
        """Fenced when a newer epoch is known; the connection that published before is told through its `on_fenced`."""
        if not name or len(name) > MOST_NAME or len(topics) > MOST_TOPICS:
            raise BadInput(f"a producer has a name of up to {MOST_NAME} letters, and up to {MOST_TOPICS} topics")
        if recorder is None:
            raise NotKept("this node keeps no log, and what was published before is known from logs")
        self._take_over(name, epoch, on_fenced)
        kept = [topic for topic in map(check_topic, topics) if recorder.records(topic)]
        for topic in kept:
            if accepted(topic):
                with suppress(OutcomeUnknown):  # the log tells
                    await recorder.durable(topic, accepted(topic))
        numbers = await recorder.store.last_numbers(name, kept)
        told = status()
        members = [one for one in told.get("members", ()) if one["alive"] and one["node"] != told["node"]]
        return ProducerState(numbers, [one["address"] for one in members], bool(told.get("settled", True)))

    def _take_over(self, name: str, epoch: int, on_fenced: Callable[[str], None]) -> None:
        known, tell = self._epochs.get(name, (epoch, on_fenced))
        if epoch < known:
            raise Fenced(f"producer {name} is in epoch {known} already; epoch {epoch} publishes nothing any more")
        self._epochs[name] = epoch, on_fenced
        self._epochs.move_to_end(name)
        if tell is not on_fenced:
            tell(f"producer {name} registered elsewhere, with epoch {epoch}")
        if len(self._epochs) > MOST_PRODUCERS:
            self._epochs.popitem(last=False)

    def forget(self, on_fenced: Callable[[str], None]) -> None:
        """The connection is gone; the epochs count."""
        for name, (epoch, tell) in self._epochs.items():
            if tell is on_fenced:
                self._epochs[name] = epoch, _nobody


def _nobody(reason: str) -> None:
    pass
