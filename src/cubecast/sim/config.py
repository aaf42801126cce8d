"""One simulation as data: validated once, written into the trace header, enough to repeat the run."""

from dataclasses import asdict, dataclass, field
from typing import Any

from cubecast.errors import BadInput
from cubecast.protocol.vcube.topology import dimension_of


@dataclass(frozen=True)
class SimConfig:
    protocol: str
    nodes: int = 64
    publishers: str = "25%"
    subscribers: str = "100%"
    messages: int = 1
    window: float = 1000.0
    workload: str = "uniform"
    topics: int = 1
    zipf: float = 0.0
    payload_bytes: int = 50
    propagation: str = "constant:100"
    processing: float = 1.0
    transmission: float = 1.0
    fifo_links: bool = False
    queued_control: bool = True
    churn_session: float | None = None
    faults: str = ""
    detection_delay: float | None = None
    seed: int = 1
    coded: bool = False
    settings: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        dimension_of(self.nodes)
        for name in ("messages", "topics"):
            if getattr(self, name) < 1:
                raise BadInput(f"{name} must be at least 1, not {getattr(self, name)}")
        for name in ("processing", "transmission", "payload_bytes", "zipf"):
            if getattr(self, name) < 0:
                raise BadInput(f"{name} must not be negative, it is {getattr(self, name)}")
        for name in ("window", "churn_session"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise BadInput(f"{name} must be positive, not {value}")

    def count(self, name: str, total: int) -> int:
        """How many of `total` a share such as "25%" or a count such as "40" means; at least one."""
        text: str = getattr(self, name)
        try:
            share = text.endswith("%")
            number = total * float(text[:-1]) / 100 if share else int(text)
        except ValueError:
            raise BadInput(f"{name} must be a count or a share such as 25%, not {text!r}") from None
        if not 0 < number <= total:
            raise BadInput(f"{name} must be between 1 and {total} (or above 0% and up to 100%), not {text}")
        return max(1, round(number))

    def to_json(self) -> dict[str, Any]:
        return asdict(self)
