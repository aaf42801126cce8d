"""Links to other nodes: one connection per pair that has something to say, dialled on first use and again when lost.

Nothing is promised about frames that were under way when a link broke; the protocol repeats what is not acknowledged.
Of two connections between the same nodes the one that was accepted last stays, and both sides agree on which that is;
of two nodes that dial each other at the same moment the larger id gives way. Follows decision 0030.
"""

import asyncio
import logging
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from cubecast.addresses import Address
from cubecast.errors import BadInput, RemoteProtocolError
from cubecast.ids import NodeId
from cubecast.net.links.calling import call
from cubecast.net.links.connection import Connection, Traffic
from cubecast.net.links.framing import header
from cubecast.net.links.handshake import (
    MAGIC,
    MOST_PLACES,
    NOT_READY,
    OLDEST_VERSION,
    VERSION,
    Accepted,
    Greeting,
    Place,
    Refused,
    agreed,
    encode,
)
from cubecast.net.links.login import for_node
from cubecast.net.links.loop import Slices
from cubecast.net.links.turn import Turn
from cubecast.net.members.directory import Directory, Elsewhere, Introductions
from cubecast.net.members.security import Security
from cubecast.net.settings.config import NodeConfig

if TYPE_CHECKING:
    from cubecast.net.security.trust import Trust

log = logging.getLogger(__name__)

CONTROL: Final = 0xFF
"""First byte of frames about links and places; packet tags stay below."""
NOTE: Final = 0x01
"""Second byte of frames that observing nodes exchange; no list of places begins with it."""
REFUSALS_THAT_PROVE = 2
"""So many refused connections in a row say that no process is there."""
CALLS_AT_ONCE = 8
"""A newcomer to a large cluster calls its members by and by, so that they have time to answer."""
SMALL: Final = 4096
"""Bytes of a frame whose time matters more than what it might share a write with."""
PAUSES = (0.02, 0.05, 0.1, 0.2, 0.5)

_encode_places = msgspec.msgpack.Encoder().encode
_decode_places = msgspec.msgpack.Decoder(list[Place]).decode


class Events(Protocol):
    """What the owner of the links is told."""

    def packets(self, sender: NodeId, frames: list[bytes]) -> None: ...
    def on_up(self, peer: NodeId) -> None: ...
    def on_down(self, peer: NodeId) -> None: ...
    def on_refused(self, refusal: Refused) -> None:
        """A peer does not accept who we are."""

    def notice(self, kind: str, peer: NodeId | None, detail: str) -> None:
        """What happened to a link, for those who observe."""

    def on_note(self, peer: NodeId, data: bytes) -> None:
        """What an observing node wants to know or answers."""

    def link_full(self, peer: NodeId, full: bool) -> None:
        """A peer reads too slowly, or has caught up."""


@dataclass
class _Dial:
    task: asyncio.Task[None]
    kept: list[bytes] = field(default_factory=list)
    size: int = 0


class Peers:
    def __init__(self, directory: Directory, events: Events, config: NodeConfig, security: Security) -> None:
        self._directory = directory
        self._introductions = Introductions(directory)
        self._events = events
        self._cluster, self._protocol = config.cluster, config.signature
        self._security = security
        self._budget = config.peer_budget
        self._patience = config.patience
        self._dial_through = config.dial_through
        self._links: dict[NodeId, Connection] = {}
        self._dials: dict[NodeId, _Dial] = {}
        self._quiet_until: dict[NodeId, float] = {}
        self._calling = asyncio.Semaphore(CALLS_AT_ONCE)
        self._closed = False
        self.kept: set[NodeId] = set()
        """Peers the machine keeps a link to: it is told at once when that is lost."""
        self.left: set[NodeId] = set()
        """Who said goodbye and did not come back."""
        self.ended: set[NodeId] = set()
        """Where nothing answers any more, because no process of that id is at its address."""
        self.dropped = 0
        """Frames for peers that cannot be reached, or have no room kept for them; the protocol repeats what matters."""
        self.turn = Turn()
        self.traffic = Traffic()
        self._slices = Slices()

    # Sending

    def send(self, nodes: tuple[NodeId, ...], frame: bytes) -> None:
        """Hand a frame to the links; its header is made once for all of them."""
        head = header(frame)
        if self.turn.is_short and len(frame) <= SMALL and len(nodes) > 1:
            self._send_at_once(nodes, frame, head)
            return
        for node in nodes:
            link = self._links.get(node)
            if link is not None:
                link.send(frame, head)
            else:
                self._keep(node, frame)

    def _send_at_once(self, nodes: tuple[NodeId, ...], frame: bytes, head: bytes) -> None:
        """Several peers wait for this alone: it leaves before anything else is done."""
        framed = head + frame
        for node in nodes:
            link = self._links.get(node)
            if link is not None:
                link.send_at_once(framed)
            else:
                self._keep(node, frame)

    def _keep(self, node: NodeId, frame: bytes) -> None:
        """There is no link: dial and keep the frame for a while; without an address forget it."""
        dial = self._dial(node)
        if dial is not None and dial.size + len(frame) <= self._budget:
            dial.kept.append(frame)
            dial.size += len(frame)
        else:
            self.dropped += 1

    def reach(self, nodes: Iterable[NodeId]) -> None:
        """Have links to these soon."""
        for node in nodes:
            if node not in self._links:
                self._dial(node)

    def keep(self, node: NodeId, kept: bool) -> None:
        """The machine keeps a link to this peer, or does so no more; then the other end is told by its loss."""
        if kept:
            self.kept.add(node)
            if node not in self._links and self._dial(node) is None:
                asyncio.get_running_loop().call_soon(self._events.on_down, node)
        elif node in self.kept:
            self.kept.discard(node)
            link = self._links.pop(node, None)
            if link is not None:
                link.close()

    def introduce(self, nodes: tuple[NodeId, ...], mentioned: Iterable[NodeId]) -> None:
        """What is sent to these next speaks of others: tell where those live to who was not told."""
        mentioned = tuple(mentioned)
        for node in nodes:
            places = self._introductions.to_tell(node, mentioned)
            if places:
                self.send((node,), bytes([CONTROL]) + _encode_places(places))

    @property
    def ignored(self) -> int:
        """Of what others told, what was too much."""
        return self._introductions.ignored

    def link(self, node: NodeId) -> Connection | None:
        return self._links.get(node)

    def is_connected(self, node: NodeId) -> bool:
        return node in self._links

    def send_note(self, node: NodeId, data: bytes) -> bool:
        """To a node there is a link to; False when there is none."""
        link = self._links.get(node)
        if link is not None:
            link.send(bytes([CONTROL, NOTE]) + data)
        return link is not None

    @property
    def queued(self) -> dict[NodeId, int]:
        """Bytes that wait for each peer to read."""
        return {node: link.queued for node, link in sorted(self._links.items())}

    def hang_up(self) -> None:
        """Say goodbye to everybody. A link belongs to the id it was opened under and must not outlive it."""
        dials, self._dials = self._dials, {}  # here, because a task that did not begin yet ends without a word
        for dial in dials.values():
            dial.task.cancel()
        links, self._links = self._links, {}
        for link in links.values():
            link.send(bytes([CONTROL]))
            link.close()

    def reconfigure(self, config: NodeConfig) -> None:
        self._budget = config.peer_budget
        for link in self._links.values():
            link.budget = config.peer_budget

    def check_certificates(self, trust: "Trust") -> None:
        """Links to nodes whose certificate would not be believed any more end; a peer that has a new one calls
        again."""
        for node, link in list(self._links.items()):
            objection = trust.objection(link.chain())
            if objection is not None:
                log.warning("the link to node %s ends: %s", node, objection, extra={"peer": node})
                link.abort(objection)

    def close(self) -> None:
        self._closed = True
        self.hang_up()

    # Others call

    def accept(self, connection: Connection, greeting: Greeting) -> Refused | None:
        """A caller says that it is a node: take the connection over, or say why not."""
        place, me = greeting.place, self._directory.me
        if me is None or self._closed:
            return Refused(NOT_READY, retry=True)
        if place.instance == me.instance:
            return Refused("this is the node that calls", retry=True)
        objection = self._directory.objection(place)
        if objection is not None:
            return objection
        dial = self._dials.get(place.node)
        if dial is not None and me.node < place.node:
            return Refused("we are calling you", retry=True)
        news = self._directory.meet(place)
        places = list(self._directory.places.values()) if self._directory.everybody else []
        connection.send(encode(Accepted(agreed(greeting), me, self._directory.dimension, places)))
        self._open(place.node, connection)
        self._spread(news)
        return None

    # We call

    def _dial(self, node: NodeId) -> _Dial | None:
        dial = self._dials.get(node)
        if dial is None and not self._closed and self._directory.me is not None and node in self._directory.places:
            now = asyncio.get_running_loop().time()
            if now < self._quiet_until.get(node, 0.0) or not self._introductions.may_call(now, node):
                return None
            self._directory.use(node)
            dial = self._dials[node] = _Dial(asyncio.ensure_future(self._reach(node)))
        return dial

    async def _reach(self, node: NodeId) -> None:
        """Call until the peer answers, or until it is clear that it will not."""
        loop = asyncio.get_running_loop()
        give_up, refusals, attempts = loop.time() + self._patience, 0, 0
        try:
            while node not in self._links and not self._closed:
                try:
                    async with self._calling:
                        await self._call(node)
                    return
                except ConnectionRefusedError:
                    refusals += 1
                except Elsewhere as error:
                    log.info("node %s lives elsewhere: %s", node, error, extra={"peer": node})
                    refusals = REFUSALS_THAT_PROVE
                    self._directory.forget(node)
                except (OSError, RemoteProtocolError, BadInput) as error:
                    log.info("node %s does not answer: %s", node, error, extra={"peer": node})
                if refusals >= REFUSALS_THAT_PROVE or loop.time() >= give_up:
                    self._be_quiet(loop.time(), node)
                    if refusals >= REFUSALS_THAT_PROVE:
                        self._note_end(node)
                    self._events.on_down(node)
                    return
                await asyncio.sleep(PAUSES[min(attempts, len(PAUSES) - 1)])
                attempts += 1
        finally:
            self._dialled(node)

    def _be_quiet(self, now: float, node: NodeId) -> None:
        """The peer is not there: no other call for a while."""
        if len(self._quiet_until) >= MOST_PLACES:
            self._quiet_until = {one: until for one, until in self._quiet_until.items() if until > now}
        self._quiet_until[node] = now + 1.0

    def _note_end(self, node: NodeId) -> None:
        if len(self.ended) >= MOST_PLACES:
            self.ended.pop()
        self.ended.add(node)

    def _dialled(self, node: NodeId) -> None:
        """The call that is under way is over, however it ended; what was kept for it goes out if there is a link."""
        dial = self._dials.get(node)
        if dial is None or dial.task is not asyncio.current_task():
            return  # it was given up, and others may have been begun
        del self._dials[node]
        if node in self._links:
            for frame in dial.kept:
                self._links[node].send(frame)

    async def _call(self, node: NodeId) -> None:
        place, me = self._directory.places.get(node), self._directory.me
        assert me is not None, "only a node with a place calls others"
        if place is None:
            raise Elsewhere("its place was forgotten")
        if place.address == me.address and node not in self._dial_through:
            raise ConnectionRefusedError  # the node that lived there is gone: this node lives there now
        greeting = Greeting(MAGIC, OLDEST_VERSION, VERSION, self._cluster, me, self._protocol)
        address = self._dial_through.get(node) or Address.parse(place.address)
        secure = for_node(self._security.tls, self._cluster)
        connection, answer = await call(address, greeting, budget=self._budget, secure=secure)
        if isinstance(answer, Refused):
            connection.close()
            if not answer.retry or answer.newest_incarnation >= me.incarnation:
                self._events.on_refused(answer)
            raise OSError(answer.reason)
        if self._directory.draws_ids and answer.place.node != node:
            connection.close()
            raise Elsewhere(f"node {answer.place.node} is at {address}")
        self._spread([*self._directory.meet(answer.place), *self._directory.learn(answer.places)])
        # Even if it called us meanwhile: having accepted this connection it has given up the other one.
        self._open(answer.place.node, connection)

    # Links

    def _open(self, node: NodeId, connection: Connection) -> None:
        old = self._links.get(node)
        self._links[node] = connection
        connection.flush()
        connection.turn, connection.traffic, connection.slices = self.turn, self.traffic, self._slices
        connection.label = f"node {node}"
        if old is not None:
            old.close()  # the peer would not call if it still had this one
        self._quiet_until.pop(node, None)
        self.left.discard(node)
        self.ended.discard(node)
        self._introductions.opened(asyncio.get_running_loop().time(), node)
        events = self._events

        def on_frames(link: Connection, frames: list[bytes]) -> None:
            for frame in frames:
                if frame[0] == CONTROL:
                    frames = self._take_control(node, frames)
                    break
            events.packets(node, frames)

        connection.on_full = connection.on_room = lambda link: self._tell_full(node, link)
        log.info("linked to node %s", node, extra={"peer": node})
        self._events.notice("connected", node, "")
        connection.take_over(on_frames, lambda link, error: self._lost(node, link, error))
        self._events.on_up(node)

    def _tell_full(self, node: NodeId, link: Connection) -> None:
        """Not at once: this comes in the middle of a write."""

        def tell() -> None:
            if self._links.get(node) is link:
                self._events.link_full(node, link.is_full)

        asyncio.get_running_loop().call_soon(tell)

    def _lost(self, node: NodeId, link: Connection, error: Exception | None) -> None:
        if self._links.get(node) is not link:
            return
        del self._links[node]
        self._introductions.closed(node)
        if not self._closed:
            log.info("lost the link to node %s: %s", node, error or "closed", extra={"peer": node})
            if isinstance(error, RemoteProtocolError):
                self._events.notice("refused-frame", node, str(error))
            self._events.notice("disconnected", node, str(error or "closed"))
            if node in self.kept:
                self.kept.discard(node)
                self._events.on_down(node)
            else:
                self._dial(node)

    def _take_control(self, node: NodeId, frames: list[bytes]) -> list[bytes]:
        """Handle what is about links; the packets."""
        for frame in frames:
            if frame[0] != CONTROL:
                continue
            if len(frame) == 1:
                self._goodbye(node)
                continue
            if frame[1] == NOTE:
                self._events.on_note(node, frame[2:])
                continue
            try:
                places = _decode_places(frame[1:])
            except (msgspec.MsgspecError, UnicodeDecodeError) as error:
                raise RemoteProtocolError(f"malformed places: {error}") from None
            if self._directory.draws_ids:
                places = self._introductions.heard(asyncio.get_running_loop().time(), node, places)
            self._spread(self._directory.learn(places))
        return [frame for frame in frames if frame[0] != CONTROL]

    def _goodbye(self, node: NodeId) -> None:
        """It leaves, having finished: peers need not wait for it."""
        link = self._links.pop(node, None)
        self._introductions.closed(node)
        if link is not None:
            link.close()
        if len(self.left) >= MOST_PLACES:
            self.left.pop()
        self.left.add(node)
        self._directory.gone(node)
        self._events.notice("left", node, "it said goodbye")
        asyncio.get_running_loop().call_soon(self._events.on_down, node)

    def _spread(self, news: Iterable[Place]) -> None:
        """Tell everybody we talk to where a node lives."""
        news = list(news)
        if news and self._directory.everybody:
            frame = bytes([CONTROL]) + _encode_places(news)
            for link in self._links.values():
                link.send(frame)
