"""How a process gets an id, an incarnation and the others' addresses."""

import asyncio
import logging
from dataclasses import dataclass, field, replace

from cubecast.addresses import Address
from cubecast.errors import BadInput, RemoteProtocolError, Unreachable
from cubecast.ids import Incarnation, NodeId
from cubecast.net.links.calling import advice, call
from cubecast.net.links.handshake import (
    MAGIC,
    OLDEST_VERSION,
    UNHEARD_OF,
    VERSION,
    Accepted,
    JoinRequest,
    Place,
    Refused,
)
from cubecast.net.links.login import Dialling
from cubecast.net.members.memory import Members, known_members, last_incarnation
from cubecast.net.settings.config import NodeConfig

log = logging.getLogger(__name__)

ATTEMPTS = 5
PAUSE = 0.1


class NotReady(BadInput):
    """Those that answer do not take part themselves."""


@dataclass(frozen=True)
class Admission:
    node: NodeId
    incarnation: Incarnation
    dimension: int
    places: list[Place] = field(default_factory=list)
    is_founder: bool = False


async def apply_for_a_place(
    config: NodeConfig, instance: bytes, attempt: int, secure: Dialling | None = None
) -> Admission:
    """Ask the members we know of; without any, found a cluster."""
    remembered = last_incarnation(config)
    if config.join:
        known = known_members(config)
        if known is not None:
            return await _come_back(config, known, instance, attempt, remembered, secure)
        return await _ask_members(config, config.join, instance, attempt, remembered, secure)
    others = tuple(address for node, address in config.peers.items() if node != config.node)
    node = config.node or 0
    if others:
        try:
            return await _ask_members(config, others, instance, attempt, remembered, secure, attempts=1)
        except (BadInput, Unreachable) as error:
            log.info("nobody takes part yet: %s", error)
        return Admission(node, remembered + 1, config.dimension, _places_to_begin_with(config, node))
    return Admission(node, remembered + 1, config.dimension, is_founder=remembered < 0)


def _places_to_begin_with(config: NodeConfig, node: NodeId) -> list[Place]:
    """Of the nodes that were set, and of members of earlier that joined these and did not say goodbye."""
    others = {peer: str(address) for peer, address in config.peers.items() if peer != node}
    known = known_members(config)
    if known is not None and (known.node, known.dimension) == (node, config.dimension):
        taken = {str(address) for address in config.peers.values()}
        joined = {peer: at for peer, at in known.places.items() if peer not in known.left and at not in taken}
        others = joined | others
    return [Place(peer, UNHEARD_OF, b"", address) for peer, address in sorted(others.items())]


async def _come_back(
    config: NodeConfig,
    known: Members,
    instance: bytes,
    attempt: int,
    remembered: Incarnation,
    secure: Dialling | None,
) -> Admission:
    """A member of earlier asks those it remembers, too. When none is up, as after a power cut, it begins with them as
    with a fixed set of nodes: one of them has to be the first."""
    members = tuple(dict.fromkeys((*config.join, *map(Address.parse, known.places.values()))))
    if attempt or (config.node is not None and config.node != known.node):
        return await _ask_members(config, members, instance, attempt, remembered, secure)
    mine = replace(config, node=known.node)
    try:
        return await _ask_members(mine, members, instance, attempt, remembered, secure, attempts=1)
    except (NotReady, Unreachable) as error:
        log.warning("%s; this node begins again with those it remembers: %s", error, known.places)
    except BadInput:
        return await _ask_members(config, members, instance, attempt, remembered, secure)  # maybe another id
    places = [Place(node, UNHEARD_OF, b"", address) for node, address in known.places.items()]
    return Admission(known.node, remembered + 1, known.dimension, places)


async def _ask_members(
    config: NodeConfig,
    members: tuple[Address, ...],
    instance: bytes,
    attempt: int,
    remembered: Incarnation,
    secure: Dialling | None,
    attempts: int = ATTEMPTS,
) -> Admission:
    problem, is_silent, is_taken = "", False, False
    request = JoinRequest(
        MAGIC, OLDEST_VERSION, VERSION, config.cluster, instance, config.node, attempt, config.signature
    )
    for turn in range(attempts):
        hopeless = 0
        for member in members:
            try:
                connection, answer = await call(member, request, secure=secure)
            except (OSError, RemoteProtocolError) as error:
                problem = f"no member answers at {member}: {str(error) or 'it took too long'}"
                hopeless += isinstance(error, RemoteProtocolError)
                is_silent = isinstance(error, OSError)
                continue
            connection.close()
            if isinstance(answer, Accepted) and answer.offer is not None:
                node, incarnation = answer.offer
                return Admission(node, max(incarnation, remembered + 1), answer.dimension, answer.places)
            if isinstance(answer, Refused):
                problem, is_silent = f"{member} refuses: {answer.reason}", False
                is_taken = answer.newest_incarnation != UNHEARD_OF  # perhaps by a process that has just ended
                if not answer.retry:
                    raise BadInput(problem)
        if hopeless == len(members):
            break  # no cubecast node, or one that does not believe us: another try would end the same way
        if turn + 1 < attempts:
            await asyncio.sleep(PAUSE * (turn + 1))
    if is_silent:
        raise Unreachable(problem + advice(members[-1], problem))
    raise BadInput(problem) if is_taken else NotReady(problem)
