"""What an application publishes ↔ the bytes a node carries.

Plain bytes travel as they are. Anything else opens with a mark and a byte that says how the rest is to be read; so do
bytes that happen to begin with the mark, and empty ones. The network never looks inside, so a foreign or garbled
envelope is found where it is opened, by the subscriber that reads the message, and stops nobody else. In front of all
this may be the name of the client that published it, put there by its node where security is enabled (`headers`).
"""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from math import isfinite
from operator import itemgetter
from typing import Any, Final

import msgspec

from cubecast.errors import BadInput, RemoteProtocolError
from cubecast.headers import HEADED, MARK, OPENING, Headers, HeaderValue, checked, split

BYTES: Final = 0
TEXT: Final = 1
JSON: Final = 2

_PREFIXES: Final = tuple(bytes([MARK, kind]) for kind in range(4))
_first: Final = itemgetter(0)
_encode_json = msgspec.json.Encoder().encode
_decode_json = msgspec.json.Decoder().decode
_encode_headed = msgspec.msgpack.Encoder().encode
_decode_headed = msgspec.msgpack.Decoder(tuple[dict[str, str | bool | int | float], int, bytes]).decode


def seal(data: Any, headers: Headers | None = None) -> bytes:
    """Bytes and text as they are, everything else as JSON."""
    if headers is None and type(data) is bytes and data and data[0] != MARK:
        return data
    kind, body = _body(data)
    if not headers:
        return _PREFIXES[kind] + body
    try:
        return _PREFIXES[HEADED] + _encode_headed((checked(headers), kind, body))
    except UnicodeEncodeError:
        raise BadInput("headers must be valid Unicode") from None


def seal_all(batch: Iterable[Any]) -> Sequence[bytes]:
    """Many at once; plain bytes are looked at and not touched."""
    if type(batch) is not list:  # what is no list is looked at
        _check_several(batch)
    messages = list(batch)
    if set(map(type, messages)) != {bytes}:
        return [seal(data) for data in messages]
    for place in _marked(messages):
        messages[place] = seal(messages[place])
    return messages


def _check_several(batch: object) -> None:
    if isinstance(batch, str | bytes | bytearray | memoryview | Mapping) or not isinstance(batch, Iterable):
        raise BadInput(f"a batch is several messages, such as a list of them, not {type(batch).__name__}")


def bodies(sealed: Sequence[bytes]) -> Sequence[bytes]:
    """The content of many at once."""
    if len(sealed) == 1 and sealed[0] and sealed[0][0] != MARK:
        return sealed
    places = _marked(sealed)
    if not places:
        return sealed
    opened = list(sealed)
    for place in places:
        opened[place] = body(opened[place])
    return opened


def are_plain(messages: Sequence[bytes]) -> bool:
    """Do all of them travel as they are?"""
    return not _marked(messages)


def _marked(messages: Sequence[bytes]) -> list[int]:
    """Where those are that do not travel as they are: few, among many, so nothing is done for each of the others."""
    try:
        firsts = bytes(map(_first, messages))
    except IndexError:  # an empty one
        return [place for place, one in enumerate(messages) if not one or one[0] == MARK]
    places = []
    place = firsts.find(MARK)
    while place >= 0:
        places.append(place)
        place = firsts.find(MARK, place + 1)
    return places


def body(sealed: bytes) -> bytes:
    """The published bytes, or text and JSON in their UTF-8 form, without looking at headers."""
    return sealed if sealed and sealed[0] != MARK else _open(sealed)[2]


def headers(sealed: bytes) -> dict[str, HeaderValue]:
    return {} if sealed and sealed[0] != MARK else _open(sealed)[0]


def principal(sealed: bytes) -> str | None:
    """Who published it, as the node it came in through says; None when that was nobody's client."""
    return None if sealed[:2] != OPENING else _split(sealed)[0]


def data(sealed: bytes) -> Any:
    """What was published, in the type it was published in."""
    if sealed and sealed[0] != MARK:
        return sealed
    _, kind, content = _open(sealed)
    if kind == BYTES:
        return content
    return _text(content) if kind == TEXT else _json(content)


def text(sealed: bytes) -> str:
    return _text(body(sealed))


def json(sealed: bytes) -> Any:
    return _json(body(sealed))


def _body(data: Any) -> tuple[int, bytes]:
    if isinstance(data, str):
        try:
            return TEXT, data.encode()
        except UnicodeEncodeError:
            raise BadInput("text to publish must be valid Unicode") from None
    if isinstance(data, bytes | bytearray | memoryview):
        return BYTES, bytes(data)
    try:
        encoded = _encode_json(data)
        # Read back in C and compared, which is quick: only what came back different is looked at, for what JSON cannot
        # say and would say otherwise.
        if _decode_json(encoded) != data:
            _check_json(data)
    except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError) as error:
        raise BadInput(f"{type(data).__name__} cannot be published: {error}") from None
    return JSON, encoded


def _check_json(data: Any) -> None:
    """ValueError for what JSON would change: tuples become lists and dataclasses objects, which loses nothing."""
    if isinstance(data, float) and not isfinite(data):
        raise ValueError(f"JSON has no {data}")
    if isinstance(data, bytes | bytearray | memoryview):
        raise ValueError("JSON has no bytes; publish them alone, or say how they are to be written")
    if isinstance(data, Set):
        raise ValueError(f"JSON has no {type(data).__name__}; make it a list")
    if isinstance(data, Mapping):
        for key, value in data.items():
            if not isinstance(key, str):
                raise ValueError(f"keys of JSON objects are text, not {key!r}")
            _check_json(value)
    elif isinstance(data, list | tuple):
        for one in data:
            _check_json(one)
    elif is_dataclass(data):
        _check_json([getattr(data, field.name) for field in fields(data)])
    elif isinstance(data, msgspec.Struct):
        _check_json([getattr(data, name) for name in data.__struct_fields__])


def _split(sealed: bytes) -> tuple[str | None, bytes]:
    try:
        return split(sealed)
    except (ValueError, IndexError) as error:
        raise RemoteProtocolError(f"a garbled stamp: {error}") from None


def _open(sealed: bytes) -> tuple[dict[str, HeaderValue], int, bytes]:
    if sealed[:2] == OPENING:
        sealed = _split(sealed)[1]
        if sealed and sealed[0] != MARK:
            return {}, BYTES, sealed
    kind = sealed[1] if len(sealed) > 1 else None
    if kind in (BYTES, TEXT, JSON):
        return {}, kind, sealed[2:]
    if kind != HEADED:
        raise RemoteProtocolError(f"an envelope of unknown kind {kind}: not published through this interface")
    try:
        found, inner, content = _decode_headed(memoryview(sealed)[2:])
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise RemoteProtocolError(f"a garbled envelope: {error}") from None
    if inner not in (BYTES, TEXT, JSON):
        raise RemoteProtocolError(f"a garbled envelope: content of unknown kind {inner}")
    return found, inner, content


def _text(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise RemoteProtocolError(f"the message is not text: {error}") from None


def _json(content: bytes) -> Any:
    try:
        return _decode_json(content)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise RemoteProtocolError(f"the message is not JSON: {error}") from None
