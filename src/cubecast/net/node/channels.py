"""Subscriptions and publications of a node whose protocol looks into messages itself: a broker.

The protocol knows each subscription by a name and a filter. Here all of one pattern and one filter share a name, called
a channel, so that a thousand clients that want the same cost the network what one does. What is published is handed
over in runs of messages with the same attributes.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

from cubecast.errors import BadInput, NotKept
from cubecast.headers import attributes_of
from cubecast.ids import NodeId, Topic
from cubecast.net.links.turn import Turn
from cubecast.net.node.absence import Members
from cubecast.net.node.outgoing import Outgoing
from cubecast.net.node.subscriptions import Subscription, Subscriptions
from cubecast.net.port.port import Since, Sink
from cubecast.patterns import is_pattern
from cubecast.protocol.filters import Filter, parse
from cubecast.protocol.filters.values import as_text

# What a port asks of the node it belongs to.


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

    def members(self) -> Members:
        """All other processes it knows of."""

    def reach(self, nodes: Iterable[NodeId]) -> None:
        """Call those there is no link to."""

    def on_new_incarnation(self, incarnation: int) -> None: ...
    def status(self) -> dict[str, Any]: ...
    async def close(self) -> None: ...


AT_ONCE = 512
"""Messages in one step: each is looked at."""


class Channel(NamedTuple):
    name: str
    """The topic itself for the first that wants it, whatever its filter."""
    filter: str | None


class Channels:
    def __init__(self, call: Callable[..., None]) -> None:
        """`call` tells the protocol."""
        self._call = call
        self._names: dict[tuple[str, str | None], Channel] = {}
        self._users: dict[str, int] = {}
        self._advertised: dict[Topic, Filter] = {}
        self._withdrawn: set[Topic] = set()
        """Published on before, and not advertised any more."""

    # Subscribing

    def subscribe(
        self, subscriptions: Subscriptions, pattern: str, sink: Sink, since: Since | None, where: str | None
    ) -> int:
        if since is not None:
            raise NotKept("brokers keep no log, so a subscription cannot begin there")
        channel = self._join(pattern, where)
        number = subscriptions.open(pattern, sink, channel=channel.name)
        if subscriptions.attach(number, channel.name):
            self._call("subscribe", channel.name, channel.filter)
        subscriptions.check_ready_soon(number)
        return number

    def unsubscribe(self, subscriptions: Subscriptions, closed: Subscription) -> None:
        name = closed.channel
        if name is not None and self._leave(name):
            self._call("unsubscribe", name)
            subscriptions.forget_unheard((name,))

    def _join(self, pattern: str, where: str | None) -> Channel:
        """The channel of one more subscription; BadInput for what is no filter."""
        wanted = None if where is None else str(parse(where))
        channel = self._names.get((pattern, wanted))
        if channel is None:
            is_wild = is_pattern(pattern)
            name = pattern if is_wild and wanted is None else f"{pattern} where {wanted or 'true'}"
            if not is_wild and pattern not in self._users:
                name = pattern
            text = _topics(pattern) if wanted is None else f"{_topics(pattern)} and ({wanted})"
            parse(text)  # both together may be too much
            channel = self._names[pattern, wanted] = Channel(name, text)
        self._users[channel.name] = self._users.get(channel.name, 0) + 1
        return channel

    def _leave(self, name: str) -> bool:
        """One fewer; True when no subscriber is left."""
        self._users[name] -= 1
        if self._users[name]:
            return False
        del self._users[name]
        self._names = {key: one for key, one in self._names.items() if one.name != name}
        return True

        # Publishing

    def advertise(self, topic: Topic, where: str | None, outgoing: dict[Topic, Outgoing], budget: int) -> None:
        """BadInput for what is no filter, or another promise than before."""
        promise = parse(f"topic = {as_text(topic)}")
        promise = promise if where is None else promise.both(parse(where))
        if self._is_advertised(outgoing.get(topic)):
            if self._advertised.get(topic) == promise:
                return
            raise BadInput(f"{topic} is published here already; advertise it before, or unadvertise it first")
        self._advertised[topic] = promise
        self._withdrawn.discard(topic)
        if topic not in outgoing:
            outgoing[topic] = Outgoing(topic, budget)
        self._call("advertise", topic, str(promise))

    def unadvertise(self, topic: Topic, outgoing: dict[Topic, Outgoing]) -> None:
        """What was published before is still on its way, and counted on when the topic is published on again."""
        out = outgoing.get(topic)
        if out is None or not self._is_advertised(out):
            raise BadInput(f"{topic} is not advertised here")
        while out.pending:
            self._publish(out)
        self._advertised.pop(topic, None)
        self._withdrawn.add(topic)
        self._call("unadvertise", topic)

    def _is_advertised(self, out: Outgoing | None) -> bool:
        """By its advertisement, or by what was published."""
        return out is not None and (out.topic not in self._withdrawn or bool(out.pending))

    def hand_over(self, out: Outgoing) -> None:
        if out.is_worth_a_call:
            self._publish(out)

    def _publish(self, out: Outgoing) -> None:
        payloads = out.take(AT_ONCE)
        self._withdrawn.discard(out.topic)
        attributes = [attributes_of(out.topic, sealed) for sealed in payloads]
        self._call("publish", out.topic, payloads, out.is_awaited, attributes)

    def check(self, topic: Topic, payloads: Sequence[bytes]) -> None:
        """BadInput for what is outside of the topic's advertisement."""
        promised = self._advertised.get(topic)
        if promised is not None and not all(promised.matches(attributes_of(topic, one)) for one in payloads):
            raise BadInput(
                f"a message is outside of what {topic} is advertised with: {promised}. Publish it on another topic, or "
                "change the advertisement. Nothing was published"
            )


def _topics(pattern: str) -> str:
    """The topics of a pattern as a filter, or somewhat more: who delivers looks again."""
    if not is_pattern(pattern):
        return f"topic = {as_text(pattern)}"
    fixed = pattern[: min(pattern.find(sign) for sign in "*>" if sign in pattern)]
    return f"topic ^= {as_text(fixed)}" if fixed else "exists(topic)"
