"""A record of everything a machine was told and everything it answered, step by step; and `replay`, which feeds it to a
machine made again from the same plain values.
"""

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, TypeAlias

import msgspec

from cubecast.errors import CubecastError, RemoteProtocolError, TraceError
from cubecast.ids import Incarnation, MessageRun, NodeId
from cubecast.net.links.framing import Splitter, framed
from cubecast.net.members.joining import Admission
from cubecast.net.node.driver import INPUTS
from cubecast.net.settings.config import NodeConfig
from cubecast.patterns import Selection
from cubecast.protocol.contract import Machine
from cubecast.protocol.effects import Deliver, Effects, Send
from cubecast.protocol.families import find
from cubecast.protocol.family import Seat, Setup
from cubecast.protocol.inputs import Follow, Timer
from cubecast.protocol.inspector import Inspector
from cubecast.wire.codec import Codec, codec_of


@dataclass(frozen=True)
class Seating:
    """One life of one node. A founder begins alone; a joiner knows its contacts."""

    protocol: str
    parameters: dict[str, str]
    node: NodeId
    incarnation: Incarnation
    dimension: int
    is_founder: bool
    contacts: tuple[NodeId, ...]
    seed: str

    @classmethod
    def of(cls, config: NodeConfig, admission: Admission, instance: bytes) -> "Seating":
        node, dimension = admission.node, admission.dimension
        contacts = tuple(sorted(place.node for place in admission.places if place.node != node))
        chosen, seed = config.chosen(dimension), instance.hex()
        return cls(
            config.protocol, chosen, node, admission.incarnation, dimension, admission.is_founder, contacts, seed
        )

    @property
    def chosen(self) -> Any:
        return find(self.protocol).chosen(self.parameters, live=True)

    def machine(self) -> Machine:
        founders = (self.node,) if self.is_founder else ()
        setup = Setup(1 << self.dimension, founders, {}, Random(0), open=True)
        seat = Seat(self.node, self.incarnation, contacts=self.contacts, seed=self.seed)
        return find(self.protocol).make(setup, self.chosen)(seat)


# A record of everything a machine was told and everything it answered, step by step; and `replay`, which feeds it to a
# fresh machine: the same inputs must give the same effects, byte for byte.
#
# The file is a stream of frames like a connection's: a header frame, then a frame per step. Each is written before the
# step's effects are carried out, so the record of a killed node lacks at most what no other node saw.

log = logging.getLogger(__name__)

INPUTS_SUFFIX = ".inputs"

Ask: TypeAlias = Callable[[str, float, Sequence[Any]], Effects]
"""(name of the input, when, its arguments) → what the machine answers."""


class LogStep(msgspec.Struct, array_like=True):
    name: str
    """The entry point; `packet` for what a peer sent."""
    now: float
    arguments: list[Any]
    effects: bytes
    """As `encode_effects` says; empty when the machine refused the input."""


def _ends(run: Any) -> Any:
    """A run of messages takes the room of one here, too."""
    if isinstance(run, MessageRun):
        return run.source, run.incarnation, run.first, run.last
    raise TypeError(type(run))


_encode = msgspec.msgpack.Encoder(enc_hook=_ends).encode


def encode_effects(effects: Effects, packed: Callable[[Any], bytes]) -> bytes:
    """Equal effects give equal bytes; packets count as what goes over the wire."""
    return _encode([_plain(effect, packed) for effect in effects])


def _plain(effect: Any, packed: Callable[[Any], bytes]) -> list[Any]:
    if isinstance(effect, Send):
        if effect.packet.frame is None:
            effect.packet.frame = packed(effect.packet)
        return ["Send", effect.peers, effect.packet.frame]
    if isinstance(effect, Deliver):
        return ["Deliver", effect.topic, effect.message, effect.payloads]  # not the packet, which tells when it came
    return [type(effect).__name__, effect]


def _plain_arguments(name: str, arguments: Sequence[Any]) -> list[Any]:
    if name == "packet":
        sender, packet = arguments
        return [sender, packet.frame]
    return [one.patterns if isinstance(one, Selection) else one for one in arguments]


class InputLog:
    """Stands between a driver and its machine."""

    def __init__(self, directory: Path, seating: Seating, instance: bytes) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        name = f"node-{seating.node:05d}-{seating.incarnation:05d}-{instance.hex()[:8]}{INPUTS_SUFFIX}"
        self._file: int | None = os.open(directory / name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self._packed = codec_of(find(seating.protocol)).encode
        self._write(seating)

    def step(self, ask: Ask, name: str, now: float, arguments: Sequence[Any]) -> Effects:
        """Let the machine take the step, and remember it."""
        told = _plain_arguments(name, arguments)
        try:
            effects = ask(name, now, arguments)
        except RemoteProtocolError:
            self._write(LogStep(name, now, told, b""))
            raise
        self._write(LogStep(name, now, told, encode_effects(effects, self._packed)))
        return effects  # even if they could not be written down: the machine relies on them being carried out

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _write(self, record: Seating | LogStep) -> None:
        data = framed(_encode(record))
        try:
            while data and self._file is not None:
                data = data[os.write(self._file, data) :]
        except OSError as error:
            log.error("the record of inputs ends here and cannot be replayed further; the node goes on: %s", error)
            self.close()


LONGEST_RECORD = 1 << 30
_PIECE = 1 << 20
_headers = msgspec.msgpack.Decoder(Seating)
_steps = msgspec.msgpack.Decoder(LogStep)


@dataclass(frozen=True)
class Difference:
    """The first step at which the machine did something else."""

    path: Path
    step: int
    told: LogStep
    recorded: Any
    replayed: Any

    def __str__(self) -> str:
        return (
            f"{self.path.name}, step {self.step}, {self.told.name}{self.told.arguments} at {self.told.now}: "
            f"recorded {self.recorded}, replayed {self.replayed}"
        )


def replay_all(directory: Path) -> tuple[int, list[Difference]]:
    """Replay every record below a directory: how many steps agreed, and where the others first differ."""
    paths = sorted(directory.glob(f"*{INPUTS_SUFFIX}"))
    if not paths:
        raise TraceError(f"{directory} holds no records of inputs (*{INPUTS_SUFFIX})")
    steps, differences = 0, []
    for path in paths:
        agreed, difference = replay(path)
        steps += agreed
        if difference is not None:
            differences.append(difference)
    return steps, differences


def replay(path: Path) -> tuple[int, Difference | None]:
    """How many steps agreed, and the first that did not."""
    records = _records(path)
    seating = _seating(next(records, b""), path)
    machine, family = _machine(seating, path), find(seating.protocol)
    inspector, codec = family.inspect(machine), codec_of(family)
    agreed = 0
    for record in records:
        told = _steps.decode(record)
        replayed = _step(machine, inspector, codec, told)
        if replayed != told.effects:
            return agreed, Difference(path, agreed, told, _readable(told.effects), _readable(replayed))
        machine.invariants()
        agreed += 1
    return agreed, None


def _records(path: Path) -> Iterator[bytes]:
    """Whole records; one that a crash tore off in the middle is left out."""
    splitter = Splitter(LONGEST_RECORD)
    with path.open("rb") as file:
        while data := file.read(_PIECE):
            try:
                yield from splitter.feed(data)
            except RemoteProtocolError as error:
                raise TraceError(f"{path} is damaged: {error}") from None


def _seating(record: bytes, path: Path) -> Seating:
    try:
        return _headers.decode(record)
    except msgspec.MsgspecError as error:
        raise TraceError(f"{path} is no record of a node's inputs: {error}") from None


def _machine(seating: Seating, path: Path) -> Machine:
    try:
        return seating.machine()
    except CubecastError as error:
        raise TraceError(f"{path} is no record of a node's inputs: {error}") from None


def _step(machine: Machine, inspector: Inspector, codec: Codec, told: LogStep) -> bytes:
    arguments = told.arguments
    try:
        match told.name:
            case "packet":
                sender, frame = arguments
                effects = machine.on_packet(told.now, sender, codec.decode(frame))
            case "on_timer":
                effects = machine.handle(told.now, Timer(inspector.timer(arguments[0])))
            case "follow":
                interest = None if arguments[0] is None else Selection(arguments[0])
                effects = machine.handle(told.now, Follow(interest))
            case name:
                effects = machine.handle(told.now, INPUTS[name](*arguments))
    except RemoteProtocolError:
        return b""
    return encode_effects(effects, codec.encode)


def _readable(effects: bytes) -> Any:
    return msgspec.msgpack.decode(effects) if effects else "a refusal"
