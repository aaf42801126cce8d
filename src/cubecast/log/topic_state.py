"""What is known of one topic without asking the database."""

from dataclasses import dataclass, field

from cubecast.ids import MessageId, Topic
from cubecast.log.record import Cut, Damage

NOTHING = (-1, 0)


@dataclass(slots=True)
class LoggedTopic:
    topic: Topic
    first: int = 1
    """The first offset kept."""
    last: int = 0
    """The last offset given."""
    committed: int = 0
    """The last offset in the database."""
    newest: Cut = field(default_factory=dict)
    """Per publisher the newest message ever logged, whether or not it is still kept."""
    damaged: list[Damage] = field(default_factory=list)
    """In the order of offsets."""

    def note(self, first: MessageId, count: int) -> None:
        """These follow."""
        self.last += count
        source, incarnation, counter = first
        position = incarnation, counter + count - 1
        if self.newest.get(source, NOTHING) < position:
            self.newest[source] = position

    def commit(self, last: int) -> None:
        """Everything up to this offset is in the database."""
        self.committed = max(self.committed, last)
