"""What can be chosen about the protocol, validated once, and the timers its machine sets. Follows decision 0017."""

from dataclasses import dataclass
from enum import Enum
from typing import Final

from cubecast.errors import BadInput
from cubecast.protocol.hypercube.topology import MAX_DIMENSION
from cubecast.protocol.parameters import check_parameters, parameter

MOST_MESSAGES: Final = 65_536
"""Per publication, whoever publishes it: nodes may choose different `max_batch`."""


class Detection(Enum):
    """Who notices that a peer is silent."""

    DRIVER = "driver"  # only what the driver reports
    DIAGNOSIS = "diagnosis"  # VCube testing rounds of the machine's own, besides


class Timer(Enum):
    RETRY = "retry"
    ROUND = "round"
    ALONE = "alone"
    ACKS = "acks"
    WISHES = "wishes"


class Aggregation(Enum):
    """Whether publications on their way to the same child share packets."""

    OFF = "off"  # each leaves as it comes
    ON = "on"  # those of one step together, and what a child could not deliver yet waits for what it depends on


@dataclass(frozen=True, slots=True)
class Parameters:
    """Times are in the driver's unit (u.t. simulated, seconds live)."""

    dimension: int = 1
    founders: int = 0
    """Mask of the ids that start together as incarnation 0 and know of each other; anybody else says hello first."""
    ids: int = 0
    """Mask of the ids that may ever be held; 0 means all of the cube."""
    window: int = parameter(
        8, "own publications (batches) per topic that may be unstable at a time", live=16, least=1, most=4096
    )
    eager: int = parameter(
        0,
        "with so many own publications unstable only full ones leave, the others pile up; 0: small ones always may",
        live=2,
        least=0,
        most=4096,
    )
    calm: int = parameter(
        0,
        "as `eager`, for a source that was not made to wait since all it published was stable; 0: no different",
        live=16,
        least=0,
        most=4096,
    )
    direct: int = parameter(
        0,
        "others at most to whom a source sends small publications itself, while it is calm; 0: never",
        live=15,
        least=0,
        most=1 << MAX_DIMENSION,
    )
    max_batch: int = parameter(512, "messages per publication at most; nodes may differ", least=1, most=MOST_MESSAGES)
    max_batch_bytes: int = parameter(
        65_536, "payload bytes per publication; a larger message goes alone", live=256 << 10, least=1, unit="bytes"
    )
    ack_delay: float = parameter(
        0.0,
        "how long acknowledgements that nobody waits for may be kept to travel together, at each level of a tree",
        live=0.07,
        least=0,
        unit="time",
    )
    retry: float = parameter(
        1000.0,
        "without an answer for this long things are sent again; more than a round trip",
        live=0.5,
        above=0,
        unit="time",
    )
    detection: Detection = parameter(
        Detection.DRIVER,
        "who notices silent peers: driver (only what it reports) or diagnosis (testing rounds besides)",
        live=Detection.DIAGNOSIS,
    )
    round_length: float = parameter(1000.0, "how often living peers are tested", live=0.5, above=0, unit="time")
    patience: float = parameter(
        4000.0,
        "a tested peer silent for this long is held faulty, a joining node starts alone; at least two rounds",
        live=3.0,
        above=0,
        unit="time",
    )
    max_dependencies: int = parameter(65_536, "dependencies of a publication that are believed at most", least=1)
    topics_per_answer: int = parameter(500, "topics in one answer to an inquiry at most", least=1)
    announcement_bytes: int = parameter(
        256 << 10, "of an announcement of what faulty nodes left that travel in one packet", least=1, unit="bytes"
    )
    aggregation: Aggregation = parameter(
        Aggregation.OFF,
        "on: publications on their way to the same child share packets; fewer packets where answers overtake questions",
    )

    def __post_init__(self) -> None:
        if not 1 <= self.dimension <= MAX_DIMENSION:
            raise BadInput(f"the dimension must be between 1 and {MAX_DIMENSION}, not {self.dimension}")
        check_parameters(self)
        if self.ack_delay >= self.retry:
            raise BadInput(f"ack_delay must be less than retry, not {self.ack_delay}")
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
