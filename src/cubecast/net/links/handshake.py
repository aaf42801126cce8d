"""The first frame each way: who is there, which versions it speaks, what it wants.

The caller greets; the other side answers with `Accepted`, or with `Refused` and closes. Three kinds of visitors:
another node (`Greeting`), a process that wants to become a node (`JoinRequest`), a thin client (`ClientGreeting`).
"""

from typing import Annotated, TypeAlias

import msgspec
from msgspec import Meta

from cubecast.errors import RemoteProtocolError
from cubecast.ids import ID_LIMIT
from cubecast.net.settings.fields import MAX_DIMENSION

MOST_PLACES = 1 << MAX_DIMENSION
"""That a node remembers, whatever ids there are."""
VERSION = 1
OLDEST_VERSION = 1
MAGIC = "cubecast"
OLD_PROTOCOL = "cubecast"
"""What a node runs that does not say so."""
UNHEARD_OF = -1
"""The incarnation of a place that is known from a cluster file only: the node that lives there is newer."""
LAST_INCARNATION = (1 << 31) - 1
"""What traces, logs and the memory of a node have room for; a node that lived it needs another id."""

# What is outside of these is refused when it is read, whatever anybody would have done with it. Ids are compared with
# the cube's size where that is known, so that the answer can say how large it is.
Version = Annotated[int, Meta(ge=0, le=1 << 16)]
Id = Annotated[int, Meta(ge=-ID_LIMIT, le=ID_LIMIT - 1)]
Lived = Annotated[int, Meta(ge=UNHEARD_OF, le=LAST_INCARNATION)]
Instance = Annotated[bytes, Meta(min_length=1, max_length=64)]
Name = Annotated[str, Meta(max_length=256)]
Secret = Annotated[str, Meta(max_length=1 << 14)]
Text = Annotated[str, Meta(max_length=4096)]


class Place(msgspec.Struct, frozen=True, array_like=True):
    """Where a node lives: `instance` is drawn anew by every process, so two that claim one id are told apart."""

    node: Id
    incarnation: Lived
    instance: Annotated[bytes, Meta(max_length=64)]
    """Empty for one that is known from a cluster file only."""
    address: Name


class Greeting(msgspec.Struct, frozen=True, array_like=True, tag="node"):
    magic: str
    oldest: Version
    newest: Version
    cluster: Name
    place: Place
    protocol: Name = OLD_PROTOCOL
    """What it runs, with a number for the parameters that must agree."""


class JoinRequest(msgspec.Struct, frozen=True, array_like=True, tag="join"):
    magic: str
    oldest: Version
    newest: Version
    cluster: Name
    instance: Instance
    wanted: Id | None
    """The id it would like, or None."""
    attempt: Annotated[int, Meta(ge=0, lt=1 << 31)] = 0
    """How often it was refused before."""
    protocol: Name = OLD_PROTOCOL


class ClientGreeting(msgspec.Struct, frozen=True, array_like=True, tag="client"):
    magic: str
    oldest: Version
    newest: Version
    cluster: Name
    name: Name
    token: Secret | None = None
    """Proves who it is, where that is asked for. It is part of the first message so that no address holds it."""
    key: Name | None = None
    """The name of a principal whose private key it has: it asks for a challenge."""
    fills: bool = False
    """A node that fills its log: one that does the same, and is not ready for clients, answers it all the same."""

    def __repr__(self) -> str:
        return f"ClientGreeting({self.name!r})"  # without the token, which belongs into no log


class Proof(msgspec.Struct, frozen=True, array_like=True, tag="proof"):
    """The answer to a challenge, instead of a second greeting."""

    signature: Annotated[bytes, Meta(max_length=4096)]


class Accepted(msgspec.Struct, frozen=True, array_like=True, tag="accepted"):
    version: int
    place: Place
    """Of the node that answers."""
    dimension: Annotated[int, Meta(ge=1, le=MAX_DIMENSION)]
    places: Annotated[list[Place], Meta(max_length=MOST_PLACES)]
    """Everybody it knows, or some, where no node needs to know all others."""
    offer: tuple[Annotated[int, Meta(ge=0, le=ID_LIMIT - 1)], Lived] | None = None
    """For a joiner: an id that is free and the incarnation to take it in."""
    max_payload: Annotated[int, Meta(ge=0, le=1 << 40)] = 0
    """For a client: how large a message may be; 0 where the node does not say."""


class Challenge(msgspec.Struct, frozen=True, array_like=True, tag="challenge"):
    """For a client that says to have a key: sign this."""

    challenge: Annotated[bytes, Meta(max_length=4096)]


NOT_READY = "this node is not ready yet"
"""Why callers are asked to come again while a node starts: no fault of theirs, nor of the node."""


class Refused(msgspec.Struct, frozen=True, array_like=True, tag="refused"):
    reason: Text
    retry: bool
    """Whether asking again, for another id or incarnation, can help."""
    newest_incarnation: Lived = UNHEARD_OF


Opening: TypeAlias = Greeting | JoinRequest | ClientGreeting
Answer: TypeAlias = Accepted | Refused | Challenge

_MALFORMED = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""Of what no caller means; the last is what lies in a frame too deep to be read."""
_encoder = msgspec.msgpack.Encoder()
_openings: msgspec.msgpack.Decoder[Opening] = msgspec.msgpack.Decoder(Opening)
_proofs = msgspec.msgpack.Decoder(Proof)
_answers: msgspec.msgpack.Decoder[Answer] = msgspec.msgpack.Decoder(Answer)


def encode(message: Opening | Answer | Proof) -> bytes:
    return _encoder.encode(message)


def decode_opening(frame: bytes) -> Opening:
    try:
        opening = _openings.decode(frame)
    except _MALFORMED as error:
        raise RemoteProtocolError(f"this is not a cubecast greeting: {error}") from None
    if opening.magic != MAGIC:
        raise RemoteProtocolError("this is not a cubecast greeting")
    if isinstance(opening, Greeting) and (opening.place.incarnation < 0 or not opening.place.instance):
        raise RemoteProtocolError("a node that greets lives, in an incarnation and a process of its own")
    return opening


def decode_proof(frame: bytes) -> Proof:
    try:
        return _proofs.decode(frame)
    except _MALFORMED as error:
        raise RemoteProtocolError(f"this is not the answer to a challenge: {error}") from None


def decode_answer(frame: bytes) -> Answer:
    try:
        answer = _answers.decode(frame)
    except _MALFORMED as error:
        raise RemoteProtocolError(f"this is not the answer of a cubecast node: {error}") from None
    if isinstance(answer, Accepted) and not OLDEST_VERSION <= answer.version <= VERSION:
        raise RemoteProtocolError(f"it answers in version {answer.version}, which it was not offered")
    return answer


def agreed(opening: Opening) -> int:
    """The version to speak with a caller to whom there is no `objection`: the newest that both know."""
    return min(VERSION, opening.newest)


def objection(opening: Opening, cluster: str) -> Refused | None:
    """What anybody would refuse: no version in common, or another cluster."""
    if opening.oldest > VERSION or opening.newest < OLDEST_VERSION:
        theirs = f"{opening.oldest} to {opening.newest}"
        ours = f"{OLDEST_VERSION} to {VERSION}"
        return Refused(f"no protocol version in common: you speak {theirs}, this node {ours}", retry=False)
    if opening.cluster != cluster:
        # Its name is not for everybody who calls.
        return Refused(f"this node does not belong to cluster {opening.cluster!r}; name its own", retry=False)
    return None


def protocol_objection(opening: Greeting | JoinRequest, protocol: str) -> Refused | None:
    """Nodes that run something else do not understand each other."""
    if opening.protocol == protocol:
        return None
    ours, theirs = (one.partition("/")[0] for one in (protocol, opening.protocol))
    if ours != theirs:
        return Refused(f"this cluster runs {ours}, not {theirs}: start with --protocol {ours}", retry=False)
    return Refused(f"parameters of {ours} that must be the same on all nodes differ; compare the settings", retry=False)
