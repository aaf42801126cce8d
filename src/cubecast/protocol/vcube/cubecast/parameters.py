"""What can be chosen about the protocol, validated once."""

from dataclasses import dataclass
from enum import Enum
from typing import Final

from cubecast.errors import BadInput
from cubecast.protocol.vcube.topology import MAX_DIMENSION

MOST_MESSAGES: Final = 65_536
"""Per publication, whoever publishes it: nodes may choose different `max_batch`."""


class Detection(Enum):
    """Who notices that a peer is silent."""

    DRIVER = "driver"  # only what the driver reports
    DIAGNOSIS = "diagnosis"  # VCube testing rounds of the machine's own, besides


class Aggregation(Enum):
    """Whether publications on their way to the same child share packets."""

    OFF = "off"  # each leaves as it comes
    ON = "on"  # those of one step together, and what a child could not deliver yet waits for what it depends on


@dataclass(frozen=True, slots=True)
class Parameters:
    """Times are in the driver's unit (u.t. simulated, seconds live)."""

    dimension: int
    founders: int = 0
    """Mask of the ids that start together as incarnation 0 and know of each other; anybody else says hello first."""
    ids: int = 0
    """Mask of the ids that may ever be held; 0 means all of the cube."""
    window: int = 8
    """Own publications (batches) per topic that may be unstable at a time."""
    eager: int = 0
    """With so many unstable only full publications leave; smaller ones wait for company. 0: they never do."""
    calm: int = 0
    """The same for a source that was not made to wait since all of its publications were stable; 0: no different."""
    direct: int = 0
    """To so many others at most a source sends small publications itself while it is calm: one hop, no tree."""
    max_batch: int = 512
    """Messages per publication at most."""
    max_batch_bytes: int = 65_536
    """Payload bytes per publication at most; a larger message goes alone."""
    ack_delay: float = 0.0
    """How long acknowledgements may wait for company, at each level of a tree; who needs them says so (`hurry`)."""
    retry: float = 400.0
    """After this long without an answer things are sent again; more than a round trip."""
    detection: Detection = Detection.DRIVER
    round_length: float = 500.0
    patience: float = 2000.0
    """A tested peer silent for this long is held faulty; a joining node alone for this long starts alone."""
    max_dependencies: int = 65_536
    aggregation: Aggregation = Aggregation.OFF

    def __post_init__(self) -> None:
        if not 1 <= self.dimension <= MAX_DIMENSION:
            raise BadInput(f"the dimension must be between 1 and {MAX_DIMENSION}, not {self.dimension}")
        for name in ("window", "max_batch", "max_batch_bytes", "max_dependencies"):
            if getattr(self, name) < 1:
                raise BadInput(f"{name} must be at least 1, not {getattr(self, name)}")
        for name in ("retry", "round_length", "patience"):
            if not getattr(self, name) > 0:
                raise BadInput(f"{name} must be positive, not {getattr(self, name)}")
        if self.max_batch > MOST_MESSAGES:
            raise BadInput(f"max_batch must be at most {MOST_MESSAGES}, not {self.max_batch}")
        for name in ("eager", "calm", "direct"):
            if getattr(self, name) < 0:
                raise BadInput(f"{name} must be at least 0, not {getattr(self, name)}")
        if not 0 <= self.ack_delay < self.retry:
            raise BadInput(f"ack_delay must be at least 0 and less than retry, not {self.ack_delay}")
        if self.detection is Detection.DIAGNOSIS and self.patience < 2 * self.round_length:
            raise BadInput("patience must last at least two rounds, or every late answer is a crash")
        if (self.founders | self.ids) >> self.size:
            raise BadInput(f"ids and founders must lie within the cube's {self.size} ids")

    @property
    def size(self) -> int:
        return 1 << self.dimension

    @property
    def most_unstable(self) -> int:
        """Messages of one source on one topic that can be missing somewhere; sixteen times that, for a wider window."""
        return 16 * self.window * self.max_batch

    @property
    def hurry_from(self) -> int:
        """The own publication that makes so many unstable asks to be acknowledged at once: soon the next ones wait."""
        few = max(self.eager, self.calm) if self.eager else self.window
        return max(1, 3 * min(few, self.window) // 4)

    @property
    def universe(self) -> int:
        return self.ids | self.founders if self.ids else (1 << self.size) - 1
