"""A node: the machine, its links and its users, from the first call to the last goodbye."""

import asyncio
import logging
import secrets
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cubecast.addresses import Address
from cubecast.errors import BadInput, Closed, CubecastError
from cubecast.ids import NodeId, Topic
from cubecast.net.gateway.client import ClientPort
from cubecast.net.gateway.clients import Clients
from cubecast.net.links.connection import Connection
from cubecast.net.links.handshake import LAST_INCARNATION, VERSION, Accepted, Place, Refused
from cubecast.net.links.login import node_login
from cubecast.net.links.tls_dialling import for_node
from cubecast.net.members.acquaintances import Acquaintances
from cubecast.net.members.directory import Directory
from cubecast.net.members.joining import Admission, apply_for_a_place
from cubecast.net.members.memory import claim, own_id, remember
from cubecast.net.members.peers import Events, Peers
from cubecast.net.members.reception import Reception
from cubecast.net.members.security import Security
from cubecast.net.node.driver import Driver
from cubecast.net.node.durable.recorder import open_recorder
from cubecast.net.node.input_log import InputLog
from cubecast.net.node.local_port import LocalPort
from cubecast.net.node.seating import Seating
from cubecast.net.node.status import describe
from cubecast.net.node.tracing import Tracing
from cubecast.net.settings.config import NodeConfig
from cubecast.net.settings.exposure import exposures
from cubecast.net.settings.reloading import Prepare
from cubecast.protocol.families import find
from cubecast.protocol.inspector import Inspector

if TYPE_CHECKING:
    from cubecast.net.security.trust import Trust
    from cubecast.net.web.observer import Observer
    from cubecast.net.web.server import WebServer

log = logging.getLogger(__name__)

CLOSING_TIME = 5.0
"""Seconds a node gives its last publications to arrive."""
REST_CHECKED_EVERY = 0.01
"""Seconds; looking through all topics after every step would cost more than the steps."""
PLACES_TRIED = 8
GOODBYES_TAKE = 0.5
"""Seconds by which others may know earlier than this node that a member left."""


class LiveNode:
    """Make it, `await start()`, use its `port`, `await close()`."""

    def __init__(self, config: NodeConfig) -> None:
        self.security = Security(config)
        self.config = config = self.security.settled(config)
        self.instance = secrets.token_bytes(8)
        population = find(config.protocol).population
        self._directory = Directory(
            config.dimension,
            lambda node: self._peers.is_connected(node),
            draws_ids=population.draws_ids,
            everybody=population.announced,
        )
        self._events = Events(
            lambda sender, frames: None, self._on_up, self._on_down, self._on_refused, self.notice, self._note
        )
        self._peers = Peers(self._directory, self._events, config, self.security)
        self.reception = Reception(config, self._directory, self._peers, self.security)
        self.port = LocalPort(config, self._call, self._hold_back, self._let_through)
        self.port.turn = self._peers.turn
        self.port.on_new_incarnation = self._on_new_incarnation
        self.port.on_status = self.status
        self.port.on_close = self.close
        self.port.envelope = lambda topic: 0 if self._driver is None else self._driver.inspector.envelope_bytes(topic)
        self.port.reaches = self._reaches
        self.clients = Clients(
            self.port, self._who, most=config.max_clients, budget=config.client_budget, is_known=self._knows
        )
        self.clients.answer_filling = self._who_fills
        self.clients.limits = config.limits
        self.security.on_policy = self.clients.renew
        if self.security.tls is not None:
            self.security.tls.on_trust = self._check_certificates
        self.reception.on_client = self.clients.accept
        self.reception.on_refused = self.clients.on_cut = lambda kind, detail: self.notice(kind, None, detail)
        self.reloads: list[Prepare] = [self.security.prepare, self._prepare]
        """Asked when settings are read again; what is reloadable in a node adds itself here."""
        self.web: WebServer | None = None
        self.observer: Observer | None = None
        self._tracing = Tracing(config)
        self._driver: Driver | None = None
        self._active: asyncio.Future[None] | None = None
        self._closed = self._is_filled = False
        self.broken: CubecastError | None = None
        """Why this node stopped by itself."""
        self.on_broken: Callable[[], None] = lambda: None
        """Told when it has."""
        self._breaking: asyncio.Task[None] | None = None
        self._acquaintances = Acquaintances(config)
        self._give_back: Callable[[], None] = lambda: None
        """Gives up the data directory."""

    def _check_certificates(self, trust: "Trust") -> None:
        self._peers.check_certificates(trust)
        self.clients.check_certificates(trust)

    def _reaches(self, topic: Topic) -> bool:
        """Does a publication on the topic, as it leaves now, reach any subscriber?"""
        me = self.place.node
        return self.inspector.reaches(topic, me) or self.port.hears(topic)

    # Life

    async def start(self) -> None:
        """Listen, get a place, and take part.

        Returns when everybody who lives knows this node, and its log has what it missed while it was away.
        """
        address = await self.reception.open()
        warning = self.security.warning()
        if warning is not None:
            log.warning(warning)
        try:
            self._give_back = claim(self.config)
            for exposure in exposures(self.config.tls, self.config.data):
                log.warning(exposure)
            if self._directory.draws_ids and self.config.node is None:
                self.config = replace(self.config, node=own_id(self.config))
            self._acquaintances.recall()
            self.port.recorder = await open_recorder(self.config)
            await self._open_eyes()
            for attempt in range(PLACES_TRIED):
                self._active = asyncio.get_running_loop().create_future()
                secure = for_node(self.security.tls, self.config.cluster)
                admission = await apply_for_a_place(self.config, self.instance, attempt, secure)
                self._live(admission, str(address))
                try:
                    await self._active
                    await self._fill_log()
                    return
                except BadInput:
                    if self.config.node is not None or attempt + 1 == PLACES_TRIED:
                        raise
                    self._leave_place()
        except BaseException:
            self._leave_place()
            await self._shut()
            raise

    async def _fill_log(self) -> None:
        recorder = self.port.recorder
        if recorder is not None:
            await recorder.ready()
            await self._acquaintances.appear(lambda: self.inspector.living)
            await recorder.fill(self.port.surroundings(self._living_members, self._dial))
        self._is_filled = True

    def _dial(self, address: Address, *, name: str, patience: float, fills: bool = False) -> ClientPort:
        """A peer's port, for its log."""
        config = self.config
        login = node_login(config.tls)
        return ClientPort([address], cluster=config.cluster, name=name, patience=patience, login=login, fills=fills)

    def _living_members(self) -> dict[bytes, Address]:
        """Where the others are, as far as they are held to live, by instance."""
        known, me = self._directory.places, self.place.node
        places = [known[node] for node in self.inspector.living if node != me and node in known]
        return {place.instance: Address.parse(place.address) for place in places if place.instance}

    async def _open_eyes(self) -> None:
        """Before this node takes part, so that it can be asked why it does not."""
        # Imported here, because nodes without observers do without.
        if self.config.http is not None or self.config.observe:
            from cubecast.net.web.observer import Observer

            self.observer = Observer(self.config, self._directory, self._peers, self.clients)
            self.observer.log_sizes = lambda: {} if self.port.recorder is None else self.port.recorder.describe()
            self.observer.start()
        if self.config.http is not None:
            from cubecast.net.web.server import WebServer

            self.web = WebServer(self, self.config.http, tls=self.security.web_tls(self.config.http))
            await self.web.open()

    def _live(self, admission: Admission, address: str) -> None:
        if self._closed:
            raise Closed("this node was closed before it took part")
        config, now = self.config, asyncio.get_running_loop().time()
        node, incarnation = admission.node, admission.incarnation
        self._directory.dimension = admission.dimension
        self._directory.learn(admission.places)
        self._directory.settle(Place(node, incarnation, self.instance, address))
        self._remember(incarnation)
        seating = Seating.of(config, admission, self.instance)
        family, machine = find(config.protocol), seating.machine()
        journal, recorder = None, None
        if config.journal is not None:
            # Here, because it brings Parquet along, which a node that writes no trace does without.
            from cubecast.net.node.journal import Journal

            try:
                journal = Journal.of(config, config.journal, Place(node, incarnation, self.instance, address))
                journal.started(now)
            except OSError as error:
                raise BadInput(f"no journal can be written in {config.journal}: {error.strerror}") from None
        if config.inputs is not None:
            try:
                recorder = InputLog(config.inputs, seating, self.instance)
            except OSError as error:
                raise BadInput(f"inputs cannot be recorded in {config.inputs}: {error.strerror}") from None
        self._driver = Driver(
            machine,
            family,
            self.port,
            self._peers.send,
            self._peers.turn,
            deferral_budget=config.peer_budget,
            journal=journal,
            recorder=recorder,
        )
        self._driver.watcher = self._stepped
        self._driver.on_suspect = self._on_suspect
        self._driver.on_broken = self._on_broken
        self._driver.on_link = self._peers.keep
        self._driver.introduce = self._peers.introduce
        if self.port.recorder is not None:
            self.port.recorder.codec = self._driver.codec
        if self.observer is not None:
            self.observer.attach(self._driver)
        self._events.packets, self._events.full = self._driver.packets, self._driver.link_full
        self._driver.call("on_start")
        if family.population.announced:
            self._peers.reach(seating.contacts)

    def _leave_place(self) -> None:
        """Another node got the id first, so nothing of this belongs to its history."""
        if self._driver is not None:
            self._driver.stop()
            self._driver.drop_journal()
        self._peers.hang_up()
        self._directory.vacate()

    @property
    def place(self) -> Place:
        if self._directory.me is None:
            raise Closed("this node has no place yet")
        return self._directory.me

    def identity(self) -> dict[str, int]:
        """What a line of its log says of it."""
        me = self._directory.me
        return {} if me is None else {"node": me.node, "incarnation": me.incarnation}

    @property
    def machine(self) -> Any:
        """To look at, not to touch."""
        return self.inspector.machine

    @property
    def inspector(self) -> Inspector:
        if self._driver is None:
            raise Closed("this node was not started")
        return self._driver.inspector

    @property
    def address(self) -> Address:
        """What others dial."""
        return self.reception.address

    def link_to(self, node: NodeId) -> Connection | None:
        return self._peers.link(node)

    def _who(self) -> Accepted | None:
        """What a client is told."""
        return self._who_fills() if self._is_filled else None

    def _who_fills(self) -> Accepted | None:
        """What a node is told that fills its log: it need not wait for this one's to be filled."""
        me, directory = self._directory.me, self._directory
        if me is None or self._driver is None or not self._driver.inspector.is_active:
            return None
        dimension, places = directory.dimension, directory.for_newcomers()
        return Accepted(VERSION, me, dimension, places, max_payload=self.config.max_payload)

    def _knows(self, topic: Topic) -> bool:
        return self.port.publishes(topic) or (self._driver is not None and topic in self._driver.inspector.topics)

    def status(self) -> dict[str, Any]:
        """This node and what it knows of the others, for people and programs. Times are in seconds."""
        kept = {} if self.port.recorder is None else {"log": self.port.recorder.describe()}
        return describe(self.config, self._directory, self._peers, self._driver) | {
            "clients": len(self.clients),
            "http": None if self.web is None else str(self.web.address),
            "observed": None if self.observer is None else self.observer.describe(),
            **self.port.describe(),
            **kept,
        }

    def reasons_not_ready(self) -> list[str]:
        """Why clients had better go elsewhere for now; none when they are welcome."""
        if self._closed or self._directory.me is None or self._driver is None:
            return ["this node is closed" if self._closed else "this node has no place yet"]
        if not self._driver.inspector.is_active:
            return ["not every living member knows this node yet"]
        if not self._is_filled:
            refill = None if self.port.recorder is None else self.port.recorder.returning.refill
            so_far = "" if refill is None else f"; {refill.messages} messages have come so far"
            return [f"this node's log is not filled yet with what it missed{so_far}"]
        return [] if self.observer is None else self.observer.overload()

    async def close(self) -> None:
        """Leave in good order: what was published arrives, subscriptions end, the others are told."""
        if self._closed:
            return
        self.clients.close()
        try:
            async with asyncio.timeout(CLOSING_TIME):
                await self.port.published_all()
                self.port.unsubscribe_all()
                await self._rest()
        except TimeoutError:
            waiting = [] if self._driver is None else self._driver.inspector.waiting()
            log.warning("closing although something is still under way: %s", waiting[:1] or "publications of its own")
        finally:
            await self._shut()

    def _prepare(self, config: NodeConfig) -> Callable[[], None]:
        """The budgets of a living node are where they are used; whatever reads `config` finds the new one."""
        config = self.security.settled(config)

        def take_effect() -> None:
            self.config = config
            self.port.reconfigure(config)
            self._peers.reconfigure(config)
            self.reception.reconfigure(config)
            if self.web is not None:
                self.web.callers.reconfigure()
            self.clients.limits = config.limits
            self.clients.reconfigure(most=config.max_clients, budget=config.client_budget)
            if self._driver is not None:
                self._driver.deferral_budget = config.peer_budget
            if self.port.recorder is not None:
                self.port.recorder.reconfigure(config)

        return take_effect

    async def end_journal(self) -> None:
        """Wait until nothing of this node is under way; there its history ends, at rest, while it goes on serving."""
        await self.port.published_all()
        await self._rest()
        if self._driver is not None:
            self._driver.end_journal(at_rest=True)

    def tracing(self) -> dict[str, Any]:
        """Is a journal written, where, and since when."""
        return self._tracing.describe(self._driver)

    def switch_tracing(self, run: str | None) -> Path:
        """Begin a journal of that name in the middle of this life, or, None, end the one that is written."""
        place, driver = self.place, self._driver
        if driver is None or self._closed:
            raise Closed("this node does not take part")
        where = self._tracing.switch_off(driver) if run is None else self._tracing.switch_on(run, place, driver)
        log.info("the trace in %s was switched %s", where, "off" if run is None else "on")
        return where

    @property
    def _is_at_rest(self) -> bool:
        return self._driver is None or self._driver.inspector.is_at_rest

    async def _rest(self) -> None:
        """Until nothing of this node is under way."""
        while not self._is_at_rest:
            await asyncio.sleep(REST_CHECKED_EVERY)

    def _on_broken(self, error: Exception) -> None:
        """Better no member than one that answers its peers and delivers nothing."""
        self.broken = CubecastError(f"this node stopped, because a step of its protocol failed: {error!r}")
        self._breaking = asyncio.ensure_future(self._stop_broken(self.broken))

    async def _stop_broken(self, error: CubecastError) -> None:
        self.port.shut(error)
        try:
            await self._shut()
        finally:
            self.on_broken()

    async def _shut(self) -> None:
        self._closed = True
        if self._active is not None and not self._active.done():
            self._active.set_exception(Closed("this node was closed before it took part"))
            self._active.exception()  # its starter gets it; if none does, that is no mistake
        if self._driver is not None:
            self._driver.stop()
            self._driver.end_journal(at_rest=self.broken is None and self._is_at_rest)
        self.clients.close()
        self._peers.close()
        if self.observer is not None:
            self.observer.stop()
        if self.web is not None:
            await self.web.close()
        await self.reception.close()
        self.port.shut(self.broken)
        if self.port.recorder is not None:
            await self.port.recorder.close()
        give_back, self._give_back = self._give_back, lambda: None
        give_back()

    # The machine

    def _call(self, name: str, *arguments: Any) -> None:
        if self._driver is not None:
            self._driver.call(name, *arguments)

    def _stepped(self) -> None:
        """Did the step end something a caller waits for?"""
        driver, active = self._driver, self._active
        if driver is not None and driver.inspector.is_active:
            driver.watcher = None
            log.info("takes part with nodes %s", driver.inspector.living)
            self.port.open()
            self._acquaintances.note(self._directory, self._peers.left, self.inspector.living)
            if active is not None and not active.done():
                active.set_result(None)

    def _on_new_incarnation(self, incarnation: int) -> None:
        log.warning("others held this node faulty; it comes back as incarnation %d", incarnation)
        me = self.place
        self._directory.settle(Place(me.node, incarnation, me.instance, me.address))
        try:
            self._remember(incarnation)
        except BadInput as error:
            log.error("%s; the node goes on, and had better not start again while no other one is up", error)

    def _remember(self, incarnation: int) -> None:
        if self.port.recorder is not None:
            self.port.recorder.me = self.place.node, incarnation
        remember(self.config, incarnation)

    def _hold_back(self, topic: Topic) -> None:
        if self._driver is not None:
            self._driver.hold_back(topic)

    def _let_through(self, topic: Topic) -> None:
        if self._driver is not None:
            self._driver.let_through(topic)

    # Links

    def _on_up(self, peer: NodeId) -> None:
        self._call("on_peer_up", peer)
        self._acquaintances.note(self._directory, self._peers.left, self.inspector.living)
        if self.port.recorder is not None:
            self.port.recorder.returning.member_came()

    def _on_down(self, peer: NodeId) -> None:
        self._call("on_peer_down", peer)

    def _on_suspect(self, peer: NodeId | None) -> None:
        """Worth a warning, unless its goodbye comes a moment after the news of it, or it was a life it had earlier."""

        def tell() -> None:
            if self._closed or peer in self._peers.left:
                return
            if peer in self.inspector.living:
                log.info("node %s is here; an earlier life of it is held faulty", peer, extra={"peer": peer})
            else:
                log.warning("node %s is held faulty", peer, extra={"peer": peer})

        asyncio.get_running_loop().call_later(GOODBYES_TAKE, tell)

    def notice(self, kind: str, peer: NodeId | None, detail: str) -> None:
        if self.observer is not None:
            self.observer.notice(kind, peer, detail)

    def _note(self, peer: NodeId, data: bytes) -> None:
        if self.observer is not None:
            self.observer.latency.on_note(peer, data)

    def _on_refused(self, refusal: Refused) -> None:
        """A peer does not accept who we are."""
        if refusal.newest_incarnation >= LAST_INCARNATION:
            log.error("a node says that this id has lived all its incarnations: %s", refusal.reason)
        elif refusal.newest_incarnation >= self.place.incarnation:
            self._call("on_expelled", refusal.newest_incarnation)
        elif refusal.retry:
            log.info("a refusal of an incarnation that is over: %s", refusal.reason)
        elif self._active is not None and not self._active.done():
            self._active.set_exception(BadInput(refusal.reason))
        else:
            log.error("a node refuses this one: %s", refusal.reason)
