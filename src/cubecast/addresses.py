"""HOST:PORT as people write it."""

from typing import NamedTuple

from cubecast.errors import BadInput


class Address(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @classmethod
    def parse(cls, text: str) -> "Address":
        if not isinstance(text, str):
            raise BadInput(f"an address is text, HOST:PORT, not {text!r}")
        host, colon, port = text.rpartition(":")
        host = host.removeprefix("[").removesuffix("]")
        # Port and all: what follows the name of a scheme would be looked up as a host.
        is_host = host and not any(one.isspace() or one == "/" for one in host)
        if not colon or not is_host or not port.isdecimal() or int(port) > 65_535:
            raise BadInput(f"{text!r} is not an address; write HOST:PORT, for example 127.0.0.1:7400")
        return cls(host, int(port))

    @classmethod
    def to_dial(cls, text: "str | Address") -> "Address":
        """Of a node that listens there already."""
        address = text if isinstance(text, Address) else cls.parse(text)
        if not address.port:
            raise BadInput(f"{address} is no address to dial: a node has its port once it is started")
        return address
