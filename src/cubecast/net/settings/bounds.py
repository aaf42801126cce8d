"""What no setting can exceed: sizes that the wire and the machine fix, whatever a node's operator chooses."""

from typing import Final

MAX_FRAME: Final = (1 << 20) + (1 << 17)
"""Bytes of a largest packet with its envelope."""
MAX_DIMENSION: Final = 13
"""Of a cube of nodes."""
FULL_BATCH: Final = 1024
"""Messages that wait in the machine: with so many it can always fill a batch."""
