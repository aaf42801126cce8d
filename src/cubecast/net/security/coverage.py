"""Is everything a pattern selects selected by one of these grants?

A topic is a pattern that selects itself, so one question serves publications and subscriptions. The answer is exact:
`a.>` is covered by `a.*` and `a.*.>` together. Both sides are read word by word; what is left of each grant after the
words read so far is a state, and a wildcard of the pattern has to succeed for every word that some grant names and for
one that none does.
"""

from collections.abc import Iterable

from cubecast.patterns import ONE, REST, is_pattern

Words = tuple[str, ...]
State = frozenset[Words]

MOST_STATES = 2_000
"""A question that needs more is answered with no: operators do not write such grants by hand."""
OTHER = " "
"""A word that no grant names; no word of a pattern holds a space."""
ENDED: Words = ()


def covers(grants: Iterable[Words], pattern: str) -> bool:
    """`pattern` must be valid. Topics kept for machinery (`_inbox.…`) are granted one by one, never by wildcard: their
    names are secrets of those who made them up."""
    if pattern.startswith("_") and is_pattern(pattern):
        return False
    return _Question().holds(tuple(pattern.split(".")), frozenset(grants), is_first=True)


class _Question:
    def __init__(self) -> None:
        self._answers: dict[tuple[Words, State, bool], bool] = {}

    def holds(self, pattern: Words, grants: State, *, is_first: bool = False) -> bool:
        """Do the grants select every continuation that the pattern selects?"""
        if not grants:
            return False
        if not pattern:
            return ENDED in grants
        if grants == {(REST,)} and not is_first:
            return True
        key = pattern, grants, is_first
        if key not in self._answers:
            if len(self._answers) >= MOST_STATES:
                return False
            self._answers[key] = True  # for `>`, which comes back to where it was: unless a rule says otherwise
            self._answers[key] = self._step(pattern, grants, is_first)
        return self._answers[key]

    def _step(self, pattern: Words, grants: State, is_first: bool) -> bool:
        word, rest = pattern[0], pattern[1:]
        if word not in (ONE, REST):
            return self.holds(rest, _after(grants, word, is_first))
        named = {grant[0] for grant in grants if grant} - {ONE, REST}
        if is_first:
            named = {one for one in named if not one.startswith("_")}
        for one in (*sorted(named), OTHER):
            left = _after(grants, one, is_first)
            if not self.holds(rest, left) or (word == REST and not self.holds(pattern, left)):
                return False
        return True


def _after(grants: State, word: str, is_first: bool) -> State:
    """What is left of the grants once the word was read; those that do not allow it are gone."""
    left: set[Words] = set()
    kept = is_first and word.startswith("_")
    for grant in grants:
        if not grant:
            continue
        if grant[0] == word or (grant[0] == ONE and not kept):
            left.add(grant[1:])
        elif grant[0] == REST and not kept:
            left |= {ENDED, (REST,)}
    return frozenset(left)
