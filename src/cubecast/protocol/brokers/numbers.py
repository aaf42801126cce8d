"""Sets of numbers that fill up from below: a prefix without holes and the few beyond it.

Numbers and turns begin anew in each life of a broker, behind all of the lives before: the high bits name the life, or,
for numbers that one broker gives another, the lives of both together. Follows decision 0053.
"""

LIFE_BITS = 40
MOST_LIVES = 1 << 20


def life_of(number: int) -> int:
    return number >> LIFE_BITS


def first_of(life: int) -> int:
    """What the numbers of a life begin behind."""
    return life << LIFE_BITS


class Numbers:
    """Numbers from 1 on. What is far behind the newest may be forgotten: it then counts as seen."""

    __slots__ = ("beyond", "prefix")

    def __init__(self, start: int = 0) -> None:
        self.prefix = start
        self.beyond: set[int] = set()

    def __contains__(self, number: int) -> bool:
        return number <= self.prefix or number in self.beyond

    def add(self, number: int) -> bool:
        """Whether the prefix grew."""
        if number in self:
            return False
        if number != self.prefix + 1:
            self.beyond.add(number)
            return False
        beyond = self.beyond
        while number + 1 in beyond:
            number += 1
            beyond.discard(number)
        self.prefix = number
        return True

    def skip_to(self, number: int) -> None:
        """Everything up to this counts as seen."""
        if number > self.prefix:
            self.prefix = number
            self.beyond = {one for one in self.beyond if one > number}
            while self.prefix + 1 in self.beyond:
                self.prefix += 1
                self.beyond.discard(self.prefix)


class TurnWindow:
    """Which of a broker's last turns were processed here, as bits; older ones count as processed."""

    __slots__ = ("_bits", "_newest")
    SIZE = 1 << 16

    def __init__(self) -> None:
        self._newest = 0
        self._bits = 0

    def __contains__(self, turn: int) -> bool:
        behind = self._newest - turn
        if behind < 0:
            return False
        return behind >= self.SIZE or bool(self._bits >> behind & 1)

    def add(self, turn: int) -> None:
        ahead = turn - self._newest
        if ahead > 0:
            self._bits = (self._bits << ahead | 1) & (1 << self.SIZE) - 1 if ahead < self.SIZE else 1
            self._newest = turn
        elif -ahead < self.SIZE:
            self._bits |= 1 << -ahead
