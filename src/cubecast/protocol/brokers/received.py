"""What a broker has processed of others, by their numbers and by their turns: what comes twice, and what is missing.

Both begin anew with each life of a broker, so that nothing said of an earlier life is taken for news of this one.
"""

from cubecast.ids import NodeId
from cubecast.protocol.brokers.packets import Header, Table

# Sets of numbers that fill up from below: a prefix without holes and the few beyond it.
#
# Numbers and turns begin anew in each life of a broker, behind all of the lives before: the high bits name the life,
# or, for numbers that one broker gives another, the lives of both together. Follows decision 0053.

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


# What was processed.


class Received:
    def __init__(self, me: NodeId, life: int) -> None:
        self.me = me
        self.life = life
        self.lives: Table = {}
        """Of brokers nearby that restarted, the life they were taken back in."""
        self.removed: set[NodeId] = set()
        self._left_behind: dict[NodeId, set[int]] = {}
        """Of brokers that were removed: numbers of messages that are here and not processed yet; others are lost."""
        self._got: dict[tuple[NodeId, int], Numbers] = {}
        """By broker, and both lives together."""
        self._turns: dict[tuple[NodeId, int], TurnWindow] = {}
        """By broker and its life."""

    def life_of(self, broker: NodeId) -> int:
        return self.life if broker == self.me else self.lives.get(broker, 0)

    def lives_with(self, broker: NodeId) -> int:
        """What numbers between the two of us begin with."""
        return self.life + self.lives.get(broker, 0)

    def numbers(self, broker: NodeId, number: int | None = None) -> Numbers:
        """Those processed of the broker's: of the lives that this number is of, or of the present ones."""
        lives = self.lives_with(broker) if number is None else life_of(number)
        numbers = self._got.get((broker, lives))
        if numbers is None:
            numbers = self._got[broker, lives] = Numbers(first_of(lives))
        return numbers

    def prefixes(self) -> Table:
        """Up to which number everything was processed, by broker."""
        return {broker: self.numbers(broker).prefix for broker, _ in sorted(self._got)}

    def is_duplicate(self, header: Header, turn: int) -> bool:
        """Was it processed here? `turn` is this broker's own."""
        me, turns, got = self.me, self._turns, self._got
        for broker, one in header.turns.items():
            if broker == me:
                if one <= turn and life_of(one) == self.life:
                    return True
            else:
                window = turns.get((broker, life_of(one)))
                if window is not None and one in window:
                    return True
        for broker, numbers in header.stamps.items():
            number = numbers.get(me)
            if number is not None:
                known = got.get((broker, life_of(number)))
                if known is not None and number in known:
                    return True
        return False

    def missing(self, header: Header) -> NodeId | None:
        """A broker of which something must be processed before this copy. Numbers of other stampers do not order."""
        me, stamps = self.me, header.stamps
        for broker, number in header.past.get(me, {}).items():
            needed = number - 1 if stamps.get(broker, {}).get(me) == number else number
            if self.is_awaited(broker, needed):
                return broker
        number = stamps.get(header.by, {}).get(me, 0)
        return header.by if number and self.is_awaited(header.by, number - 1) else None

    def is_awaited(self, broker: NodeId, number: int) -> bool:
        """Is something that the broker issued up to this number missing, and may it still come? Not of an earlier life
        of it or of this one, and of a removed broker only what is here."""
        life, now = life_of(number), self.lives_with(broker)
        if life < now:
            return False
        if broker in self.removed and life == now:
            return any(one <= number for one in self._left_behind.get(broker, ()))
        return self.numbers(broker).prefix < number

    def leave_behind(self, header: Header) -> None:
        """It is here and waits; if brokers that gave it a number are removed, what came after it there waits for it."""
        for tables in (header.stamps, header.labels):
            for broker in self.removed & tables.keys():
                number = tables[broker].get(self.me, 0)
                if number not in self.numbers(broker, number) and life_of(number) == self.lives_with(broker):
                    self._left_behind.setdefault(broker, set()).add(number)

    def add(self, broker: NodeId, number: int) -> bool:
        """Processed. May something that waited for this be processed now?"""
        left = self._left_behind.get(broker, set())
        was_left = number in left
        left.discard(number)
        return self.numbers(broker, number).add(number) or was_left

    def is_of_the_past(self, header: Header) -> bool:
        """Was it issued only to, or by, lives that are over? What it says of order means nothing here then."""
        tables = (*header.stamps.items(), *header.labels.items())
        issued = [(broker, numbers[self.me]) for broker, numbers in tables if self.me in numbers]
        return bool(issued) and all(life_of(number) < self.lives_with(broker) for broker, number in issued)

    def note_turns(self, header: Header) -> None:
        for broker, turn in header.turns.items():
            if broker != self.me:
                window = self._turns.get((broker, life_of(turn)))
                if window is None:
                    window = self._turns[broker, life_of(turn)] = TurnWindow()
                window.add(turn)

    def admit(self, broker: NodeId, life: int) -> None:
        """It was taken back in this life. Of its last one something may still be under way, of those before not."""
        self.lives[broker] = life
        self.removed.discard(broker)
        self._left_behind.pop(broker, None)
        self._got = {key: one for key, one in self._got.items() if key[0] != broker or key[1] >= life + self.life - 1}
        self._turns = {key: one for key, one in self._turns.items() if key[0] != broker or key[1] >= life - 1}
