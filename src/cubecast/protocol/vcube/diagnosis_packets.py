"""What VCube's diagnosis sends: a test and its reply."""

from dataclasses import dataclass
from typing import ClassVar

from cubecast.protocol.contract import Packet


@dataclass(slots=True)
class Test(Packet):
    """Are you there? `event` is the tester's event counter for the tested node, so that it hears of a suspicion."""

    __test__: ClassVar[bool] = False  # not a test case, whatever a test runner thinks of the name

    number: int
    event: int


@dataclass(slots=True)
class TestReply(Packet):
    """Yes; and this is what I know of everybody: one event counter per id."""

    __test__: ClassVar[bool] = False

    number: int
    events: tuple[int, ...]
