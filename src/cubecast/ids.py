"""The words every room uses for naming things. No behaviour."""

from typing import NamedTuple, TypeAlias

NodeId: TypeAlias = int
"""A participant; on the hypercube 0 … 2^d − 1, elsewhere live a number below `ID_LIMIT` that it drew itself."""

ID_LIMIT = 1 << 63
"""What traces, logs and certificates have room for."""

Incarnation: TypeAlias = int
"""How many times the holder of an id has restarted."""

Topic: TypeAlias = str

Counter: TypeAlias = int
"""A publisher's publications on one topic, from 1, without gaps."""


class MessageId(NamedTuple):
    """Identity of a publication within its topic."""

    source: NodeId
    incarnation: Incarnation
    counter: Counter
