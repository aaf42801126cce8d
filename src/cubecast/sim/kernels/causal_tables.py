"""The state of the causal broadcast kernel: arrays made once per run.

A message's number is source · K + counter − 1 with K messages per node, and sets of messages are bit sets over these
numbers. The past of a message is then simply what its publisher had delivered when it published, and "some message of
that past is missing here" one AND-NOT per 64 messages. This says the same as the machine's vectors: entry l of the
vector exceeds `seen[l]` exactly when a message of l in the past was not received.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cubecast.errors import BadInput
from cubecast.sim.kernels.calendar import Calendar, make_calendar

Bits = NDArray[np.uint64]
Floats = NDArray[np.float64]
Ints = NDArray[np.int32]

ARRIVAL, CAUSAL, WHOLE = range(3)
"""How the messages of a packet are ordered and handled, see `PacketOrder` of the machine."""

NODE_QUEUE, LINK_QUEUE, NO_QUEUE = range(3)
EVENTS, POOLED, BATCHED = range(3)  # indices of `CausalTables.used`
RECEIVED, DELIVERED, AWAITED = range(3)  # indices of `CausalTables.here`
MESSAGE_BITS = 15
TAKEN = 1 << 30
"""In the note of a packet of one message: its receiver's turn has come to deal with it."""
MOST_MESSAGES = (1 << MESSAGE_BITS) - 2

PACKET = np.dtype(
    [
        ("time", np.float64),
        ("first", np.int32),  # of its messages, in the pool
        ("size", np.int32),  # bytes
        ("receiver", np.int16),
        ("sender", np.int16),
        ("count", np.int16),
    ],
    align=True,
)
TIMES = np.dtype([("reception", np.float64), ("delivery", np.float64)])
WAITING = np.dtype(
    [
        ("postponed_head", np.int16),  # list of the messages postponed until this one arrives, as number + 1
        ("postponed_next", np.int16),
        ("held_head", np.int16),  # the same for those not delivered before this one is
        ("held_next", np.int16),
        ("arrival", np.int16),  # of a postponed one: number of its reception at that node
        ("blocked", np.int16),  # of a postponed one: so many of the children have not got it
    ]
)
NODE = np.dtype(
    [("waited", np.float64), ("arrivals", np.int32), ("pending", np.int32), ("most_pending", np.int32)], align=True
)


class CausalScenario(NamedTuple):
    """What a run is a function of. `times` by message; `delays[m, k]`: propagation of a packet whose last message is
    m to node k. Every message reaches every node once, so this names each draw, in every mode alike."""

    dimension: int
    per_node: int
    times: Floats
    delays: Floats
    aggregate: bool
    single: bool
    order: int
    queue: int
    processing: float
    transmission: float
    reception: float
    """What a node takes per packet it receives, one at a time; 0: it takes them as they come."""
    payload: int
    mtu: int


class CausalTables(NamedTuple):
    calendar: Calendar
    used: NDArray[np.int64]
    packets: NDArray[Any]
    """All that were sent, in that order. Written once; what is under way is found in the calendar."""
    pool: Ints
    """The messages of all packets; behind several in one packet, its receiver and their number."""
    heights: Ints
    """By node XOR root: how many children."""
    past: Bits
    entries: Ints
    """Per message: entries of the compressed vector, the own one included."""
    depth: Ints
    """Per message: messages in its past."""
    here: Bits
    """Per node: which messages it received, which it delivered, and for which others wait."""
    times: NDArray[Any]
    """Per node and message."""
    waiting: NDArray[Any]
    """Per node and message, for those that wait or are awaited: apart, and small, because they are met again."""
    nodes: NDArray[Any]
    free_at: Floats
    ready_at: Floats
    """By node: when it is done with the packets that reached it."""
    batch: Ints
    """Messages whose level changed by an arrival: number, level now, level before, rank in a packet."""
    worklist: Ints


def make_tables(s: CausalScenario) -> CausalTables:
    nodes = 1 << s.dimension
    messages = nodes * s.per_node
    if messages > MOST_MESSAGES:
        raise BadInput(f"the kernel takes at most {MOST_MESSAGES} messages, not {messages}")
    words = (messages + 63) // 64
    # Each message crosses each of the N − 1 edges of a tree once, and on the single tree it is handed to the root.
    hops = messages * (nodes - 1) + (messages if s.single else 0)
    heights = [(x & -x).bit_length() - 1 if x else s.dimension for x in range(nodes)]
    return CausalTables(
        calendar=make_calendar(messages + hops, max(1.0, hops / (1 << 17))),
        used=np.zeros(3, np.int64),
        packets=np.empty(hops, PACKET),
        pool=np.empty(hops + hops // 2, np.int32),
        heights=np.array(heights, np.int32),
        past=np.zeros((messages, words), np.uint64),
        entries=np.zeros(messages, np.int32),
        depth=np.zeros(messages, np.int32),
        here=np.zeros((nodes, 3, words), np.uint64),
        times=np.zeros((nodes, messages), TIMES),
        waiting=np.zeros((nodes, messages), WAITING),
        nodes=np.zeros(nodes, NODE),
        free_at=np.zeros((nodes, s.dimension + 1)),
        ready_at=np.zeros(nodes),
        batch=np.empty((messages, 4), np.int32),
        worklist=np.empty(messages, np.int32),
    )
