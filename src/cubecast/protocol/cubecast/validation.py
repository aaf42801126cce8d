"""What no correct peer sends is refused before any state changes."""

from typing import Final

from cubecast.errors import RemoteProtocolError
from cubecast.ids import NodeId
from cubecast.protocol.cubecast.packets import (
    PACKETS,
    Ack,
    AnyPacket,
    Ask,
    Convoy,
    MissingReport,
    MissingReportAck,
    Obituary,
    Settle,
    SettlePart,
    Stable,
    Wave,
    WaveAck,
    Welcome,
)
from cubecast.protocol.cubecast.parameters import MOST_MESSAGES, Parameters
from cubecast.protocol.cubecast.publication_packets import Publication
from cubecast.protocol.cubecast.settlement import MOST_PARTS
from cubecast.protocol.cubecast.vocabulary import Entry, Reach, Since, mask_from

KINDS: Final = frozenset(PACKETS)


class Validator:
    """Knows only the cube and for which node it reads packets."""

    def __init__(self, node: NodeId, parameters: Parameters) -> None:
        self._node = node
        self._parameters = parameters
        self._size = parameters.size
        self._good_members = b""
        self._addressed = 0
        """Publications repeat their destinations, so the last good ones are remembered: as they travel, as a mask."""

    def check(self, sender: NodeId, packet: AnyPacket, incarnation: int) -> None:
        """Raise RemoteProtocolError for what cannot come from a correct peer of this incarnation."""
        if type(packet) not in KINDS:
            raise RemoteProtocolError(f"a {type(packet).__name__} is not a cubecast packet")
        if not 0 <= sender < self._size:
            raise RemoteProtocolError(f"sender {sender} is not an id of this cube")
        if sender == self._node:
            raise RemoteProtocolError(f"somebody else claims to be node {sender}")
        if packet.by < 0:
            self._life(sender, packet.by)
        for node, dead in packet.dead:
            self._life(node, dead)
            if node == self._node and dead > incarnation:
                raise RemoteProtocolError(f"incarnation {dead} of node {node} does not exist yet")
        if isinstance(packet, Publication):
            self._publication(packet, incarnation)
        else:
            self._other(sender, packet, incarnation)

    def _other(self, sender: NodeId, packet: AnyPacket, incarnation: int) -> None:
        match packet:
            case Convoy():
                if len(packet.messages) < 2:
                    raise RemoteProtocolError("a convoy of less than two publications")
                for publication in packet.publications():
                    self._publication(publication, incarnation)
            case Ack():
                for node, lived, counter in packet.messages:
                    if not 0 <= node < self._size or lived < 0 or counter < 1:
                        self._message(node, lived, counter)
            case Ask() | Stable():
                if packet.counter < 0:
                    raise RemoteProtocolError(f"counter {packet.counter} is negative")
            case Wave():
                if packet.entry is not None:
                    self._entry(packet.entry, incarnation)
                    if packet.entry[:2] != (sender, packet.by):
                        raise RemoteProtocolError(f"node {sender} speaks for the subscription of another")
                for entry in packet.entries:
                    self._entry(entry, incarnation)
                self._reached(packet.reached, incarnation)
                self._since(packet.since, incarnation)
            case WaveAck():
                for entry in packet.entries:
                    self._entry(entry, incarnation)
                if packet.start < 0:
                    raise RemoteProtocolError(f"counter {packet.start} is negative")
                self._reached(packet.reached, incarnation)
                self._since(packet.since, incarnation)
            case MissingReport() | MissingReportAck():
                self._runs(sender, packet, incarnation)
            case Welcome():
                for standing in packet.nodes:
                    self._life(standing.node, standing.incarnation)
                    if standing.node == self._node and standing.incarnation > incarnation:
                        raise RemoteProtocolError(f"incarnation {standing.incarnation} of this node does not exist yet")
            case Settle():
                self._settle(packet)
            case SettlePart():
                if not 0 <= packet.part < packet.parts <= MOST_PARTS:
                    raise RemoteProtocolError(f"piece {packet.part} of {packet.parts} of an announcement")
                self._settle(packet)
            case Obituary():
                self._bitmap(packet.alive)
            case _:
                pass

    def _publication(self, packet: Publication, incarnation: int) -> None:
        source, lived, counter = packet.message
        if not 0 <= source < self._size or lived < 0 or counter < 1:
            self._message(source, lived, counter)
        if source == self._node and lived >= incarnation:
            raise RemoteProtocolError("a publication in this node's name came from outside")
        if not 0 < len(packet.payloads) <= MOST_MESSAGES:
            raise RemoteProtocolError(f"a batch of {len(packet.payloads)} messages")
        if not 0 <= packet.stable < counter:
            raise RemoteProtocolError(f"publication {counter} claims that {packet.stable} is stable")
        if packet.members != self._good_members:
            self._members(packet.members)
        for member in packet.epochs:
            self._life(member.node, member.incarnation)
            if not self._addressed >> member.node & 1 or member.number < 1:
                raise RemoteProtocolError(f"an epoch of node {member.node}, which is not addressed in it")
            if member.node == self._node and member.incarnation > incarnation:
                raise RemoteProtocolError(f"incarnation {member.incarnation} of this node does not exist yet")
        for start in packet.starts:
            self._bitmap(start.members)
            if not 1 <= start.counter <= counter:
                raise RemoteProtocolError(f"publication {counter} states a start at {start.counter}")
        if packet.dependencies:
            self._dependencies(packet)

    def _members(self, bits: bytes) -> None:
        self._bitmap(bits)
        mask = mask_from(bits)
        if not mask >> self._node & 1:
            raise RemoteProtocolError("a publication that is not addressed to this node")
        self._good_members, self._addressed = bits, mask

    def _dependencies(self, packet: Publication) -> None:
        if len(packet.dependencies) > self._parameters.max_dependencies:
            raise RemoteProtocolError(f"{len(packet.dependencies)} dependencies")
        size, publisher, highest, are_distinct = self._size, packet.message[0], -1, True
        for node, incarnation, counter, excused, starts in packet.dependencies:
            if not 0 <= node < size or incarnation < 0 or counter < 1:
                self._message(node, incarnation, counter)
            if node <= highest or node == publisher:
                are_distinct = False  # or of another incarnation
            highest = node
            if excused:
                self._bitmap(excused)
            for start in starts:
                self._bitmap(start.members)
        if not are_distinct:
            publishers = {dependency[:2] for dependency in packet.dependencies}
            if len(publishers) < len(packet.dependencies) or packet.message[:2] in publishers:
                raise RemoteProtocolError("a publisher occurs twice among the dependencies")

    def _settle(self, packet: Settle | SettlePart) -> None:
        for life in packet.faulty:
            self._life(*life)
        for holding in packet.holdings:
            self._life(holding.source, holding.incarnation)
            if any(not 1 <= first <= last for first, last in holding.ranges):
                raise RemoteProtocolError("a range of counters that ends before it starts")

    def _runs(self, sender: NodeId, packet: MissingReport | MissingReportAck, incarnation: int) -> None:
        of_receiver = isinstance(packet, MissingReport)
        for run in packet.runs:
            self._message(self._node if of_receiver else sender, run.incarnation, run.first)
            if run.last < run.first or (of_receiver and run.incarnation > incarnation):
                raise RemoteProtocolError(f"{tuple(run)} is no run of messages")

    def _reached(self, reached: tuple[Reach, ...], incarnation: int) -> None:
        for one in reached:
            self._message(*one)
            if one.node == self._node and one.incarnation > incarnation:
                raise RemoteProtocolError(f"incarnation {one.incarnation} of this node does not exist yet")

    def _since(self, since: tuple[Since, ...], incarnation: int) -> None:
        for one in since:
            if not 0 <= one.epoch <= incarnation or one.number < 1 or one.incarnation < 0 or one.counter < 1:
                raise RemoteProtocolError(f"{tuple(one)} is no subscription of this node's and no message")

    def _life(self, node: NodeId, incarnation: int) -> None:
        if not 0 <= node < self._size:
            raise RemoteProtocolError(f"node {node} is not an id of this cube")
        if incarnation < 0:
            raise RemoteProtocolError(f"incarnation {incarnation} of node {node} is impossible")

    def _message(self, node: NodeId, incarnation: int, counter: int) -> None:
        self._life(node, incarnation)
        if counter < 1:
            raise RemoteProtocolError(f"counter {counter} of node {node} is impossible")

    def _entry(self, entry: Entry, incarnation: int) -> None:
        self._life(entry.node, entry.incarnation)
        if entry.number < 1:
            raise RemoteProtocolError(f"subscription number {entry.number} is impossible")
        if entry.node == self._node and entry.incarnation > incarnation:
            raise RemoteProtocolError(f"incarnation {entry.incarnation} of this node does not exist yet")

    def _bitmap(self, bits: bytes) -> None:
        if len(bits) * 8 > self._size + 7 or mask_from(bits) >> self._size:
            raise RemoteProtocolError("a set of nodes beyond the cube")
