"""A node put together: the machine's life, and the listeners through which peers, clients and browsers come."""

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cubecast.addresses import Address
from cubecast.errors import BadInput, Closed, CubecastError
from cubecast.ids import NodeId
from cubecast.net.gateway.client import ClientPort
from cubecast.net.gateway.clients import Clients
from cubecast.net.links.connection import Connection
from cubecast.net.links.handshake import VERSION, Accepted, Place
from cubecast.net.links.login import node_login
from cubecast.net.members.reception import Reception
from cubecast.net.members.security import Security
from cubecast.net.node.driver import Driver
from cubecast.net.node.life import NodeLife
from cubecast.net.node.local_port import LocalPort
from cubecast.net.security.policy import Policy
from cubecast.net.settings.config import NodeConfig
from cubecast.net.settings.resolve import Prepare
from cubecast.net.settings.security import exposures
from cubecast.protocol.inspector import Inspector

if TYPE_CHECKING:
    from pathlib import Path

    from cubecast.net.security.trust import Trust
    from cubecast.net.web.observer import Observer
    from cubecast.net.web.server import WebServer

log = logging.getLogger(__name__)

CLOSING_TIME = 5.0
"""Seconds a node gives its last publications to arrive."""


class LiveNode:
    """Make it, `await start()`, use its `port`, `await close()`.

    It has more short methods than other classes because everything about a node is asked here."""

    def __init__(self, config: NodeConfig, on_broken: Callable[[], None] = lambda: None) -> None:
        """`on_broken` is told when the node has stopped by itself; `broken` says why."""
        self.security = Security(config, self._on_policy, self._on_trust)
        config = self.security.settled(config)
        self.life = NodeLife(config, self.security, self)
        self.clients = Clients(
            self.life.port,
            self._who,
            most=config.max_clients,
            budget=config.client_budget,
            is_known=self.life.knows,
            limits=config.limits,
            answer_filling=self._who_fills,
            on_cut=self._on_refused,
        )
        self.reception = Reception(
            config, self.life.directory, self.life.peers, self.security, self.clients.accept, self._on_refused
        )
        self.reloads: list[Prepare] = [self.security.prepare, self._prepare]
        """Asked when settings are read again; what is reloadable in a node adds itself here."""
        self.web: WebServer | None = None
        self.observer: Observer | None = None
        self._started = self._closed = False
        self.broken: CubecastError | None = None
        self._on_end = on_broken
        self._breaking: asyncio.Task[None] | None = None

    # Life

    async def start(self) -> None:
        """Listen, get a place, and take part.

        Returns when everybody who lives knows this node, and its log has what it missed while it was away.
        """
        if self._closed:
            raise Closed("this node is closed; make a new one")
        if self._started:
            raise BadInput("this node was started already; `async with` starts it, too")
        self._started = True
        address = await self.reception.open()
        warning = self.security.warning()
        if warning is not None:
            log.warning(warning)
        try:
            await self.life.prepare()
            for exposure in exposures(self.config.tls, self.config.data):
                log.warning(exposure)
            await self._open_eyes()
            await self.life.take_part(str(address), self._dial)
        except BaseException:
            self.life.leave_place()
            await self._shut()
            raise

    def _dial(self, address: Address, *, name: str, patience: float, fills: bool = False) -> ClientPort:
        """A peer's port, for its log."""
        cluster, login = self.config.cluster, node_login(self.config.tls)
        return ClientPort([address], cluster=cluster, name=name, patience=patience, login=login, fills=fills)

    async def _open_eyes(self) -> None:
        """Before this node takes part, so that it can be asked why it does not."""
        # Imported here, because nodes without observers do without.
        config = self.config
        if config.http is not None or config.observe:
            from cubecast.net.web.observer import Observer

            self.observer = Observer(config, self.life.directory, self.life.peers, self.clients, self._log_sizes)
            self.observer.start()
        if config.http is not None:
            from cubecast.net.web.server import WebServer

            self.web = WebServer(self, config.http, tls=self.security.web_tls(config.http))
            await self.web.open()

    async def close(self) -> None:
        """Leave in good order: what was published arrives, subscriptions end, the others are told."""
        if self._closed:
            return
        self.clients.close()
        try:
            async with asyncio.timeout(CLOSING_TIME):
                await self.life.finish()
        except TimeoutError:
            driver = self.life.driver
            waiting = [] if driver is None else driver.inspector.waiting()
            log.warning("closing although something is still under way: %s", waiting[:1] or "publications of its own")
        finally:
            await self._shut()

    async def _shut(self) -> None:
        self._closed = True
        self.life.stop(broken=self.broken is not None)
        self.clients.close()
        self.life.peers.close()
        if self.observer is not None:
            self.observer.stop()
        if self.web is not None:
            await self.web.close()
        await self.reception.close()
        self.port.shut(self.broken)
        await self.life.end()

    def on_broken(self, error: Exception) -> None:
        """Better no member than one that answers its peers and delivers nothing."""
        self.broken = CubecastError(f"this node stopped, because a step of its protocol failed: {error!r}")
        self._breaking = asyncio.ensure_future(self._stop_broken(self.broken))

    async def _stop_broken(self, error: CubecastError) -> None:
        self.port.shut(error)
        try:
            await self._shut()
        finally:
            self._on_end()

    async def end_journal(self) -> None:
        """Wait until nothing of this node is under way; there its history ends, at rest, while it goes on serving."""
        await self.life.end_journal()

    # What it is

    @property
    def config(self) -> NodeConfig:
        return self.life.config

    @property
    def instance(self) -> bytes:
        return self.life.instance

    @property
    def port(self) -> LocalPort:
        return self.life.port

    @property
    def place(self) -> Place:
        return self.life.place

    @property
    def inspector(self) -> Inspector:
        return self.life.inspector

    @property
    def machine(self) -> Any:
        """To look at, not to touch."""
        return self.inspector.machine

    @property
    def address(self) -> Address:
        """What others dial."""
        return self.reception.address

    def identity(self) -> dict[str, int]:
        """What a line of its log says of it."""
        me = self.life.directory.me
        return {} if me is None else {"node": me.node, "incarnation": me.incarnation}

    def link_to(self, node: NodeId) -> Connection | None:
        return self.life.peers.link(node)

    def status(self) -> dict[str, Any]:
        """This node and what it knows of the others, for people and programs. Times are in seconds."""
        kept = {} if self.life.recorder is None else {"log": self.life.recorder.describe()}
        return self.life.describe() | {
            "clients": len(self.clients),
            "http": None if self.web is None else str(self.web.address),
            "observed": None if self.observer is None else self.observer.describe(),
            **self.port.describe(),
            **kept,
        }

    def _log_sizes(self) -> dict[str, Any]:
        return {} if self.life.recorder is None else self.life.recorder.describe()

    def reasons_not_ready(self) -> list[str]:
        """Why clients had better go elsewhere for now; none when they are welcome."""
        life = self.life
        if self._closed or life.directory.me is None or life.driver is None:
            return ["this node is closed" if self._closed else "this node has no place yet"]
        if not life.is_active:
            return ["not every living member knows this node yet"]
        if not life.is_filled:
            refill = None if life.recorder is None else life.recorder.catch_up.refill
            so_far = "" if refill is None else f"; {refill.messages} messages have come so far"
            return [f"this node's log is not filled yet with what it missed{so_far}"]
        return [] if self.observer is None else self.observer.overload()

    def tracing(self) -> dict[str, Any]:
        """Is a journal written, where, and since when."""
        return self.life.tracing()

    def switch_tracing(self, run: str | None) -> "Path":
        """Begin a journal of that name in the middle of this life, or, None, end the one that is written."""
        return self.life.switch_tracing(run)

    # Listeners

    def _who(self) -> Accepted | None:
        """What a client is told."""
        return self._who_fills() if self.life.is_filled else None

    def _who_fills(self) -> Accepted | None:
        """What a node is told that fills its log: it need not wait for this one's to be filled."""
        if not self.life.is_active:
            return None
        directory = self.life.directory
        dimension, places = directory.dimension, directory.for_newcomers()
        return Accepted(VERSION, self.place, dimension, places, max_payload=self.config.max_payload)

    def _on_policy(self, policy: Policy) -> None:
        self.clients.renew(policy)

    def _on_trust(self, trust: "Trust") -> None:
        self.life.peers.check_certificates(trust)
        self.clients.check_certificates(trust)

    def _prepare(self, config: NodeConfig) -> Callable[[], None]:
        """The budgets of a living node are where they are used; whatever reads `config` finds the new one."""
        config = self.security.settled(config)

        def take_effect() -> None:
            self.life.reconfigure(config)
            self.reception.reconfigure(config)
            if self.web is not None:
                self.web.callers.reconfigure()
            self.clients.limits = config.limits
            self.clients.reconfigure(most=config.max_clients, budget=config.client_budget)

        return take_effect

    # Who watches

    def began(self, driver: Driver) -> None:
        if self.observer is not None:
            self.observer.attach(driver)

    def notice(self, kind: str, peer: NodeId | None, detail: str) -> None:
        if self.observer is not None:
            self.observer.notice(kind, peer, detail)

    def _on_refused(self, kind: str, detail: str) -> None:
        self.notice(kind, None, detail)

    def on_note(self, peer: NodeId, data: bytes) -> None:
        if self.observer is not None:
            self.observer.latency.on_note(peer, data)
