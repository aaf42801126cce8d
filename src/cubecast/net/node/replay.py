"""Feeds the record of a live node to a fresh machine: the same inputs must give the same effects, byte for byte."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from cubecast.errors import CubecastError, RemoteProtocolError, TraceError
from cubecast.net.links.framing import Splitter
from cubecast.net.node.driver import INPUTS
from cubecast.net.node.input_log import INPUTS_SUFFIX, LogStep, encode_effects
from cubecast.net.node.seating import Seating
from cubecast.patterns import Selection
from cubecast.protocol.contract import Machine
from cubecast.protocol.families import find
from cubecast.protocol.inputs import Follow, Timer
from cubecast.protocol.inspector import Inspector
from cubecast.wire.codec import Codec, codec_of

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
