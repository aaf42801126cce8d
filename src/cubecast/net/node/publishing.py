"""The publishing side of a node's port: what users publish, from acceptance until it is stable.

What is published in one turn of the event loop is handed to the machine at its end, each topic's messages as one call.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any, Final

from cubecast.errors import BadInput, CubecastError, HandedOver
from cubecast.ids import MessageId, NodeId, Topic
from cubecast.net.node.absence import reached_everybody
from cubecast.net.node.channels import Channels, Host
from cubecast.net.node.durable.recorder import Recorder
from cubecast.net.node.outgoing import Outgoing
from cubecast.net.node.pacing import Departures, processor_waits
from cubecast.net.node.status import MOST_SHOWN
from cubecast.net.node.subscriptions import NOBODY, Subscriptions
from cubecast.net.port.port import Run
from cubecast.net.settings.config import MOST_BATCH_BYTES, NodeConfig
from cubecast.patterns import check_topic
from cubecast.protocol.effects import Acknowledged
from cubecast.protocol.families import find
from cubecast.wire.codec import MAX_PACKET_BYTES

log = logging.getLogger(__name__)

TOPICS_AT_ONCE: Final = 64
"""Topics whose messages are handed to the machine in one step."""
LARGE: Final = MOST_BATCH_BYTES
"""Larger messages are looked at one by one: they and what is said about them may be too much for a packet."""
MARGIN: Final = 8 << 10
"""Bytes for what they may depend on in addition when they leave."""


def _warn(topic: Topic, run: Run, peer: NodeId) -> None:
    text = "node %d lives and will not get messages %d to %d that this node published as incarnation %d"
    log.warning(text, peer, run.first, run.last, run.incarnation, extra={"topic": topic})


def _kept(config: NodeConfig) -> int:
    """Bytes of a message that the protocol has room for; all that a packet may have, if it sets no bound."""
    family = find(config.protocol)
    chosen = family.chosen(config.chosen(config.dimension), live=True)
    most: int = getattr(chosen, family.largest) if family.largest else MAX_PACKET_BYTES
    return most


class PublishingSide:
    def __init__(self, config: NodeConfig, host: Host, channels: Channels | None, subscriptions: Subscriptions) -> None:
        self._config, self._host, self._channels, self._subscriptions = config, host, channels, subscriptions
        self._turn = host.turn
        self._learns_stability = find(config.protocol).frees is Acknowledged
        self._bound, self._kept = find(config.protocol).largest, _kept(config)
        self._unquestioned = min(LARGE, config.max_payload, self._kept)
        self.outgoing: dict[Topic, Outgoing] = {}
        self._dirty: list[Outgoing] = []
        self._questions: dict[Topic, list[tuple[int, asyncio.Future[bool]]]] = {}
        """Published, and not left yet."""
        self.departures = Departures(self._hand_over)
        """When what was published leaves."""
        self.on_lost: Callable[[Topic, Run, NodeId], object] = _warn
        """Is told of own messages that a subscriber will not get, and its node."""
        self.recorder: Recorder | None = None

    def open(self, recorder: Recorder | None) -> None:
        self.recorder = recorder
        waits = processor_waits() if self._config.pacing else None
        if waits is not None:
            self.departures.watch(waits)

    def publish(self, topic: Topic, payloads: Sequence[bytes]) -> int:
        """The caller has made sure that the node takes part."""
        out = self.outgoing.get(topic)
        if not payloads:
            return 0 if out is None else out.accepted
        largest = max(map(len, payloads))
        if largest > self._unquestioned:
            self._check_size(topic, largest)
        if self._channels is not None:
            self._channels.check(topic, payloads)
        out = out or self._out(topic)
        accepted = out.accept(payloads)
        if not out.is_dirty:
            self._hand_over_soon(out)
        elif self.departures.is_holding and out.is_urgent:
            self.departures.hurry()
        return accepted

    def ask(self, topic: Topic, payload: bytes) -> Awaitable[bool]:
        accepted = self.publish(topic, (payload,))
        reaches: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._questions.setdefault(topic, []).append((accepted, reaches))
        return reaches

    def _answer_questions(self, out: Outgoing) -> None:
        """Now, when they leave: later others may have come or gone."""
        questions = self._questions.pop(out.topic, [])
        waiting = [one for one in questions if one[0] > out.published]
        if waiting:
            self._questions[out.topic] = waiting
        reaches = len(waiting) < len(questions) and (self._host.reaches(out.topic) or self.hears(out.topic))
        for accepted, future in questions:
            if accepted <= out.published and not future.done():
                future.set_result(reaches)

    def hears(self, topic: Topic) -> bool:
        """Does anybody here listen to it, the log apart?"""
        found, recorder = self._subscriptions.by_topic.get(topic, NOBODY).everybody(), self.recorder
        return any(recorder is None or not recorder.is_recording(one.sink) for one in found)

    def _check_size(self, topic: Topic, size: int) -> None:
        """A message travels with the names of what it depends on, and all of it must fit into a packet."""
        most, envelope = self._config.max_payload, self._host.envelope_bytes(topic)
        if size > most:
            raise BadInput(f"a message of {size} bytes; this node takes at most {most}. Nothing was published")
        if size > self._kept:
            raise BadInput(
                f"a message of {size} bytes, and only {self._kept} are kept for others: raise {self._bound}. "
                "Nothing was published"
            )
        if size + envelope + MARGIN > MAX_PACKET_BYTES:
            raise BadInput(
                f"a message of {size} bytes on {topic!r}, which just now takes up to {envelope} bytes to say what it "
                f"depends on; both together may have {MAX_PACKET_BYTES - MARGIN}. Nothing was published"
            )

    def _out(self, topic: Topic) -> Outgoing:
        out = self.outgoing[check_topic(topic)] = Outgoing(topic, self._config.topic_budget)
        return out

    def _hand_over_soon(self, out: Outgoing | None) -> None:
        if out is not None and not out.is_dirty and out.is_worth_a_call:
            out.is_dirty = True
            if not self._dirty:
                asyncio.get_running_loop().call_soon(self._end_turn)
            self._dirty.append(out)

    def _end_turn(self) -> None:
        if not self.departures.holds(self._dirty):
            self._hand_over()

    def _hand_over(self) -> None:
        """Each topic's messages become one call; while some wait already, they pile up."""
        dirty, self._dirty = self._dirty[:TOPICS_AT_ONCE], self._dirty[TOPICS_AT_ONCE:]
        if self._dirty:
            asyncio.get_running_loop().call_soon(self._hand_over)
        self._turn.is_held, self._turn.is_short = True, len(dirty) == 1
        try:
            for out in dirty:
                out.is_dirty = False
                if self._channels is not None:
                    self._channels.hand_over(out)
                    continue
                if self._subscriptions.is_paused(out.topic):
                    continue  # publishing here would deliver here, where a subscriber is full
                if out.is_worth_a_call:
                    self._host.call("publish", out.topic, out.take(), out.is_awaited)
        finally:
            self._turn.release()

    def resumed(self, topic: Topic) -> None:
        """Subscribers here read again: what waits may leave."""
        self._hand_over_soon(self.outgoing.get(topic))

    def advertise(self, channels: Channels, topic: Topic, where: str | None) -> None:
        channels.advertise(check_topic(topic), where, self.outgoing, self._config.topic_budget)

    def unadvertise(self, channels: Channels, topic: Topic) -> None:
        self._hand_over()
        channels.unadvertise(topic, self.outgoing)

    def has_room(self, topic: Topic) -> bool:
        out = self.outgoing.get(topic)
        return out is None or out.has_room

    def room(self, topic: Topic) -> Awaitable[None]:
        return (self.outgoing.get(topic) or self._out(topic)).room()

    def stable(self, topic: Topic, accepted: int) -> Awaitable[None]:
        out = self.outgoing.get(topic)
        known: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if out is None:  # nothing was ever published on it, which everybody has
            known.set_result(None)
            return known
        if not self._learns_stability:
            self.departures.hurry()
            name = find(self._config.protocol).name
            told = f"{topic}: handed over; {name} never learns whether everybody has a publication"
            known.set_exception(HandedOver(told))
            return known
        if out.pending:
            self.departures.hurry()
        known = out.when_stable(accepted)
        if self._config.partition.stable == "everybody":
            members = self._host.members
            return asyncio.ensure_future(reached_everybody(topic, known, members(), members, self._host.reach))
        return known

    async def published_all(self) -> None:
        """Until everything accepted is stable, or that cannot be known any more."""
        self.departures.hurry()
        for out in list(self.outgoing.values()):
            with suppress(CubecastError):
                await out.when_stable(out.accepted)

    def reconfigure(self, config: NodeConfig) -> None:
        self._config = config
        self._unquestioned = min(LARGE, config.max_payload, self._kept)
        for out in self.outgoing.values():
            out.resize(config.topic_budget)

    # What the machine says

    def on_published(self, topic: Topic, count: int) -> None:
        out = self.outgoing[topic]
        out.published += count
        if self._questions:
            self._answer_questions(out)
        self._hand_over_soon(out)

    def on_acknowledged(self, topic: Topic, counter: int) -> None:
        out = self.outgoing[topic]
        out.acknowledged(counter)
        self._hand_over_soon(out)

    def on_undelivered(self, topic: Topic, missing: Sequence[MessageId], peer: NodeId) -> None:
        """Each message is told once."""
        self.on_lost(topic, Run(*missing[0], missing[-1].counter), peer)

    def on_reincarnated(self) -> None:
        for out in self.outgoing.values():
            out.restarted()
            if self.recorder is not None:
                self.recorder.on_restart(out.topic, out.base)

    def shut(self, why: CubecastError) -> None:
        for out in self.outgoing.values():
            out.close(why)
        self.departures.end()

    def describe(self) -> dict[str, Any]:
        outgoing = {
            out.topic: {"accepted": out.accepted, "stable": out.stable, "bytes_under_way": out.bytes}
            for out in islice(self.outgoing.values(), MOST_SHOWN)
        }
        return {"outgoing": outgoing, "outgoing_in_all": len(self.outgoing), "pace": self.departures.pace}
