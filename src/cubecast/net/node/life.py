"""The life of a node's machine: from a place in the cluster to its last effect."""

import asyncio
import logging
import secrets
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from cubecast.addresses import Address
from cubecast.errors import BadInput, Closed
from cubecast.ids import NodeId, Topic
from cubecast.net.links.handshake import LAST_INCARNATION, Place, Refused
from cubecast.net.links.login import for_node
from cubecast.net.links.turn import Turn
from cubecast.net.members.directory import Directory
from cubecast.net.members.joining import Admission, apply_for_a_place
from cubecast.net.members.memory import Acquaintances, claim, own_id, remember
from cubecast.net.members.peers import Peers
from cubecast.net.members.security import Security
from cubecast.net.node.absence import Member, Members
from cubecast.net.node.driver import Driver
from cubecast.net.node.durable.recorder import Recorder, open_recorder
from cubecast.net.node.durable.refill import Dial
from cubecast.net.node.input_log import InputLog, Seating
from cubecast.net.node.local_port import LocalPort
from cubecast.net.node.status import describe
from cubecast.net.node.tracing import Tracing
from cubecast.net.settings.config import NodeConfig
from cubecast.protocol.families import find
from cubecast.protocol.inspector import Inspector
from cubecast.wire.codec import codec_of

log = logging.getLogger(__name__)

REST_CHECKED_EVERY = 0.01
"""Seconds; looking through all topics after every step would cost more than the steps."""
PLACES_TRIED = 8
GOODBYES_TAKE = 0.5
"""Seconds by which others may know earlier than this node that a member left."""


class Outside(Protocol):
    """What is around a life: those who watch it, and the listeners of its node."""

    def notice(self, kind: str, peer: NodeId | None, detail: str) -> None:
        """Something rare happened."""

    def on_note(self, peer: NodeId, data: bytes) -> None:
        """What an observing node wants to know or answers."""

    def began(self, driver: Driver) -> None:
        """A machine runs, and may be watched."""

    def on_broken(self, error: Exception) -> None:
        """A step failed; nothing is done any more."""

    def status(self) -> dict[str, Any]: ...
    async def close(self) -> None: ...


class NodeLife:
    """The port's `Host`, the links' `Events` and the driver's `Owner`: whatever these tell goes through here to the
    machine or to what is around it, hence the many short methods."""

    def __init__(self, config: NodeConfig, security: Security, outside: Outside) -> None:
        self.config, self._security, self._outside = config, security, outside
        self.instance = secrets.token_bytes(8)
        population = find(config.protocol).population
        self.directory = Directory(
            config.dimension,
            lambda node: self.peers.is_connected(node),
            draws_ids=population.draws_ids,
            everybody=population.announced,
        )
        self.peers = Peers(self.directory, self, config, security)
        self.port = LocalPort(config, self)
        self.recorder: Recorder | None = None
        """Of the node's log, when it keeps one."""
        self.driver: Driver | None = None
        self._tracing = Tracing(config)
        self._acquaintances = Acquaintances(config)
        self._active: asyncio.Future[None] | None = None
        self.is_over = False
        self.is_filled = False
        """Has its log what was missed before?"""
        self._give_back: Callable[[], None] = lambda: None
        """Gives up the data directory."""

    # Beginning

    async def prepare(self) -> None:
        """Take the data directory, and read what is in it."""
        self._give_back = claim(self.config)
        if self.directory.draws_ids and self.config.node is None:
            self.config = replace(self.config, node=own_id(self.config))
        self._acquaintances.recall()
        self.recorder = await open_recorder(self.config, codec_of(find(self.config.protocol)))

    async def take_part(self, address: str, dial: Dial) -> None:
        """Returns when everybody who lives knows this node, and its log has what it missed while it was away."""
        for attempt in range(PLACES_TRIED):
            self._active = asyncio.get_running_loop().create_future()
            secure = for_node(self._security.tls, self.config.cluster)
            self._live(await apply_for_a_place(self.config, self.instance, attempt, secure), address)
            try:
                await self._active
                await self._fill_log(dial)
                return
            except BadInput:
                if self.config.node is not None or attempt + 1 == PLACES_TRIED:
                    raise
                self.leave_place()

    async def _fill_log(self, dial: Dial) -> None:
        if self.recorder is not None:
            await self.recorder.ready()
            await self._acquaintances.appear(lambda: self.inspector.living)
            around = self.port.subscribing.surroundings(self._living_members, dial)
            await self.recorder.fill(self.place.node, around)
        self.is_filled = True

    def _living_members(self) -> dict[bytes, Address]:
        """Where the others are, as far as they are held to live, by instance."""
        known, me = self.directory.places, self.place.node
        places = [known[node] for node in self.inspector.living if node != me and node in known]
        return {place.instance: Address.parse(place.address) for place in places if place.instance}

    def _live(self, admission: Admission, address: str) -> None:
        if self.is_over:
            raise Closed("this node was closed before it took part")
        config, place = self.config, Place(admission.node, admission.incarnation, self.instance, address)
        self.directory.dimension = admission.dimension
        self.directory.learn(admission.places)
        self.directory.settle(place)
        self._begin_life(place)
        seating = Seating.of(config, admission, self.instance)
        family = find(config.protocol)
        driver = self.driver = Driver(
            seating.machine(),
            family,
            self.port,
            self.peers.send,
            self.peers.turn,
            deferral_budget=config.peer_budget,
            journal=self._tracing.from_the_beginning(place),
            recorder=self._record_of_inputs(seating),
            owner=self,
            watcher=self._stepped,
        )
        self._outside.began(driver)
        driver.call("on_start")
        if family.population.announced:
            self.peers.reach(seating.contacts)

    def _record_of_inputs(self, seating: Seating) -> InputLog | None:
        path = self.config.inputs
        try:
            return None if path is None else InputLog(path, seating, self.instance)
        except OSError as error:
            raise BadInput(f"inputs cannot be recorded in {path}: {error.strerror}") from None

    def _begin_life(self, place: Place) -> None:
        if self.recorder is not None:
            self.recorder.begin_life(place.node, place.incarnation)
        remember(self.config, place.incarnation)

    def leave_place(self) -> None:
        """Another node got the id first, so nothing of this belongs to its history."""
        if self.driver is not None:
            self.driver.stop()
            self.driver.journalling.drop()
        self.peers.hang_up()
        self.directory.vacate()

    def _stepped(self) -> None:
        """Did the step end something a caller waits for?"""
        driver, active = self.driver, self._active
        if driver is not None and driver.inspector.is_active:
            driver.watcher = None
            log.info("takes part with nodes %s", driver.inspector.living)
            self.port.open(self.recorder)
            self._note_acquaintances()
            if active is not None and not active.done():
                active.set_result(None)

    def _note_acquaintances(self) -> None:
        self._acquaintances.note(self.directory, self.peers.left, self.inspector.living)

    # What it is

    @property
    def place(self) -> Place:
        if self.directory.me is None:
            raise Closed("this node has no place yet")
        return self.directory.me

    @property
    def inspector(self) -> Inspector:
        if self.driver is None:
            raise Closed("this node was not started")
        return self.driver.inspector

    @property
    def is_active(self) -> bool:
        """Does every living member know it?"""
        return self.directory.me is not None and self.driver is not None and self.driver.inspector.is_active

    def knows(self, topic: Topic) -> bool:
        return self.port.publishes(topic) or (self.driver is not None and topic in self.driver.inspector.topics)

    def describe(self) -> dict[str, Any]:
        """The machine, the members, and what waits for them."""
        return describe(self.config, self.directory, self.peers, self.driver)

    def tracing(self) -> dict[str, Any]:
        """Is a journal written, where, and since when."""
        return self._tracing.describe(self.driver)

    def switch_tracing(self, run: str | None) -> Path:
        """Begin a journal of that name in the middle of this life, or, None, end the one that is written."""
        place, driver = self.place, self.driver
        if driver is None or self.is_over:
            raise Closed("this node does not take part")
        where = self._tracing.switch_off(driver) if run is None else self._tracing.switch_on(run, place, driver)
        log.info("the trace in %s was switched %s", where, "off" if run is None else "on")
        return where

    def reconfigure(self, config: NodeConfig) -> None:
        """The budgets of a living node are where they are used."""
        self.config = config
        self.port.reconfigure(config)
        self.peers.reconfigure(config)
        if self.driver is not None:
            self.driver.deferred.budget = config.peer_budget
        if self.recorder is not None:
            self.recorder.reconfigure(config)

    # The end

    async def finish(self) -> None:
        """Until what was published arrived and nothing of this node is under way."""
        await self.port.publishing.published_all()
        self.port.subscribing.unsubscribe_all()
        await self._rest()

    async def end_journal(self) -> None:
        """Wait until nothing of this node is under way; there its history ends, at rest, while it goes on serving."""
        await self.port.publishing.published_all()
        await self._rest()
        if self.driver is not None:
            self.driver.journalling.end(at_rest=True)

    @property
    def _is_at_rest(self) -> bool:
        return self.driver is None or self.driver.inspector.is_at_rest

    async def _rest(self) -> None:
        """Until nothing of this node is under way."""
        while not self._is_at_rest:
            await asyncio.sleep(REST_CHECKED_EVERY)

    def stop(self, *, broken: bool) -> None:
        """Say goodbye to the others."""
        self.is_over = True
        if self._active is not None and not self._active.done():
            self._active.set_exception(Closed("this node was closed before it took part"))
            self._active.exception()  # its starter gets it; if none does, that is no mistake
        if self.driver is not None:
            self.driver.stop()
            self.driver.journalling.end(at_rest=not broken and self._is_at_rest)

    async def end(self) -> None:
        """Let go of the data directory."""
        if self.recorder is not None:
            await self.recorder.close()
        give_back, self._give_back = self._give_back, lambda: None
        give_back()

    # What the port asks

    @property
    def turn(self) -> Turn:
        return self.peers.turn

    def call(self, name: str, *arguments: Any) -> None:
        if self.driver is not None:
            self.driver.call(name, *arguments)

    def hold_back(self, topic: Topic) -> None:
        if self.driver is not None:
            self.driver.hold_back(topic)

    def let_through(self, topic: Topic) -> None:
        if self.driver is not None:
            self.driver.let_through(topic)

    def envelope_bytes(self, topic: Topic) -> int:
        return 0 if self.driver is None else self.driver.inspector.envelope_bytes(topic)

    def reaches(self, topic: Topic) -> bool:
        return self.inspector.reaches(topic, self.place.node)

    def members(self) -> Members:
        peers, inspector = self.peers, self.inspector
        standings, living = inspector.standings(), set(inspector.living)
        return {
            node: Member(
                place.instance,
                standings[node].incarnation if node in living else None,
                node in peers.left or node in peers.ended,
            )
            for node, place in self.directory.places.items()
            if node != self.place.node
        }

    def reach(self, nodes: Iterable[NodeId]) -> None:
        self.peers.reach(nodes)

    def status(self) -> dict[str, Any]:
        return self._outside.status()

    async def close(self) -> None:
        await self._outside.close()

    def on_new_incarnation(self, incarnation: int) -> None:
        log.warning("others held this node faulty; it comes back as incarnation %d", incarnation)
        me = self.place
        self.directory.settle(Place(me.node, incarnation, me.instance, me.address))
        try:
            self._begin_life(self.place)
        except BadInput as error:
            log.error("%s; the node goes on, and had better not start again while no other one is up", error)

    # What the links tell

    def packets(self, sender: NodeId, frames: list[bytes]) -> None:
        if self.driver is not None:
            self.driver.packets(sender, frames)

    def link_full(self, peer: NodeId, full: bool) -> None:
        if self.driver is not None:
            self.driver.link_full(peer, full)

    def on_up(self, peer: NodeId) -> None:
        self.call("on_peer_up", peer)
        self._note_acquaintances()
        if self.recorder is not None:
            self.recorder.catch_up.member_came()

    def on_down(self, peer: NodeId) -> None:
        self.call("on_peer_down", peer)

    def notice(self, kind: str, peer: NodeId | None, detail: str) -> None:
        self._outside.notice(kind, peer, detail)

    def on_note(self, peer: NodeId, data: bytes) -> None:
        self._outside.on_note(peer, data)

    def on_refused(self, refusal: Refused) -> None:
        """A peer does not accept who we are."""
        if refusal.newest_incarnation >= LAST_INCARNATION:
            log.error("a node says that this id has lived all its incarnations: %s", refusal.reason)
        elif refusal.newest_incarnation >= self.place.incarnation:
            self.call("on_expelled", refusal.newest_incarnation)
        elif refusal.retry:
            log.info("a refusal of an incarnation that is over: %s", refusal.reason)
        elif self._active is not None and not self._active.done():
            self._active.set_exception(BadInput(refusal.reason))
        else:
            log.error("a node refuses this one: %s", refusal.reason)

    # What the driver tells

    def on_broken(self, error: Exception) -> None:
        self._outside.on_broken(error)

    def on_suspect(self, peer: NodeId | None) -> None:
        """Worth a warning, unless its goodbye comes a moment after the news of it, or it was a life it had earlier."""

        def tell() -> None:
            if self.is_over or peer in self.peers.left:
                return
            if peer in self.inspector.living:
                log.info("node %s is here; an earlier life of it is held faulty", peer, extra={"peer": peer})
            else:
                log.warning("node %s is held faulty", peer, extra={"peer": peer})

        asyncio.get_running_loop().call_later(GOODBYES_TAKE, tell)

    def on_link(self, peer: NodeId, kept: bool) -> None:
        self.peers.keep(peer, kept)

    def introduce(self, peers: tuple[NodeId, ...], mentioned: Iterable[NodeId]) -> None:
        self.peers.introduce(peers, mentioned)
