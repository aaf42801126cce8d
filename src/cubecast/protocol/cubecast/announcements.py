"""Announcements that are too large for one packet: cut by who sends them, put together by who gets them.

A node with very many topics may have something of a faulty source on each of them. Nothing is concluded from a part of
an announcement: what it does not name would count as lost.
"""

from collections.abc import Iterator, Sequence

from cubecast.ids import NodeId
from cubecast.protocol.cubecast.packets import Settle, SettlePart
from cubecast.protocol.cubecast.vocabulary import Holding

MOST_PARTS = 4096


def split(packet: Settle, most_bytes: int) -> list[Settle | SettlePart]:
    """The announcement as it is, or in pieces of so many bytes of holdings, as `_weight` estimates.

    Only the last piece asks for an answer.
    """
    shares = list(_shares(packet.holdings, most_bytes))
    if len(shares) == 1:
        return [packet]
    last = len(shares) - 1
    return [
        SettlePart(
            packet.by,
            packet.dead,
            packet.version,
            packet.asking and part == last,
            packet.faulty,
            part,
            len(shares),
            share,
        )
        for part, share in enumerate(shares)
    ]


def _shares(holdings: Sequence[Holding], most_bytes: int) -> Iterator[tuple[Holding, ...]]:
    start, size = 0, 0
    for index, holding in enumerate(holdings):
        more = _weight(holding)
        if size + more > most_bytes and index > start:
            yield tuple(holdings[start:index])
            start, size = index, 0
        size += more
    yield tuple(holdings[start:])


def _weight(holding: Holding) -> int:
    """Bytes it takes at most, if its counters are as large as they can be."""
    return 32 + 4 * len(holding.topic) + 20 * len(holding.ranges)


class Pieces:
    """Per node, those of its newest announcement."""

    def __init__(self) -> None:
        self._pieces: dict[NodeId, dict[int, SettlePart]] = {}

    def add(self, sender: NodeId, packet: SettlePart) -> Settle | None:
        """The announcement, when this was the last piece that was missing."""
        pieces = self._pieces.setdefault(sender, {})
        known = next(iter(pieces.values()), packet)
        if (packet.by, packet.version) < (known.by, known.version):
            return None
        if (packet.by, packet.version, packet.parts) != (known.by, known.version, known.parts):
            pieces.clear()
        pieces[packet.part] = packet
        if len(pieces) < packet.parts:
            return None
        del self._pieces[sender]
        holdings = tuple(holding for part in range(packet.parts) for holding in pieces[part].holdings)
        asking = any(piece.asking for piece in pieces.values())
        return Settle(packet.by, packet.dead, packet.version, asking, packet.faulty, holdings)

    def clear(self) -> None:
        self._pieces.clear()
