"""One simulation as data: validated once, written into the trace header, enough to repeat the run. Every random choice
comes from its seed.
"""

import json
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from math import inf
from random import Random
from typing import Any

from cubecast.errors import BadInput
from cubecast.protocol.families import find


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
    tags: int = 1
    """Topics of each message."""
    payload_bytes: int = 50
    propagation: str = "constant:100"
    processing: float = 1.0
    transmission: float = 1.0
    reception: float = 0.0
    fifo_links: bool = False
    queued_control: bool = True
    churn_session: float | None = None
    faults: str = ""
    detection_delay: float | None = None
    seed: int = 1
    coded: bool = False
    until: float | None = None
    """The run ends here at the latest; needed by protocols that do not come to rest."""
    roles: str = ""
    publishers_from: str = "subscribers"
    """subscribers, all, or a role."""
    subscriptions: str = ""
    """A table of `cubecast workload` in place of `subscribers` and `topics`."""
    churn_nodes: str = ""
    join_window: float | None = None
    """Nodes come one after another within this time; without, all are there from the start."""
    contacts: int = 1
    settings: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        find(self.protocol).population.check(self.protocol, self.nodes)
        for name in ("messages", "topics", "tags", "contacts"):
            if getattr(self, name) < 1:
                raise BadInput(f"{name} must be at least 1, not {getattr(self, name)}")
        for name in ("processing", "transmission", "reception", "payload_bytes", "zipf"):
            if not 0 <= getattr(self, name) < inf:
                raise BadInput(f"{name} must be a number from 0 on, not {getattr(self, name)}")
        for name in ("window", "churn_session", "detection_delay", "until", "join_window"):
            value = getattr(self, name)
            if value is not None and not 0 < value < inf:
                raise BadInput(f"{name} must be positive and finite, not {value}")

    @property
    def is_static(self) -> bool:
        """Nobody subscribes, unsubscribes, comes or goes while it runs."""
        return self.churn_session is None and self.join_window is None and not self.churn_nodes

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

    def fingerprint(self) -> str:
        """Eight digits that differ when anything differs: two settings must not share the name of a run."""
        return blake2b(json.dumps(self.to_json(), sort_keys=True).encode(), digest_size=4).hexdigest()

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


# Independent random streams per concern, all derived from one seed.
#
# Changing how many numbers one concern draws (say, a new fault) leaves every other concern's draws as they were.


def stream(seed: int, *concern: object) -> Random:
    """Seeding with text goes through SHA-512, so it does not depend on the interpreter's hash seed."""
    return Random("/".join(map(str, (seed, *concern))))
