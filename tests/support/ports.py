"""Ports for those who must know them before anybody listens, as text."""

from cubecast.experiments import free_ports


def free_addresses(count: int) -> list[str]:
    return [str(address) for address in free_ports.free_addresses(count)]
