"""StaN: one overlay per topic, which come to share links (M. Matos, thesis, chapter 3), and floods over them.

How it works. A process gives every other a weight that does not depend on the topic. In each topic it keeps a view of
fixed size and, once per period, sends a walk through the overlay that brings back ids of members; the lightest stay in
the view. Topics with common members so come to hold the same neighbours: fewer connections, overlays as random as
before. Messages are flooded in their topic's overlay: who gets one for the first time sends it on (infect and die).

| thesis, algorithm 2 | here |
| --- | --- |
| every δ, lines 1–4 | `on_timer`, `_walk` |
| CollectWalk, lines 5–13 | `_on_walk` |
| CollectReply, lines 14–17 | `_on_reply` |
| Weight(q) | `stan_overlay.weight` |

Added: repair (`_repair`), joining (`_choose_members`), and what tells others that links begin and end.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from cubecast.errors import LocalProtocolError
from cubecast.ids import Counter, Incarnation, MessageId, NodeId, Topic
from cubecast.protocol.contract import Handlers
from cubecast.protocol.effects import Deliver, Effects, Published, Send, SetTimer, Subscribed, Unsubscribed
from cubecast.protocol.epidemic.stan_overlay import LEAST_VIEW, Overlay, view_size, weight
from cubecast.protocol.epidemic.stan_packets import (
    Adopt,
    CollectReply,
    CollectWalk,
    Flooded,
    Given,
    Gone,
    Linked,
    Member,
    OfTopic,
    Pin,
    Seek,
    Unlinked,
    Unpin,
    check_packet,
)
from cubecast.protocol.parameters import check_parameters, parameter

ROUND = "round"


@dataclass(frozen=True)
class StanParameters:
    ttl: int = parameter(4, "hops of a walk after the first", least=0, most=30)
    period: float = parameter(1000.0, "between two walks", live=1.0, above=0, unit="time")
    repair: bool = parameter(True, "processes that are in at most one view ask to be pinned; false: as printed")

    def __post_init__(self) -> None:
        check_parameters(self)


class Stan(Handlers):
    def __init__(
        self,
        node: NodeId,
        peers: Iterable[NodeId],
        parameters: StanParameters,
        rng: Random,
        *,
        incarnation: Incarnation = 0,
        views: Mapping[Topic, Sequence[NodeId]] | None = None,
    ) -> None:
        self.node = node
        self.incarnation = incarnation
        self.overlays = {topic: Overlay(view) for topic, view in (views or {}).items()}
        self._peers = dict.fromkeys(peer for peer in peers if peer != node)
        """Processes not held faulty."""
        self._parameters = parameters
        self._rng = rng
        self._published: dict[Topic, Counter] = {}
        self._effects: Effects = []

    # -- rounds ------------------------------------------------------------------------------------------------------

    def on_start(self, now: float) -> Effects:
        for topic, overlay in self.overlays.items():
            self._send(overlay.view, Linked(topic))
        self._effects.append(SetTimer(ROUND, now + self._rng.random() * self._parameters.period))
        return self._take()

    def on_timer(self, now: float, timer: Hashable) -> Effects:
        if timer == ROUND:
            for topic, overlay in self.overlays.items():
                if self._parameters.repair:
                    self._repair(topic, overlay)
                self._walk(now, topic, overlay)
            self._effects.append(SetTimer(ROUND, now + self._parameters.period))
        elif isinstance(timer, tuple) and timer[-1] in self.overlays:
            self._choose_members(timer[-1], self.overlays[timer[-1]])
        return self._take()

    def _repair(self, topic: Topic, overlay: Overlay) -> None:
        # DEVIATION stan algorithm 2: walks find only who is in a view, so a process everybody replaced is lost for
        # good. Who is in at most one view has itself pinned by its lightest neighbour, until it is in more.
        if len(overlay.incoming) > 1 or not overlay.view:
            if overlay.keeper is not None:
                self._send([overlay.keeper], Unpin(topic))
                overlay.keeper = None
        elif overlay.keeper is None:
            overlay.keeper = min(overlay.view, key=self._weight)
            self._send([overlay.keeper], Pin(topic))

    def _walk(self, now: float, topic: Topic, overlay: Overlay) -> None:
        if overlay.view:
            self._send([self._pick(overlay.view)], CollectWalk(self.node, topic, self._parameters.ttl, ()))
        elif overlay.joining is None:  # all its neighbours are gone
            self._seek(now, topic, overlay)

    def _on_walk(self, sender: NodeId, packet: CollectWalk, overlay: Overlay) -> None:
        neighbours = overlay.neighbours()
        ids = tuple(dict.fromkeys((*packet.ids, self.node, *neighbours)))
        onward = self._onward(neighbours, packet.source) if packet.ttl > 0 and neighbours else packet.source
        if onward != packet.source:
            self._send([onward], CollectWalk(packet.source, packet.topic, packet.ttl - 1, ids))
        else:
            self._send([packet.source], CollectReply(packet.topic, ids))

    def _onward(self, neighbours: Sequence[NodeId], source: NodeId) -> NodeId:
        # DEVIATION stan algorithm 2, line 11: a walk does not go to its own source, who has nothing new to add.
        place = int(self._rng.random() * len(neighbours))
        return neighbours[place] if neighbours[place] != source else neighbours[(place + 1) % len(neighbours)]

    def _on_reply(self, sender: NodeId, packet: CollectReply, overlay: Overlay) -> None:
        # DEVIATION stan algorithm 2, line 16: a process does not become its own neighbour, as printed it may.
        known = {one for one in packet.ids if one in self._peers}
        most = max(len(overlay.view), LEAST_VIEW)
        before = set(overlay.view)
        overlay.view = sorted(known | before, key=self._weight)[:most]
        self._send([one for one in overlay.view if one not in before], Linked(packet.topic))
        self._send(sorted(before.difference(overlay.view)), Unlinked(packet.topic))

    def _weight(self, other: NodeId) -> int:
        return weight(self.node, other)

    def _pick(self, among: Sequence[NodeId]) -> NodeId:
        return among[int(self._rng.random() * len(among))]

    # -- joining and leaving a topic ---------------------------------------------------------------------------------

    def subscribe(self, now: float, topic: Topic) -> Effects:
        if topic in self.overlays:
            raise LocalProtocolError(f"{topic!r} is subscribed already")
        overlay = self.overlays[topic] = Overlay()
        overlay.confirmed = False
        self._seek(now, topic, overlay)
        return self._take()

    def _seek(self, now: float, topic: Topic, overlay: Overlay) -> None:
        overlay.joining = []
        self._send(list(self._peers), Seek(topic))
        self._effects.append(SetTimer(("join", topic), now + self._parameters.period))

    def _choose_members(self, topic: Topic, overlay: Overlay) -> None:
        """One link of each of k random members is taken over, and one member adds the newcomer to its view: nobody
        loses a link by it."""
        found, overlay.joining = [one for one in overlay.joining or () if one in self._peers], None
        overlay.wanted = view_size(len(found) + 1)
        if found:
            self._send(self._rng.sample(found, overlay.wanted), Adopt(topic, True))
            self._send([self._pick(found)], Adopt(topic, False))
        if not overlay.confirmed:
            overlay.confirmed = True
            self._effects.append(Subscribed(topic))

    def _on_member(self, sender: NodeId, packet: Member, overlay: Overlay) -> None:
        if overlay.joining is not None and sender not in overlay.joining:
            overlay.joining.append(sender)

    def _on_adopt(self, sender: NodeId, packet: Adopt, overlay: Overlay) -> None:
        given = self.node
        if sender not in overlay.view:
            if packet.give and overlay.view:
                place = int(self._rng.random() * len(overlay.view))
                given = overlay.view[place]
                overlay.view[place] = sender
                self._send([given], Unlinked(packet.topic))
            else:
                overlay.view.append(sender)
            self._send([sender], Linked(packet.topic))
        if packet.give:
            self._send([sender], Given(packet.topic, given))

    def _on_given(self, sender: NodeId, packet: Given, overlay: Overlay) -> None:
        for one in (packet.member, sender):  # the giver, where the given one is a neighbour already
            if one in self._peers and one not in overlay.view and len(overlay.view) < overlay.wanted:
                overlay.view.append(one)
                self._send([one], Linked(packet.topic))
                return

    def unsubscribe(self, now: float, topic: Topic) -> Effects:
        overlay = self.overlays.pop(topic, None)
        if overlay is None:
            raise LocalProtocolError(f"{topic!r} is not subscribed here")
        keeper = () if overlay.keeper is None else (overlay.keeper,)
        self._send(sorted({*overlay.view, *overlay.pins, *overlay.incoming, *keeper}), Gone(topic))
        self._effects.append(Unsubscribed(topic))
        return self._take()

    def on_peer_up(self, now: float, peer: NodeId) -> Effects:
        if peer != self.node:
            self._peers[peer] = None
        return []

    def on_peer_down(self, now: float, peer: NodeId) -> Effects:
        self._peers.pop(peer, None)
        for overlay in self.overlays.values():
            overlay.forget(peer)
        return []

    # -- messages ----------------------------------------------------------------------------------------------------

    def publish(self, now: float, topic: Topic, payloads: Sequence[bytes]) -> Effects:
        if topic not in self.overlays:
            raise LocalProtocolError(f"{topic!r} is not subscribed here: only members publish; nothing was sent")
        first = self._published.get(topic, 0) + 1
        self._published[topic] = first + len(payloads) - 1
        self._effects.append(Published(topic, first, len(payloads), (), payloads))
        packet = Flooded(topic, MessageId(self.node, self.incarnation, first), tuple(payloads))
        self._on_flooded(self.node, packet, self.overlays[topic])
        return self._take()

    def _on_flooded(self, sender: NodeId, packet: Flooded, overlay: Overlay) -> None:
        if overlay.is_new(packet.message, len(packet.payloads)):
            onward = dict.fromkeys(one for one in overlay.neighbours() if one != sender)
            self._send(list(onward), packet)
            self._effects.append(Deliver(packet.topic, packet.message, packet.payloads))

    def on_packet(self, now: float, sender: NodeId, packet: Any) -> Effects:
        check_packet(self.node, packet)
        overlay = self.overlays.get(packet.topic)
        if overlay is not None:
            _HANDLERS[type(packet)](self, sender, packet, overlay)
        elif isinstance(packet, Linked | CollectWalk | Pin | Flooded | Adopt):
            self._send([sender], Gone(packet.topic))
        return self._take()

    def _on_word(self, sender: NodeId, packet: OfTopic, overlay: Overlay) -> None:
        match packet:
            case Linked():
                overlay.incoming.add(sender)
            case Unlinked():
                overlay.incoming.discard(sender)
            case Pin():
                overlay.pins.add(sender)
            case Unpin():
                overlay.pins.discard(sender)
            case Gone():
                overlay.forget(sender)
            case Seek():
                self._send([sender], Member(packet.topic))

    def _send(self, peers: Iterable[NodeId], packet: Any) -> None:
        if listed := tuple(peers):
            self._effects.append(Send(listed, packet))

    def _take(self) -> Effects:
        effects, self._effects = self._effects, []
        return effects

    # -- for people and tests ----------------------------------------------------------------------------------------

    def waiting(self) -> list[str]:
        return [f"members of {topic!r}" for topic, overlay in self.overlays.items() if not overlay.confirmed]

    def invariants(self) -> None:
        for topic, overlay in self.overlays.items():
            assert self.node not in (*overlay.view, *overlay.pins), f"its own neighbour in {topic!r}"
            assert len(set(overlay.view)) == len(overlay.view), f"a neighbour twice in {topic!r}"


_HANDLERS: dict[type, Callable[[Any, NodeId, Any, Overlay], None]] = {
    **dict.fromkeys((Linked, Unlinked, Pin, Unpin, Gone, Seek), Stan._on_word),
    CollectWalk: Stan._on_walk,
    CollectReply: Stan._on_reply,
    Member: Stan._on_member,
    Adopt: Stan._on_adopt,
    Given: Stan._on_given,
    Flooded: Stan._on_flooded,
}
