"""Listening beyond this machine in the clear must be wanted."""

import ipaddress

from cubecast.addresses import Address
from cubecast.errors import BadInput


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False


def check_listening(listen: Address | None, *, has_tls: bool, insecure: bool) -> None:
    if listen is not None and not (has_tls or insecure or is_loopback(listen.host)):
        raise BadInput(
            f"listening on {listen} without TLS would let everybody on the network read and write: give --tls-cert, "
            "--tls-key and --tls-ca, or --insecure if that is what you want"
        )
