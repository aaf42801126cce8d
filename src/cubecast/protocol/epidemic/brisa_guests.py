"""Tree reuse: a process near the root of another process's tree publishes along it, instead of growing its own.

Its messages (a *guest* flow) travel over the links of the carrying tree in both directions, up to the root and down,
are numbered by their own publisher and change no position. Every tick neighbours tell how far they are with each
guest: who was behind a neighbour at one tick and still is at the next fetches from it. So guests arrive
everywhere while the overlay is connected, also when the carrying tree is just being repaired.
"""

# DEVIATION brisa §4.2.8: besides going up and down the tree, what did not come is fetched from neighbours that have it.

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from cubecast.ids import Counter, Incarnation, NodeId
from cubecast.protocol.epidemic.brisa_buffer import Batch, Buffer, Early, in_pieces
from cubecast.protocol.epidemic.brisa_flow import PIECE, Flow
from cubecast.protocol.epidemic.brisa_packets import FlowId, GuestData, GuestFetch, GuestsAlive

MOST_GUESTS = 64
"""In one packet about them, and at one process."""


class Host(Protocol):
    me: NodeId
    incarnation: Incarnation
    buffer_messages: int
    buffer_bytes: int
    flows: dict[FlowId, Flow]

    @property
    def neighbours(self) -> Iterable[NodeId]: ...

    def send(self, peer: NodeId, packet: Any) -> None: ...

    def send_all(self, peers: tuple[NodeId, ...], packet: Any) -> None: ...

    def deliver(self, flow: FlowId, first: Counter, payloads: tuple[bytes, ...]) -> None: ...

    def report_gap(self, flow: FlowId, first: Counter, last: Counter) -> None: ...

    def begin(self, flow: FlowId, have: Counter) -> None: ...


class Guest:
    def __init__(self, host: Host, carrier: FlowId, have: Counter) -> None:
        self.carrier = carrier
        self.have = have
        self.kept = Buffer(host.buffer_messages, host.buffer_bytes)
        self.early: Early[Batch] = Early(host.buffer_messages, host.buffer_bytes)
        self.ahead: dict[NodeId, Counter] = {}
        self.fetched: dict[NodeId, Counter] = {}
        """What this process had when it asked a neighbour for what follows on it."""


class Guests:
    def __init__(self, host: Host) -> None:
        self.all: dict[FlowId, Guest] = {}
        self._host = host

    def carrier(self, flows: Mapping[FlowId, Flow], most_depth: int) -> FlowId | None:
        """The tree in which this process is nearest to the root, if near enough."""
        near = [
            (flow.depth, key) for key, flow in flows.items() if flow.primary is not None and flow.depth <= most_depth
        ]
        return min(near)[1] if near else None

    def publish(self, key: FlowId, carrier: FlowId, payloads: tuple[bytes, ...]) -> Counter:
        """The counter of the last one."""
        guest = self.all.get(key)
        if guest is None:
            guest = self.all[key] = Guest(self._host, carrier, 0)
        for batch in in_pieces(payloads):
            self._take(key, guest, batch, None)
        return guest.have

    def _take(self, key: FlowId, guest: Guest, payloads: tuple[bytes, ...], sender: NodeId | None) -> None:
        first, guest.have = guest.have + 1, guest.have + len(payloads)
        guest.kept.append(first, payloads)
        self._host.deliver(key, first, payloads)
        flow = self._host.flows.get(guest.carrier)
        if flow is not None:
            links = dict.fromkeys((*flow.parents, *flow.children))
            links.pop(sender, None)  # type: ignore[arg-type]
            if links:
                self._host.send_all(tuple(links), GuestData(key, first, payloads, guest.carrier))

    def _known(self, key: FlowId, carrier: FlowId, have: Counter) -> Guest | None:
        guest = self.all.get(key)
        if guest is None and len(self.all) < MOST_GUESTS:
            guest = self.all[key] = Guest(self._host, carrier, have)
            self._host.begin(key, have)
        return guest

    def on_data(self, sender: NodeId, packet: GuestData) -> None:
        guest = self._known(packet.flow, packet.carrier, packet.first - 1)
        if guest is None or packet.last <= guest.have or not packet.payloads:
            return
        batch = packet.first, packet.payloads
        arrived: Batch | None = batch
        if packet.first > guest.have + 1:
            guest.early.hold(packet.first, batch, len(packet.payloads), sum(map(len, packet.payloads)))
            arrived = None
        while arrived is not None:
            first, payloads = arrived
            if new := payloads[guest.have + 1 - first :]:
                self._take(packet.flow, guest, new, sender)
            arrived = guest.early.pop_upto(guest.have + 1)
        if guest.early and guest.fetched.get(sender) != guest.have:
            guest.fetched[sender] = guest.have
            self._host.send(sender, GuestFetch(packet.flow, guest.have))

    def on_fetch(self, sender: NodeId, packet: GuestFetch) -> None:
        guest = self.all.get(packet.flow)
        if guest is not None:
            for first, payloads in guest.kept.after(packet.have, PIECE):
                self._host.send(sender, GuestData(packet.flow, first, payloads, guest.carrier))

    def tick(self) -> None:
        peers = tuple(self._host.neighbours)
        if self.all and peers:
            states = tuple((key, one.carrier, one.have, one.kept.first) for key, one in self.all.items())
            self._host.send_all(peers, GuestsAlive(states))

    def on_alive(self, sender: NodeId, packet: GuestsAlive) -> None:
        for key, carrier, have, kept_from in packet.guests:
            guest = self._known(key, carrier, have)
            if guest is None:
                continue
            was_ahead = guest.ahead.get(sender, 0) > guest.have
            guest.ahead[sender] = have
            if was_ahead and have > guest.have:
                if kept_from > guest.have + 1 and key[1:] != (self._host.me, self._host.incarnation):
                    # It had them all along, and they did not come: they are not to be had from it any more.
                    self._host.report_gap(key, guest.have + 1, kept_from - 1)
                    guest.have = kept_from - 1
                self._host.send(sender, GuestFetch(key, guest.have))

    def link_down(self, peer: NodeId) -> None:
        for guest in self.all.values():
            guest.ahead.pop(peer, None)
            guest.fetched.pop(peer, None)
