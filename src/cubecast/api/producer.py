"""Publishing each message once, whatever happens to nodes and connections on the way.

A producer gives its messages numbers, on each topic from 1, which travel in a header. After any interruption it asks
every member for the last number in its log, publishes behind that, and so repeats nothing:

* it registers with its name and epoch at each living member, which from then on takes nothing from older connections,
  and says what its log has once all that it accepted is there;
* it waits until its own node has settled what members left that are gone: nothing more of theirs will be delivered;
* it waits until all logs agree. Where one has more than the others for good, which happens when a node wrote its
  messages to the disk and was killed before anybody got them, the least counts: the others get what they lack, and
  that one log has those messages twice, with the same header.

A member that lives and cannot be asked stops it: better late than twice. Follows decision 0061.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import count
from time import monotonic
from typing import TypeAlias

from cubecast.addresses import Address
from cubecast.api.envelope import seal
from cubecast.errors import BadInput, Closed, CubecastError, Fenced, OutcomeUnknown, Unreachable
from cubecast.headers import HeaderValue
from cubecast.log.index import HEADER, stamp
from cubecast.net.gateway.client import ClientPort
from cubecast.net.links.login import NOTHING, Login
from cubecast.net.port.chunks import pieces
from cubecast.net.port.port import ProducerState

CONNECT_TIME = 2.0
POLL = 0.1
"""Seconds between looks at what has changed."""
AGREEMENT = 5.0
"""Seconds for what is under way to reach all logs."""

Numbers: TypeAlias = dict[str, int]
HeadersOfAll: TypeAlias = Sequence[Mapping[str, HeaderValue] | None]
Part: TypeAlias = tuple[str, int, Sequence[bytes], HeadersOfAll | None]
"""A topic, the number of its first message here, messages, and their headers where there are any."""


class Producer:
    """`await begin(topics)`, `await publish(…)` as often as you like, `await flush()`, `await close()`."""

    def __init__(
        self,
        nodes: Sequence[str],
        name: str,
        epoch: int,
        *,
        cluster: str = "cubecast",
        login: Login = NOTHING,
        patience: float = 60.0,
    ) -> None:
        self._addresses = [Address.parse(one) for one in nodes]
        self.name, self.epoch = name, epoch
        self._cluster, self._login, self._patience = cluster, login, patience
        self._port: ClientPort | None = None
        self._last: Numbers = {}
        self._accepted: Numbers = {}

    async def begin(self, topics: Sequence[str]) -> Numbers:
        """The last number that all logs have on each topic. Everything behind it may be published."""
        deadline = monotonic() + self._patience
        await self.close()
        while True:
            try:
                self._last = await self._agreed(list(topics), deadline)
                return dict(self._last)
            except (BadInput, Fenced):
                raise
            except (CubecastError, OSError, TimeoutError) as error:
                await self.close()
                if monotonic() > deadline:
                    raise OutcomeUnknown(f"producer {self.name}: {error}") from None
                await asyncio.sleep(POLL)

    async def publish(self, part: Part) -> None:
        """Those of them that are not in the logs. OutcomeUnknown: `begin` again."""
        topic, first, messages, headers = part
        begin = max(0, self._last[topic] + 1 - first)
        if begin >= len(messages):
            return
        if first + begin != self._last[topic] + 1:
            raise BadInput(f"{topic}: number {first} where {self._last[topic] + 1} follows: some would be left out")
        port, sealed = self._connected(), self._sealed(first, messages, headers, begin)
        for chunk in pieces(sealed):
            while not port.has_room(topic):
                await asyncio.shield(port.room(topic))
            self._accepted[topic] = port.publish(topic, chunk)
        self._last[topic] += len(sealed)

    async def flush(self) -> None:
        """Until all of it is on the disk of its node, and has reached everybody."""
        port, accepted = self._connected(), self._accepted
        self._accepted = {}
        for topic, number in accepted.items():
            await port.durable(topic, number)
            await port.stable(topic, number)

    async def close(self) -> None:
        port, self._port = self._port, None
        self._accepted = {}
        if port is not None:
            await _close(port)

    def _connected(self) -> ClientPort:
        if self._port is None:
            raise Closed(f"producer {self.name} has no node at present: begin")
        return self._port

    def _sealed(
        self,
        first: int,
        messages: Sequence[bytes],
        headers: Sequence[Mapping[str, HeaderValue] | None] | None,
        begin: int,
    ) -> list[bytes]:
        numbered = zip(count(first + begin), messages[begin:], strict=False)
        if headers is None:
            return [seal(message, {HEADER: stamp(self.name, number)}) for number, message in numbered]
        return [
            seal(message, {**(told or {}), HEADER: stamp(self.name, number)})
            for (number, message), told in zip(numbered, headers[begin:], strict=True)
        ]

    # Agreeing on what was published

    async def _agreed(self, topics: list[str], deadline: float) -> Numbers:
        self._port, state = await self._home(topics)
        patient = monotonic() + AGREEMENT
        while True:
            others = await asyncio.gather(*(self._ask(Address.parse(one), topics) for one in state.others))
            logs = [state.numbers, *others]
            found = {topic: [log[topic] for log in logs if topic in log] for topic in topics}
            if state.is_settled and (monotonic() > patient or all(len(set(one)) == 1 for one in found.values())):
                return {topic: min(numbers) for topic, numbers in found.items()}
            if monotonic() > deadline:
                raise OutcomeUnknown("what members left that are gone is not settled")
            await asyncio.sleep(POLL)
            state = await self._port.register_producer(self.name, self.epoch, topics)

    async def _home(self, topics: list[str]) -> tuple[ClientPort, ProducerState]:
        """The first node that answers, and keeps all topics."""
        told: list[str] = []
        for address in self._addresses:
            port = self._client(address)
            try:
                await port.start(CONNECT_TIME)
                state = await port.register_producer(self.name, self.epoch, topics)
                missing = [topic for topic in topics if topic not in state.numbers]
                if missing:
                    raise BadInput(
                        f"{address} does not log {missing[0]}, which a producer needs. Nothing was published"
                    )
                return port, state
            except Unreachable as error:
                told.append(f"{address}: {error}")
            except BaseException:
                await _close(port)
                raise
        raise Unreachable("; ".join(told))

    async def _ask(self, address: Address, topics: list[str]) -> Numbers:
        """What another member has; no number of topics that it does not log."""
        port = self._client(address)
        try:
            await port.start(CONNECT_TIME)
            return (await port.register_producer(self.name, self.epoch, topics)).numbers
        except Unreachable as error:
            raise OutcomeUnknown(f"{address} is a member and cannot be asked: {error}") from None
        except BadInput as error:
            if isinstance(error, Fenced):
                raise
            return {}  # it keeps no log
        finally:
            await _close(port)

    def _client(self, address: Address) -> ClientPort:
        return ClientPort(
            [address], cluster=self._cluster, name=f"producer {self.name}", login=self._login, patience=0.0, stays=True
        )


async def publish_once(producer: Producer, topics: Sequence[str], parts: Iterable[Part], patience: float) -> None:
    """All of it, each message once; `parts` is gone through again after an interruption. OutcomeUnknown: call again."""
    deadline = monotonic() + patience
    while True:
        try:
            await producer.begin(topics)
            for part in parts:
                await producer.publish(part)
            return await producer.flush()
        except (OutcomeUnknown, Closed, Unreachable) as error:
            await producer.close()
            if monotonic() > deadline:
                raise OutcomeUnknown(f"producer {producer.name}: some may be published, none twice: {error}") from None


async def _close(port: ClientPort) -> None:
    with suppress(CubecastError):  # what it had under way is asked about when it begins again
        await port.close()
