"""A network of our own: a namespace per member, and between them a switch in user space that treats frames badly.

Needs user and network namespaces that anybody may make (`unshare -Urnm`), `ip`, and nothing of the machine's network.
"""

import asyncio
import fcntl
import socket
import struct
import subprocess
import sys
from array import array
from dataclasses import dataclass
from random import Random

EVERYTHING = 0x0003
OUTGOING = 4
"""The kind of a frame that we sent ourselves."""
SIOCETHTOOL = 0x8946
OFFLOADS = (0x17, 0x19, 0x1F, 0x24, 0x2C)
"""Checksums, scatter, segments and their merging: a switch in user space wants frames as they are on a wire."""


@dataclass(frozen=True)
class Treatment:
    """Of frames from one member to another."""

    loss: float = 0.0
    doubles: float = 0.0
    delay: tuple[float, float] = (0.0, 0.0)
    """Seconds, from and to: frames overtake each other."""
    most: int = 1 << 16
    """Larger frames vanish, and nobody is told."""


GOOD = Treatment()
CUT = Treatment(loss=1.0)


class Switch:
    def __init__(self, members: int, random: Random) -> None:
        self._random = random
        self.treatments: dict[tuple[int, int], Treatment] = {}
        self.everywhere = GOOD
        self.forwarded = self.dropped = self.doubled = 0
        self._ports: list[socket.socket] = []
        self._places: dict[bytes, int] = {}
        for number in range(members):
            _connect(number)
            port = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(EVERYTHING))
            port.bind((f"s{number}", 0))
            port.setblocking(False)
            self._ports.append(port)
            asyncio.get_running_loop().add_reader(port, self._read, number)

    def _read(self, number: int) -> None:
        for _ in range(64):
            try:
                frame, about = self._ports[number].recvfrom(1 << 16)
            except BlockingIOError:
                return
            if about[2] != OUTGOING:
                self._places[frame[6:12]] = number
                place = self._places.get(frame[:6])
                for to in range(len(self._ports)) if place is None else (place,):
                    if to != number:
                        self._treat(number, to, frame)

    def _treat(self, number: int, to: int, frame: bytes) -> None:
        treatment, random = self.treatments.get((number, to), self.everywhere), self._random
        if len(frame) > treatment.most or random.random() < treatment.loss:
            self.dropped += 1
            return
        again = random.random() < treatment.doubles
        self.doubled += again
        for _ in range(1 + again):
            wait = random.uniform(*treatment.delay)
            if wait:
                asyncio.get_running_loop().call_later(wait, self._send, to, frame)
            else:
                self._send(to, frame)

    def _send(self, to: int, frame: bytes) -> None:
        try:
            self._ports[to].send(frame)
            self.forwarded += 1
        except OSError:
            self.dropped += 1

    def heal(self) -> None:
        self.treatments.clear()
        self.everywhere = GOOD


def address(number: int) -> str:
    return f"10.9.0.{number + 1}"


def inside(number: int) -> tuple[str, ...]:
    """The beginning of a command that runs in a member's network."""
    return ("ip", "netns", "exec", f"m{number}")


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)


def _connect(number: int) -> None:
    name, peer = f"m{number}", f"s{number}"
    _ip("netns", "add", name)
    _ip("link", "add", peer, "type", "veth", "peer", "name", name)
    _ip("link", "set", name, "netns", name)
    _ip("link", "set", peer, "up")
    _ip("-n", name, "addr", "add", f"{address(number)}/24", "dev", name)
    _ip("-n", name, "link", "set", name, "up")
    _ip("-n", name, "link", "set", "lo", "up")
    subprocess.run([*inside(number), sys.executable, "-m", "bench.attack.switch", name], check=True)


def switch_offloads_off(device: str) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        for offload in OFFLOADS:
            value = array("B", struct.pack("II", offload, 0))
            request = struct.pack("16sP", device.encode(), value.buffer_info()[0]).ljust(40, b"\0")
            fcntl.ioctl(asking, SIOCETHTOOL, request)


if __name__ == "__main__":
    switch_offloads_off(sys.argv[1])
