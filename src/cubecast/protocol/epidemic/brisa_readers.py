"""Subscribers that read too slowly: the process goes on relaying; what they missed waits in the flows' buffers.

When they read again they get it from there, piece by piece, with a gap for what the buffers dropped meanwhile.
"""

from collections.abc import Callable, Mapping
from typing import Any

from cubecast.ids import Counter, Topic
from cubecast.protocol.epidemic.brisa_buffer import Buffer
from cubecast.protocol.epidemic.brisa_flow import PIECE
from cubecast.protocol.epidemic.brisa_packets import FlowId

Deliver = Callable[[FlowId, Counter, tuple[bytes, ...]], None]
Lose = Callable[[FlowId, Counter, Counter], None]


class SlowReaders:
    def __init__(self) -> None:
        self._held: dict[Topic, bool] = {}
        """Topics whose deliveries wait; whether the reader still does not read."""
        self._upto: dict[FlowId, Counter] = {}
        """What was delivered last, of flows with something waiting."""

    def hold(self, topic: Topic) -> None:
        self._held[topic] = True

    def let_through(self, topic: Topic) -> None:
        if topic in self._held:
            self._held[topic] = False

    def holds(self, flow: FlowId, before: Counter) -> bool:
        """Does what follows on `before` wait?"""
        if flow.topic not in self._held:
            return False
        self._upto.setdefault(flow, before)
        return True

    def upto(self, flow: FlowId, have: Counter) -> Counter:
        """What was delivered last of a flow that has so much."""
        return self._upto.get(flow, have)

    def forget(self, topic: Topic) -> None:
        self._held.pop(topic, None)
        self._upto = {flow: upto for flow, upto in self._upto.items() if flow.topic != topic}

    def go_on(self, flows: Mapping[FlowId, Any], deliver: Deliver, lose: Lose) -> bool:
        """Deliver the next piece to those who read again. Whether there is more."""
        for topic in [one for one, waits in self._held.items() if not waits]:
            budget = PIECE
            for flow in [one for one in self._upto if one.topic == topic]:
                if budget <= 0:
                    return True
                buffer: Buffer = flows[flow].kept
                for first, payloads in buffer.after(self._upto[flow], budget):
                    upto = self._upto[flow]
                    if first > upto + 1:
                        lose(flow, upto + 1, first - 1)
                        upto = first - 1
                    deliver(flow, upto + 1, payloads[upto + 1 - first :])
                    self._upto[flow] = first + len(payloads) - 1
                    budget -= sum(map(len, payloads))
                if self._upto[flow] >= flows[flow].have:
                    del self._upto[flow]
                elif budget > 0:  # messages that no process has end the flow here
                    lose(flow, self._upto[flow] + 1, flows[flow].have)
                    del self._upto[flow]
            if any(one.topic == topic for one in self._upto):
                return True
            del self._held[topic]
        return False
