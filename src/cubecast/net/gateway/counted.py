"""How many clients there are of an address and of a principal."""

from collections import Counter

from cubecast.net.gateway.gateway import Link
from cubecast.net.links.handshake import Refused
from cubecast.net.security.principal import Principal
from cubecast.net.settings.security import Limits


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
