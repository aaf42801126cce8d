"""What goes to the disk together, as the event loop gathered it. Follows decision 0034."""

from dataclasses import dataclass, field

from cubecast.log.index import Hole
from cubecast.log.record import Entry


@dataclass(slots=True, eq=False)
class Gathered:
    entries: list[Entry] = field(default_factory=list)
    holes: list[Hole] = field(default_factory=list)
    bytes: int = 0
    """Of memory."""

    def __len__(self) -> int:
        return len(self.entries) + len(self.holes)
