"""Ports for those who must know them before anybody listens, as text."""

from cubecast.experiments.live_faults import link_proxy


def free_addresses(count: int) -> list[str]:
    return [str(address) for address in link_proxy.free_addresses(count)]
