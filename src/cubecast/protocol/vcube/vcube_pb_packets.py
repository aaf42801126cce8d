"""What VCube-PB sends besides VCube-PS' publications and their acknowledgements."""

from dataclasses import dataclass

from cubecast.protocol.contract import Packet
from cubecast.protocol.vcube.packets import Entry


@dataclass(slots=True)
class Membership(Packet):
    """VCube-Top: what the sender learned about memberships since its last testing round."""

    news: tuple[tuple[str, Entry], ...]
