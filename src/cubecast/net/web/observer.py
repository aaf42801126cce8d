"""Everything one node keeps to be observed: counters, the last minutes, the last events. Made only when asked for."""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from time import monotonic, time
from typing import Any, Protocol

from cubecast.ids import NodeId, Topic
from cubecast.net.gateway.clients import Clients
from cubecast.net.links.handshake import Place
from cubecast.net.members.directory import Directory
from cubecast.net.members.peers import Peers
from cubecast.net.members.security import Security
from cubecast.net.node.driver import Driver
from cubecast.net.observe.latency import Latency
from cubecast.net.observe.meter import Histogram, Meter
from cubecast.net.observe.recent import Happenings, Samples
from cubecast.net.settings.config import NodeConfig
from cubecast.protocol.families import find
from cubecast.protocol.inspector import Standing

TICK = 0.25
TICKS_PER_SAMPLE = 4
TOO_LATE = 1.0
"""Seconds by which the event loop may be late before a node calls itself overloaded."""
STATES = ("self", "alive", "disconnected", "suspected", "left", "unknown")
LINK_STATES = ("connected", "disconnected", "left")


class Observer:
    """Between `start` and `stop` it looks at the clock four times a second; the rest is counted as it happens."""

    def __init__(
        self,
        config: NodeConfig,
        directory: Directory,
        peers: Peers,
        clients: Clients,
        log_sizes: Callable[[], Mapping[str, Any]] = dict,
    ) -> None:
        """`log_sizes`: what the durable log says of itself, where there is one; it adds up all its topics."""
        self.config, self.directory, self.peers, self.clients = config, directory, peers, clients
        self.driver: Driver | None = None
        self.happenings = Happenings(time)
        self.meter = Meter(self.notice)
        self.loop_lag = Histogram()
        self.latency = Latency(self.meter, peers.send_note, self._members)
        self.links: dict[NodeId, tuple[str, float]] = {}
        """Per peer, what last happened to the link to it, and when."""
        self.reconnects = 0
        self.started = time()
        self.lateness = 0.0
        """By how much the event loop was late at most in the last second."""
        self.log_sizes = log_sizes
        self.log_seen: Mapping[str, Any] = {}
        """What it said when the metrics were asked for last."""
        self._worst = 0.0
        self._ticks = 0
        self._timer: asyncio.TimerHandle | None = None
        self._is_told = find(config.protocol).population.announced
        self._loop = asyncio.get_running_loop()
        self.samples = Samples(self.meter, peers.traffic, self.latency.histogram, monotonic())

    def attach(self, driver: Driver) -> None:
        """Watch this machine from now on."""
        self.driver = driver
        self.meter.inspector, self.meter.encode = driver.inspector, driver.codec.encode
        driver.meter = self.meter

    def start(self) -> None:
        # Not the loop's own clock, which some loops read once a turn and so never see late.
        self._timer = self._loop.call_later(TICK, self._tick, monotonic() + TICK)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def notice(self, kind: str, peer: NodeId | None, detail: str, topic: Topic | None = None) -> None:
        """Something rare happened."""
        if kind == "suspected" and peer is not None and self.links.get(peer, ("", 0.0))[0] == "left":
            return  # that is how the protocol takes note of a goodbye
        self.happenings(kind, peer, detail, topic)
        if kind in LINK_STATES and peer is not None:
            self.latency.forget(peer)
            if kind == "connected" and self.links.get(peer, ("", 0.0))[0] == "disconnected":
                self.reconnects += 1
            self.links[peer] = (kind, time())

    def overload(self) -> list[str]:
        """Why this node had better get less to do; nothing when it is well."""
        reasons = []
        if self.lateness > TOO_LATE:
            reasons.append(f"the event loop is {self.lateness:.1f} s late")
        if self.driver is not None and self.driver.deferred.bytes > self.config.peer_budget // 2:
            reasons.append(f"{self.driver.deferred.bytes} bytes wait for subscribers that read slowly")
        return reasons

    @property
    def incarnation(self) -> int:
        return -1 if self.directory.me is None else self.directory.me.incarnation

    @property
    def is_tracing(self) -> bool:
        return self.driver is not None and self.driver.journalling.journal is not None

    def state(self, place: Place, standings: Mapping[NodeId, Standing]) -> tuple[str, float | None]:
        """Of a member, and since when its link is as it is. A lost link shows at once; that its node is held faulty
        follows when it does not come back."""
        link, at = self.links.get(place.node, ("", None))
        standing = standings.get(place.node)
        if self.directory.me is not None and place.node == self.directory.me.node:
            return "self", self.started
        if standing is None:  # where links come and go on purpose, a closed one is no news
            return (link if link == "left" or (link == "disconnected" and self._is_told) else "unknown"), at
        if not standing.alive:
            return ("left" if link == "left" else "suspected"), at
        return ("disconnected" if link == "disconnected" else "alive"), at

    def standings(self) -> dict[NodeId, Standing]:
        """What the machine says of members, and of those it only counts among the living what others were told."""
        if self.driver is None:
            return {}
        inspector, places = self.driver.inspector, self.directory.places
        known = {node: Standing(node, places[node].incarnation, True) for node in inspector.living if node in places}
        return {**known, **inspector.standings()}

    def states(self) -> Counter[str]:
        """How many members are in which state."""
        found = Counter(dict.fromkeys(STATES, 0))
        standings = self.standings()
        found.update(self.state(place, standings)[0] for place in self.directory.places.values())
        return found

    def sizes(self) -> dict[str, float]:
        """What is there at this moment."""
        meter = self.meter
        return {
            "held": meter.held_messages,
            "held_bytes": meter.held_bytes,
            "queued": sum(self.peers.queued.values()),
            "deferred_bytes": 0 if self.driver is None else self.driver.deferred.bytes,
            "clients": len(self.clients),
            "loop_lag": self.lateness,
        }

    def describe(self) -> dict[str, Any]:
        """For people who ask through the node's own protocol."""
        newest = self.samples.ring[-1] if self.samples.ring else {}
        return {"rates": newest, "totals": self.samples.totals(), "faults": dict(self.happenings.counts)}

    def _members(self, topic: Topic) -> list[NodeId]:
        """Who wants the topic."""
        return [] if self.driver is None else self.driver.inspector.destinations(topic)

    def _tick(self, due: float) -> None:
        now = monotonic()
        late = max(0.0, now - due)
        self.loop_lag.add(late)
        self._worst = max(self._worst, late)
        self._ticks += 1
        if self._ticks >= TICKS_PER_SAMPLE:
            self._ticks, self.lateness, self._worst = 0, self._worst, 0.0
            self.samples.take(now, time(), self.sizes())
        self._timer = self._loop.call_later(TICK, self._tick, now + TICK)


# What pages, metrics and health checks ask of the node they are served by.


class WatchedNode(Protocol):
    security: Security
    clients: Clients
    observer: Observer | None

    @property
    def config(self) -> NodeConfig: ...

    def status(self) -> dict[str, Any]: ...
    def reasons_not_ready(self) -> list[str]: ...
    def tracing(self) -> dict[str, Any]: ...
    def switch_tracing(self, run: str | None) -> Path: ...
    def notice(self, kind: str, peer: NodeId | None, detail: str) -> None:
        """Something rare happened, for observers."""
