"""Which publications travel as one message.

What a message costs a broker hardly depends on its size, and what orders it takes about as many bytes as a small event
does. So what one publisher publishes at once travels together where it is for the same brokers, and where it is not as
long as the bytes that some of them get in vain are fewer than a header of its own would take.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

from cubecast.ids import NodeId, Topic
from cubecast.protocol.brokers.packets import Event, Run
from cubecast.protocol.filters.values import Attributes

MOST_MESSAGES = 512
MOST_BYTES = 64 << 10
"""Of a bundle; a single message may be larger."""
HEADER_BYTES = 120
"""What orders a message, as measured for f = 1 (`bench/broker_metadata.py`)."""
ATTRIBUTE_BYTES = 16
"""About what an attribute takes."""


def runs_of(
    topic: Topic, payloads: Sequence[bytes], attributes: Attributes | Sequence[Attributes] | None
) -> tuple[Run, ...]:
    """The same messages in the same order; attributes are those of all of them, or one by one."""
    if attributes is None or isinstance(attributes, Mapping):
        return (Run({**(attributes or {}), "topic": topic}, tuple(payloads)),)
    runs: list[Run] = []
    start, before = 0, attributes[0]
    for place, one in enumerate(attributes):
        if place and not _alike(one, before):
            runs.append(Run({**before, "topic": topic}, tuple(payloads[start:place])))
            start = place
        before = one
    runs.append(Run({**before, "topic": topic}, tuple(payloads[start:])))
    return tuple(runs)


def _alike(one: Attributes, other: Attributes) -> bool:
    """Python takes True, 1 and 1.0 for the same."""
    return one == other and all(type(value) is type(other[name]) for name, value in one.items())


def bundles(event: Event, destinations: Callable[[Attributes], frozenset[NodeId]]) -> Iterator[Event]:
    """The same messages, as those that travel."""
    counter = event.last - event.size
    gathered: list[Run] = []
    where: frozenset[NodeId] = frozenset()
    count = size = 0
    for run in _small(event.runs):
        wanted, weight = destinations(run.attributes), _weight(run)
        if gathered:
            in_vain = size * len(wanted - where) + weight * len(where - wanted)
            is_full = count + len(run.payloads) > MOST_MESSAGES or size + weight > MOST_BYTES
            if is_full or in_vain > HEADER_BYTES * len(wanted):
                yield event._replace(last=counter, runs=tuple(gathered))
                gathered, where, count, size = [], frozenset(), 0, 0
        gathered.append(run)
        where |= wanted
        count += len(run.payloads)
        size += weight
        counter += len(run.payloads)
    yield event._replace(last=counter, runs=tuple(gathered))


def _weight(run: Run) -> int:
    return sum(map(len, run.payloads)) + ATTRIBUTE_BYTES * len(run.attributes)


def _small(runs: Sequence[Run]) -> Iterator[Run]:
    """None larger than a bundle."""
    for run in runs:
        if len(run.payloads) <= MOST_MESSAGES and _weight(run) <= MOST_BYTES:
            yield run
        else:
            yield from _cut(run)


def _cut(run: Run) -> Iterator[Run]:
    start = size = 0
    for place, payload in enumerate(run.payloads):
        if place > start and (place - start == MOST_MESSAGES or size + len(payload) > MOST_BYTES):
            yield run._replace(payloads=run.payloads[start:place])
            start, size = place, 0
        size += len(payload)
    yield run._replace(payloads=run.payloads[start:])
