"""A node: the machine, its links and its users, from the first call to the last goodbye."""

import asyncio
import logging
import secrets
from typing import Any

from cubecast.errors import BadInput, Closed
from cubecast.ids import NodeId, Topic
from cubecast.net.addresses import Address
from cubecast.net.clients import Clients
from cubecast.net.config import NodeConfig
from cubecast.net.connection import Connection
from cubecast.net.directory import Directory
from cubecast.net.driver import Driver
from cubecast.net.handshake import VERSION, Accepted, Place, Refused
from cubecast.net.input_log import InputLog
from cubecast.net.joining import Admission, apply_for_a_place, remember
from cubecast.net.local_port import LocalPort
from cubecast.net.peers import Events, Peers
from cubecast.net.reception import Reception
from cubecast.net.status import MOST_SHOWN, describe
from cubecast.protocol.vcube.cubecast.machine import Cubecast

log = logging.getLogger(__name__)

CLOSING_TIME = 5.0
"""Seconds a node gives its last publications to arrive."""
REST_CHECKED_EVERY = 0.01
"""Seconds; looking through all topics after every step would cost more than the steps."""
PLACES_TRIED = 8


class LiveNode:
    """Make it, `await start()`, use its `port`, `await close()`."""

    def __init__(self, config: NodeConfig) -> None:
        self.config = config
        self.instance = secrets.token_bytes(8)
        self._directory = Directory(config.dimension, lambda node: self._peers.is_connected(node))
        self._events = Events(lambda sender, frames: None, self._on_up, self._on_down, self._on_refused)
        self._peers = Peers(self._directory, self._events, config)
        self.reception = Reception(config, self._directory, self._peers)
        self.port = LocalPort(config, self._call, self._hold_back, self._let_through)
        self.port.turn = self._peers.turn
        self.port.on_new_incarnation = self._on_new_incarnation
        self.port.on_status = self.status
        self.port.on_close = self.close
        self.clients = Clients(self.port, self._who, most=config.max_clients, budget=config.client_budget)
        self.reception.on_client = self.clients.accept
        self._driver: Driver | None = None
        self._active: asyncio.Future[None] | None = None
        self._closed = False

    # Life

    async def start(self) -> None:
        """Listen, get a place, and take part. Returns when everybody who lives knows this node."""
        address = await self.reception.open()
        try:
            for attempt in range(PLACES_TRIED):
                self._active = asyncio.get_running_loop().create_future()
                self._live(await apply_for_a_place(self.config, self.instance, attempt), str(address))
                try:
                    await self._active
                    return
                except BadInput:
                    if self.config.node is not None or attempt + 1 == PLACES_TRIED:
                        raise
                    self._leave_place()
        except BaseException:
            self._leave_place()
            await self._shut()
            raise

    def _live(self, admission: Admission, address: str) -> None:
        if self._closed:
            raise Closed("this node was closed before it took part")
        config, now = self.config, asyncio.get_running_loop().time()
        node, incarnation = admission.node, admission.incarnation
        self._directory.dimension = admission.dimension
        self._directory.learn(admission.places)
        self._directory.settle(Place(node, incarnation, self.instance, address))
        remember(config, incarnation)
        founders = 1 << node if admission.is_founder else 0
        parameters = config.parameters(admission.dimension, founders)
        machine = Cubecast(node, parameters, incarnation=incarnation)
        journal, recorder = None, None
        if config.journal is not None:
            # Here, because it brings Parquet along, which a node that writes no trace does without.
            from cubecast.net.journal import Journal

            journal = Journal(config.journal, node, incarnation, self.instance, packets=config.journal_packets)
            journal.started(now)
        if config.inputs is not None:
            recorder = InputLog(config.inputs, machine, parameters, self.instance)
        self._driver = Driver(
            machine,
            self.port,
            self._peers.send,
            self._peers.turn,
            deferral_budget=config.peer_budget,
            journal=journal,
            recorder=recorder,
        )
        self._driver.watcher = self._stepped
        self._events.packets = self._driver.packets
        self._driver.call("on_start")

    def _leave_place(self) -> None:
        """Somebody else got the id first, so nothing of this belongs to its history."""
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

    @property
    def machine(self) -> Cubecast:
        """To look at, not to touch."""
        if self._driver is None:
            raise Closed("this node was not started")
        return self._driver.machine

    @property
    def address(self) -> Address:
        """What others dial."""
        return self.reception.address

    def link_to(self, node: NodeId) -> Connection | None:
        return self._peers.link(node)

    def _who(self) -> Accepted | None:
        """What a client is told."""
        me, directory = self._directory.me, self._directory
        if me is None or self._driver is None or not self._driver.machine.is_active:
            return None
        return Accepted(VERSION, me, directory.dimension, list(directory.places.values()))

    def status(self) -> dict[str, Any]:
        """This node and what it knows of the others, for people and programs. Times are in seconds."""
        return describe(self.config, self._directory, self._peers, self._driver) | {
            "clients": len(self.clients),
            "waiting": self._waiting()[:MOST_SHOWN],
            **self.port.describe(),
        }

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
            waiting = self._waiting()
            log.warning("closing although something is still under way: %d things, first %s", len(waiting), waiting[:1])
        finally:
            await self._shut()

    async def end_journal(self) -> None:
        """Wait until nothing of this node is under way; there its history ends, at rest, while it goes on serving."""
        await self.port.published_all()
        await self._rest()
        if self._driver is not None:
            self._driver.end_journal(at_rest=True)

    def _waiting(self) -> list[str]:
        return [] if self._driver is None else self._driver.machine.waiting()

    async def _rest(self) -> None:
        """Until nothing of this node is under way."""
        while self._waiting():
            await asyncio.sleep(REST_CHECKED_EVERY)

    async def _shut(self) -> None:
        self._closed = True
        if self._active is not None and not self._active.done():
            self._active.set_exception(Closed("this node was closed before it took part"))
            self._active.exception()  # whoever starts it gets it; if nobody does, that is no mistake
        if self._driver is not None:
            self._driver.stop()
            self._driver.end_journal(at_rest=not self._waiting())
        self.clients.close()
        self._peers.close()
        await self.reception.close()
        self.port.shut(None)

    # The machine

    def _call(self, name: str, *arguments: Any) -> None:
        if self._driver is not None:
            self._driver.call(name, *arguments)

    def _stepped(self) -> None:
        """Did the step end something somebody waits for?"""
        driver, active = self._driver, self._active
        if driver is not None and driver.machine.is_active:
            driver.watcher = None
            self.port.open()
            if active is not None and not active.done():
                active.set_result(None)

    def _on_new_incarnation(self, incarnation: int) -> None:
        me = self.place
        self._directory.settle(Place(me.node, incarnation, me.instance, me.address))
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

    def _on_down(self, peer: NodeId) -> None:
        self._call("on_peer_down", peer)

    def _on_refused(self, refusal: Refused) -> None:
        """Somebody does not accept who we are."""
        if refusal.newest_incarnation >= self.place.incarnation:
            self._call("on_expelled", refusal.newest_incarnation)
        elif refusal.retry:
            log.info("a refusal of an incarnation that is over: %s", refusal.reason)
        elif self._active is not None and not self._active.done():
            self._active.set_exception(BadInput(refusal.reason))
        else:
            log.error("a node refuses this one: %s", refusal.reason)
