"""What VCube-PB sends besides VCube-PS' publications and their acknowledgements."""

from dataclasses import dataclass
from typing import Any

from cubecast.protocol.contract import Packet
from cubecast.protocol.vcube.packets import Entry, check_ids


@dataclass(slots=True)
class Membership(Packet):
    """VCube-Top: what the sender learned about memberships since its last testing round."""

    news: tuple[tuple[str, Entry], ...]

    @staticmethod
    def check(values: tuple[Any, ...]) -> None:
        check_ids("Membership", (entry.node for _, entry in values[0]))
