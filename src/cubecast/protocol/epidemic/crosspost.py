"""CrosspostFlood and SimpleFlood over StaN's overlays (M. Matos, thesis, §3.2.4): messages tagged with several topics.

How it works. A message of several topics travels with their names. A process that gets it for the first time delivers
it in each of the topics that it subscribes to, and sends it once to every process of the union of these topics' views:
where topics share links, and StaN makes them, one copy takes the place of several. SimpleFlood, the baseline, floods
every topic apart. Both are for the laboratory: what they would cost live nodes is decision 0066.

| thesis, algorithm 3 | here |
| --- | --- |
| Msg(msgId, msgTopics, msgData) | `Crossposted`; the message has an id in each of its topics |
| receivedMessages, lines 4–5 | `Overlay.is_new`, of each topic |
| lines 6–12 | `_on_crossposted` |
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from cubecast.errors import LocalProtocolError, RemoteProtocolError
from cubecast.ids import Counter, Incarnation, MessageId, NodeId, Topic
from cubecast.protocol.contract import Carried, Packet
from cubecast.protocol.effects import Deliver, Effects, Published
from cubecast.protocol.epidemic.stan import Stan
from cubecast.protocol.epidemic.stan_packets import MOST_COUNTER, PACKETS, Gone

MOST_TAGS = 64


@dataclass(slots=True)
class Crossposted(Packet):
    """The same payloads in several topics; of each, its name and the number that the first of them has there."""

    source: NodeId
    incarnation: Incarnation
    topics: tuple[tuple[Topic, Counter], ...]
    payloads: tuple[bytes, ...]
    publication: ClassVar[bool] = True
    bundle: ClassVar[bool] = True

    def carried(self) -> Sequence[Carried]:
        return [Carried(topic, message, len(self.payloads)) for topic, message in self.messages()]

    def messages(self) -> list[tuple[Topic, MessageId]]:
        """Of each topic, the id of the first message in it."""
        return [(topic, MessageId(self.source, self.incarnation, counter)) for topic, counter in self.topics]


CROSSPOST_PACKETS = (*PACKETS, Crossposted)


class CrosspostFlood(Stan):
    def crosspost(self, now: float, topics: Sequence[Topic], payloads: Sequence[bytes]) -> Effects:
        self._check_tags(topics)
        if len(topics) == 1:
            return self.publish(now, topics[0], payloads)
        tags = tuple((topic, self._published.get(topic, 0) + 1) for topic in topics)
        for topic, first in tags:
            self._published[topic] = first + len(payloads) - 1
            self._effects.append(Published(topic, first, len(payloads), (), payloads))
        packet = Crossposted(self.node, self.incarnation, tags, tuple(payloads))
        self._on_crossposted(self.node, packet)
        return self._take()

    def _check_tags(self, topics: Sequence[Topic]) -> None:
        if not 0 < len(topics) <= MOST_TAGS or len(set(topics)) < len(topics):
            raise LocalProtocolError(f"a message has 1 to {MOST_TAGS} different topics; nothing was sent")
        for topic in topics:
            if topic not in self.overlays:
                raise LocalProtocolError(f"{topic!r} is not subscribed here: only members publish; nothing was sent")

    def on_packet(self, now: float, sender: NodeId, packet: Any) -> Effects:
        if type(packet) is not Crossposted:
            return super().on_packet(now, sender, packet)
        if not _is_right(packet):
            raise RemoteProtocolError("a Crossposted that no member of an overlay sends")
        self._on_crossposted(sender, packet)
        return self._take()

    def _on_crossposted(self, sender: NodeId, packet: Crossposted) -> None:
        mine = [(topic, message) for topic, message in packet.messages() if topic in self.overlays]
        if not mine:  # the sender has this process in a view where it is no member
            for topic, _ in packet.topics:
                self._send([sender], Gone(topic))
        for topic, message in mine:
            self.overlays[topic].check_room(message)
        count = len(packet.payloads)
        new = [(topic, message) for topic, message in mine if self.overlays[topic].is_new(message, count)]
        union = dict.fromkeys(one for topic, _ in new for one in self.overlays[topic].neighbours() if one != sender)
        self._send(union, packet)
        self._effects += [Deliver(topic, message, packet.payloads) for topic, message in new]


class SimpleFlood(CrosspostFlood):
    """A flood for each topic of a message."""

    def crosspost(self, now: float, topics: Sequence[Topic], payloads: Sequence[bytes]) -> Effects:
        self._check_tags(topics)
        return [effect for topic in topics for effect in self.publish(now, topic, payloads)]

    def on_packet(self, now: float, sender: NodeId, packet: Any) -> Effects:
        return Stan.on_packet(self, now, sender, packet)


def _is_right(packet: Crossposted) -> bool:
    named = packet.source >= 0 and packet.incarnation >= 0 and 0 < len(packet.payloads) < MOST_COUNTER
    tags = dict(packet.topics)
    apart = len(tags) == len(packet.topics) and 1 < len(tags) <= MOST_TAGS
    return named and apart and all(1 <= counter < MOST_COUNTER for counter in tags.values())
