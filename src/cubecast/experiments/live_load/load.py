"""What the members of a benchmark are asked to do."""

from dataclasses import dataclass
from pathlib import Path

from cubecast.net.settings.security import TlsSettings


@dataclass(frozen=True)
class Load:
    """What every member does."""

    members: int
    size: int = 64
    publish: str = "batch"
    """`batch`: lists of messages · `single`: one call per turn of the event loop · `rate`: at `rate` a second."""
    read: str = "callback"
    """`callback`: a function per batch · `iterate`: one `async for` step per message."""
    rate: float = 0.0
    batch: int = 256
    messages: int | None = None
    """How many each member publishes; as many as it can when None."""
    journal: Path | None = None
    tls: TlsSettings | None = None
    observe: bool = False
    data: Path | None = None
    """Where members keep a log of everything, when they do."""
    loggers: int | None = None
    """How many of them do; all when None."""
