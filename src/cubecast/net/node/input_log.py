"""A record of everything a machine was told and everything it answered, step by step, kept for `replay`.

The file is a stream of frames like a connection's: a header frame, then a frame per step. Each is written before the
step's effects are carried out, so the record of a killed node lacks at most what no other node saw.
"""

import logging
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from cubecast.errors import RemoteProtocolError
from cubecast.net.links.framing import framed
from cubecast.net.node.seating import Seating
from cubecast.patterns import Selection
from cubecast.protocol.effects import Deliver, Effects, Send
from cubecast.protocol.families import find
from cubecast.wire.codec import codec_of

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


_encode = msgspec.msgpack.Encoder().encode


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
