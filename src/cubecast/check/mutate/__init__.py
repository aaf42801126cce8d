"""Tests the checker: small ways to break a clean trace, each with the property that must then be reported.

Every mutation is a pure function of a studied trace and a random source; `Mutator.apply` takes plain events.
"""

from typing import Final

from cubecast.check.mutate import add, damage, lose, reorder, restate
from cubecast.check.mutate.study import REGISTRY, Mutator, Study

__all__ = ["MUTATORS", "Mutator", "Study", "add", "damage", "lose", "reorder", "restate"]

MUTATORS: Final[dict[str, Mutator]] = REGISTRY.mutators
"""All kinds by name. A mutator that names no property expects UNKNOWN."""
