"""How many topics each principal has brought up at a node.

A node keeps the counters of a topic for as long as it lives, and so does everybody who hears of it. So making up names
must have an end, and connecting anew under the same name is no new beginning.
"""

from collections import Counter
from collections.abc import Callable

from cubecast.errors import BadInput
from cubecast.ids import Topic
from cubecast.net.security.principal import Principal


class TopicShares:
    """Counts per name; a policy names only so many."""

    def __init__(self, is_known: Callable[[Topic], bool]) -> None:
        self._is_known = is_known
        self._brought: Counter[str] = Counter()

    def take(self, principal: Principal, topic: Topic, most: int) -> None:
        """BadInput when the topic is new here, and one too many."""
        if principal.is_unrestricted or self._is_known(topic):
            return
        if self._brought[principal.name] >= most:
            raise BadInput(
                f"{principal.name} brought up {most} topics at this node, which keeps each of them, and may not "
                f"bring up {topic}: say it on one that exists, or have limits.topics_per_principal raised"
            )
        self._brought[principal.name] += 1
