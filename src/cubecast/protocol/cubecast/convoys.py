"""Publications that leave for the same node in the same step share a packet."""

from collections.abc import Iterator, Sequence

from cubecast.ids import MessageId, NodeId, Topic
from cubecast.protocol.cubecast.packets import Convoy, Part
from cubecast.protocol.cubecast.publication_packets import Publication
from cubecast.protocol.cubecast.vocabulary import Life
from cubecast.protocol.effects import Effects, Send

_HEAD_BYTES = 64  # about what a publication without payload takes; so does each of its dependencies


def join(effects: Effects, by: int, dead: tuple[Life, ...], most_bytes: int) -> Effects:
    """The same effects, with a convoy at their end for every node that would get several publications of a topic."""
    queues: dict[tuple[NodeId, Topic], list[Publication]] = {}
    for effect in effects:
        if type(effect) is Send and type(effect.packet) is Publication:
            for peer in effect.peers:
                queues.setdefault((peer, effect.packet.topic), []).append(effect.packet)
    crowded = {key: queue for key, queue in queues.items() if len(queue) > 1}
    if not crowded:
        return effects
    joined: Effects = []
    for effect in effects:
        if type(effect) is Send and type(effect.packet) is Publication:
            peers = tuple(peer for peer in effect.peers if (peer, effect.packet.topic) not in crowded)
            if peers:
                joined.append(Send(peers, effect.packet))
        else:
            joined.append(effect)
    return joined + list(_convoys(crowded, by, dead, most_bytes))


def _convoys(
    crowded: dict[tuple[NodeId, Topic], list[Publication]], by: int, dead: tuple[Life, ...], most_bytes: int
) -> Iterator[Send]:
    """Nodes that get the same publications get the same packets."""
    alike: dict[tuple[Topic, tuple[MessageId, ...]], list[NodeId]] = {}
    for (peer, topic), queue in crowded.items():
        alike.setdefault((topic, tuple(packet.message for packet in queue)), []).append(peer)
    for (topic, _), peers in alike.items():
        for load in _loads(crowded[peers[0], topic], most_bytes):
            parts = tuple(Part.of(packet) for packet in load)
            yield Send(tuple(peers), load[0] if len(load) == 1 else Convoy(by, dead, topic, parts))


def _loads(queue: Sequence[Publication], most_bytes: int) -> Iterator[Sequence[Publication]]:
    """Cut where the next one would make the packet too large."""
    start, size = 0, 0
    for index, packet in enumerate(queue):
        more = _HEAD_BYTES * (1 + len(packet.dependencies)) + sum(len(payload) for payload in packet.payloads)
        if size + more > most_bytes and index > start:
            yield queue[start:index]
            start, size = index, 0
        size += more
    yield queue[start:]
