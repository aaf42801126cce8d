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
        host, colon, port = text.rpartition(":")
        host = host.removeprefix("[").removesuffix("]")
        if not colon or not host or not port.isdecimal() or int(port) > 65_535:
            raise BadInput(f"{text!r} is not an address; write HOST:PORT, for example 127.0.0.1:7400")
        return cls(host, int(port))
