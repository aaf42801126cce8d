"""A live node's machine, made from plain values that a record of its inputs keeps, so that it can be made again."""

from dataclasses import dataclass
from random import Random
from typing import Any

from cubecast.ids import Incarnation, NodeId
from cubecast.net.members.joining import Admission
from cubecast.net.settings.config import NodeConfig
from cubecast.protocol.contract import Machine
from cubecast.protocol.families import find
from cubecast.protocol.family import Seat, Setup


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
