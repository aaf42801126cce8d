"""Independent random streams per concern, all derived from one seed.

Changing how many numbers one concern draws (say, a new fault) leaves every other concern's draws as they were.
"""

from random import Random


def stream(seed: int, *concern: object) -> Random:
    """Seeding with text goes through SHA-512, so it does not depend on the interpreter's hash seed."""
    return Random("/".join(map(str, (seed, *concern))))
