"""What a port asks of the node it belongs to."""

from typing import Any, Protocol

from cubecast.ids import Topic
from cubecast.net.links.turn import Turn


class Host(Protocol):
    @property
    def turn(self) -> Turn:
        """Of the links: what is published is written without another pass through the event loop."""

    def call(self, name: str, *arguments: Any) -> None:
        """An input for the machine; nothing happens while there is none."""

    def hold_back(self, topic: Topic) -> None:
        """A subscriber of the topic does not read."""

    def let_through(self, topic: Topic) -> None:
        """It reads again."""

    def envelope_bytes(self, topic: Topic) -> int:
        """What a publication on the topic would take besides its messages."""

    def reaches(self, topic: Topic) -> bool:
        """Is there any subscriber of the topic on another node?"""

    def on_new_incarnation(self, incarnation: int) -> None: ...
    def status(self) -> dict[str, Any]: ...
    async def close(self) -> None: ...
