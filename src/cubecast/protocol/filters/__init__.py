"""Filters over the content of messages: what a subscription wants, what a publisher advertises.

`parse` reads the text form, `Filter` answers `matches`, `covers` and `intersects`, `MatchingIndex` finds the filters
that match an event without looking at all of them. Shared by every family, as `order` is.
"""

from cubecast.protocol.filters.conditions import ALL, Conjunction, Filter, Term
from cubecast.protocol.filters.index import MatchingIndex
from cubecast.protocol.filters.text import parse
from cubecast.protocol.filters.values import Attributes, Value

__all__ = ["ALL", "Attributes", "Conjunction", "Filter", "MatchingIndex", "Term", "Value", "parse"]
