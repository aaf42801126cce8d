"""Packets of any class, with values drawn by the types of their fields: legal ones, and ones no correct node sends."""

from enum import Enum
from random import Random
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec

TEXTS = ("t", "t", "u", "")
BYTES = (b"", b"x", b"\x0f", b"\x03\x01")
NUMBERS = (0, 1, 2, 3)
HOSTILE_NUMBERS = (-1, -(2**40), 2**31, 2**62, 7, 0)


def packet(cls: type, types: dict[str, Any], rng: Random) -> Any:
    return cls(*(value(hint, rng) for hint in types.values()))


def frame(tag: int, types: dict[str, Any], rng: Random, *, hostile: bool) -> bytes:
    """What a peer may send that makes no packet of it first."""
    return bytes([tag]) + msgspec.msgpack.encode([value(hint, rng, hostile) for hint in types.values()])


def value(hint: Any, rng: Random, hostile: bool = False) -> Any:
    origin, inside = get_origin(hint), get_args(hint)
    if hint is NoneType:
        return None
    if origin in (Union, UnionType):
        return value(rng.choice(inside), rng, hostile)
    if hint is bool:
        return rng.random() < 0.5
    if hint is int:
        return rng.choice(HOSTILE_NUMBERS if hostile else NUMBERS)
    if hint is float:
        return rng.choice((-1.0, float("inf"), float("nan"), 1e300) if hostile else (0.0, 1.5, 100.0))
    if hint is str:
        return rng.choice(TEXTS)
    if hint is bytes:
        return rng.choice(BYTES)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return rng.choice(list(hint))
    if hint is Any:
        return rng.choice((None, 1, "t", 2.5, True))
    if origin in (list, frozenset):
        return origin(value(inside[0], rng, hostile) for _ in range(rng.randint(0, 3)))
    if origin is dict:
        return {value(inside[0], rng, hostile): value(inside[1], rng, hostile) for _ in range(rng.randint(0, 2))}
    if origin is tuple and len(inside) == 2 and inside[1] is ...:
        return tuple(value(inside[0], rng, hostile) for _ in range(rng.randint(0, 3)))
    if origin is tuple:
        return tuple(value(one, rng, hostile) for one in inside)
    if isinstance(hint, type) and issubclass(hint, tuple):  # a NamedTuple
        return hint(*(value(one, rng, hostile) for one in get_type_hints(hint).values()))
    raise AssertionError(f"no value for {hint!r}: teach this file about it")
