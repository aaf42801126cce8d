"""All thin clients of a node, whatever their frames travel in."""

import logging
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import structs

from cubecast.errors import RemoteProtocolError
from cubecast.ids import Topic
from cubecast.net.gateway.gateway import Gateway
from cubecast.net.gateway.guarded_port import GuardedPort
from cubecast.net.gateway.link import Link
from cubecast.net.links.connection import Connection, Traffic
from cubecast.net.links.handshake import NOT_READY, Accepted, ClientGreeting, Refused, agreed, encode
from cubecast.net.links.loop import Slices
from cubecast.net.members.security import OPEN_VISITOR, Visitor
from cubecast.net.port.port import NodePort
from cubecast.net.security.limits import Holdings, Share, TopicShares
from cubecast.net.security.policy import Policy, Principal
from cubecast.net.settings.security import Limits

if TYPE_CHECKING:
    from cubecast.net.security.trust import Trust


class Counted:
    def __init__(self) -> None:
        self._of: dict[Link, tuple[str, str | None]] = {}
        self._addresses: Counter[str] = Counter()
        self._principals: Counter[str] = Counter()

    def take(self, link: Link, principal: Principal, limits: Limits) -> Refused | None:
        """A place for one more, or why there is none."""
        address, name = link.host, None if principal.is_unrestricted else principal.name
        if self._addresses[address] >= limits.clients_per_address:
            return Refused(f"this node serves {limits.clients_per_address} clients at {address} already", retry=True)
        if name is not None and self._principals[name] >= limits.clients_per_principal:
            return Refused(f"{name} has {limits.clients_per_principal} connections to this node already", retry=True)
        self._of[link] = address, name
        self._addresses[address] += 1
        if name is not None:
            self._principals[name] += 1
        return None

    def leave(self, link: Link) -> None:
        address, name = self._of.pop(link)
        for counter, key in ((self._addresses, address), (self._principals, name)):
            if key is not None:
                counter[key] -= 1
                if not counter[key]:
                    del counter[key]


log = logging.getLogger(__name__)

MOST_NAME = 64
"""Characters of what a client calls itself."""
REQUESTS_AT_ONCE = 8
"""Of one client, before it is asked whether others wait."""


class Clients:
    """Takes the connections of clients over from reception."""

    def __init__(
        self,
        port: NodePort,
        answer: Callable[[], Accepted | None],
        *,
        most: int,
        budget: int,
        is_known: Callable[[Topic], bool] = lambda topic: False,
        limits: Limits | None = None,
        answer_filling: Callable[[], Accepted | None] = lambda: None,
        on_cut: Callable[[str, str], None] = lambda kind, detail: None,
    ) -> None:
        """`answer` says who this node is and whom it knows, or None while it is not ready; `is_known` whether it
        keeps the counters of a topic already; `answer_filling` what a node is told that fills its log, while this one
        does the same; `on_cut` hears of clients that were sent away."""
        self._port, self._answer, self._most, self.budget = port, answer, most, budget
        self._gateways: dict[Link, Gateway] = {}
        self._guarded: dict[Link, tuple[Visitor, GuardedPort]] = {}
        self.traffic = Traffic()
        self.slices = Slices()
        """Of what clients ask for and leave behind, all of them together."""
        self.limits = Limits() if limits is None else limits
        self._holdings = Holdings(lambda: self.limits)
        self._places, self._shares = Counted(), TopicShares(is_known)
        self._closed = False
        self._answer_filling, self._on_cut = answer_filling, on_cut

    def accept(
        self, connection: Connection, greeting: ClientGreeting, visitor: Visitor = OPEN_VISITOR
    ) -> Refused | None:
        gateway = self.admit(connection, greeting, visitor)
        if isinstance(gateway, Refused):
            return gateway
        connection.slices, connection.at_once = self.slices, REQUESTS_AT_ONCE
        connection.on_room = lambda _: gateway.on_room()
        connection.take_over(lambda _, frames: gateway.on_frames(frames), self.left)
        return None

    def admit(self, link: Link, greeting: ClientGreeting, visitor: Visitor, **patience: float) -> Gateway | Refused:
        """A gateway for the link, which was told so; the link's owner brings it frames and says when it `left`."""
        if self._closed:
            return Refused("this node is leaving", retry=True)
        answer = self._answer() or (self._answer_filling() if greeting.fills else None)
        if answer is None:
            return Refused(NOT_READY, retry=True)
        if len(self._gateways) >= self._most:
            return Refused(f"this node serves {self._most} clients already", retry=True)
        refusal = self._places.take(link, visitor.principal, self.limits)
        if refusal is not None:
            return refusal
        link.label = f"{self._name(greeting, visitor)} at {link.label}"
        link.budget, link.traffic = self.budget, self.traffic
        link.send(encode(structs.replace(answer, version=agreed(greeting))))
        gateway = self._gateways[link] = Gateway(
            self._port_for(link, visitor),
            link,
            requests_per_second=self.limits.requests_per_second,
            subscriptions=self.limits.subscriptions,
            alike=self.limits.subscriptions_per_pattern,
            slices=self.slices,
            share=Share(
                self._holdings, link.host, None if visitor.principal.is_unrestricted else visitor.principal.name
            ),
            on_full=self._relieve,
            **patience,
        )
        return gateway

    def _relieve(self) -> None:
        """Each client may let a little wait; all of them together may not let a node run out of memory."""
        waiting = {link: link.queued for link in self._gateways}
        left = sum(waiting.values())
        for link in sorted(waiting, key=lambda one: -waiting[one]):
            if left <= self.limits.memory:
                return
            left -= waiting[link]
            link.abort(
                f"too much waits for the clients of this node, and most of it, {waiting[link]} bytes, for this one"
            )

    def _name(self, greeting: ClientGreeting, visitor: Visitor) -> str:
        """For people, and without what a client could write to mislead them."""
        said = "".join(one for one in greeting.name[:MOST_NAME] if one.isprintable()) or "client"
        return said if visitor.principal.is_unrestricted else f"{visitor.principal.name} ({said})"

    def _port_for(self, link: Link, visitor: Visitor) -> NodePort:
        if visitor.principal.is_unrestricted and not self.limits.restrict_clients:
            return self._port
        guarded = GuardedPort(self._port, visitor.principal, self.limits, self._shares)
        self._guarded[link] = visitor, guarded
        return guarded

    def renew(self, policy: Policy) -> None:
        """Who is not known any more has to go; others may do what the new policy grants them."""
        for link, (visitor, guarded) in list(self._guarded.items()):
            if visitor.principal.is_unrestricted:
                continue  # a node, whose certificate counts whatever the policy says
            principal = policy.renewed(visitor.principal, visitor.credentials)
            if principal is None:
                link.abort("the new policy does not know it")
            else:
                self.slices.begin(guarded.renew(principal))

    def check_certificates(self, trust: "Trust") -> None:
        """Whose certificate would not be believed any more has to go, whatever else it showed."""
        for link in list(self._gateways):
            objection = trust.objection(link.chain()) if isinstance(link, Connection) else None
            if objection is not None:
                link.abort(objection)

    def left(self, link: Link, error: Exception | None) -> None:
        self._gateways.pop(link).close()
        self._guarded.pop(link, None)
        self._places.leave(link)
        log.info("a client left: %s", error or "closed", extra={"client": link.label})
        if isinstance(error, RemoteProtocolError):
            self._on_cut("refused-frame", f"{link.label}: {error}")
        elif isinstance(error, ConnectionAbortedError):
            self._on_cut("client-cut", f"{link.label}: {error}")

    def reconfigure(self, *, most: int, budget: int) -> None:
        """Who is there stays, under the new budget."""
        self._most, self.budget = most, budget
        for link in self._gateways:
            link.budget = budget

    @property
    def queued(self) -> list[int]:
        """Bytes that wait for each client to read."""
        return [link.queued for link in self._gateways]

    def __len__(self) -> int:
        return len(self._gateways)

    def close(self) -> None:
        """Let them go; they will look for another node, and no client comes instead."""
        self._closed = True
        for link in list(self._gateways):
            link.close()
