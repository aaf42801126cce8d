"""One TCP connection that carries frames: what is sent in one turn of the event loop is one write, if it is not much.

No task, stream or future per frame. What a connection may hold for a peer that does not read is bounded: beyond
`budget` bytes it is aborted, and their sender learns it from `on_lost`.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from hashlib import sha256
from typing import Any, Final, cast

from cubecast.errors import RemoteProtocolError
from cubecast.net.links.framing import HEADER_BYTES, Splitter, header
from cubecast.net.links.loop import Slices
from cubecast.net.links.turn import Turn
from cubecast.net.settings.fields import MAX_FRAME

DEFAULT_BUDGET: Final = 32 << 20
FULL_ABOVE: Final = 1 << 20
ROOM_BELOW: Final = 1 << 18
"""Bytes that wait for the peer to read: with more a connection is full, with less it has room again."""
MUCH: Final = 1 << 15
"""Bytes that are worth handing over piece by piece: joining them would cost more."""
AT_ONCE: Final = 64
"""Frames handed to the owner in one step."""


class Traffic:
    """What went through connections: counted once per read and once per write, so it costs nothing."""

    __slots__ = ("bytes_in", "bytes_out", "frames_in", "frames_out")

    def __init__(self) -> None:
        self.bytes_in = self.bytes_out = self.frames_in = self.frames_out = 0


class Connection(asyncio.Protocol):
    """Either side of a connection; its owner sets the callbacks before or in `on_open`."""

    def __init__(
        self,
        *,
        on_open: Callable[["Connection"], None],
        on_frames: Callable[["Connection", list[bytes]], None],
        on_lost: Callable[["Connection", Exception | None], None],
        budget: int = DEFAULT_BUDGET,
        most: int = MAX_FRAME,
    ) -> None:
        self._on_open = on_open
        self.on_frames = on_frames
        self.on_lost = on_lost
        self.on_room: Callable[[Connection], None] | None = None
        """Called when a full connection has room again."""
        self.on_full: Callable[[Connection], None] | None = None
        self.budget = budget
        self._splitter = Splitter(most)
        self._out: list[bytes] = []
        self._out_bytes = 0
        self._transport: asyncio.Transport | None = None
        self.turn = Turn()
        """Shared with others by owners that have many connections."""
        self.traffic = Traffic()
        """Shared, too."""
        self.slices = Slices()
        """Shared, too: what came in one read may be thousands of small requests."""
        self.at_once = AT_ONCE
        self._unread: deque[bytes] = deque()
        """Frames the owner had no time for yet."""
        self._error: Exception | None = None
        self.is_full = False
        """The peer does not read as fast as we write."""
        self.early: list[bytes] = []
        """Frames that came before the present owner took over."""
        self.host = self.label = ""
        """Where the other end is, and who, for people."""

    # For the owner

    def send(self, frame: bytes, head: bytes | None = None) -> None:
        """Queue a frame for the write at the end of this turn; `head` is its header, when the caller made it
        already."""
        out = self._out
        if not out:
            self.turn.add(self.flush)
        out.append(header(frame) if head is None else head)
        out.append(frame)
        self._out_bytes += len(frame) + HEADER_BYTES
        if self._out_bytes > FULL_ABOVE:
            self.flush()  # so that who sends much in one turn learns in it that the connection is full

    def send_at_once(self, framed: bytes) -> None:
        """Write a frame with its header, and what is queued before it, now."""
        transport = self._transport
        if transport is None:
            return
        if self._out:
            self._out.append(framed)
            framed = b"".join(self._out)
            self.traffic.frames_out += len(self._out) // 2
            self._out.clear()
            self._out_bytes = 0
        traffic = self.traffic
        traffic.frames_out += 1
        traffic.bytes_out += len(framed)
        transport.write(framed)
        self._check_budget(transport)

    def flush(self) -> None:
        """Write what is queued now."""
        transport, out = self._transport, self._out
        if transport is None or not out:
            return
        self.traffic.bytes_out += self._out_bytes
        self.traffic.frames_out += len(out) // 2
        if self._out_bytes > MUCH:
            self._out = []
            transport.writelines(out)
        else:
            transport.write(b"".join(out))
            out.clear()
        self._out_bytes = 0
        self._check_budget(transport)

    def _check_budget(self, transport: asyncio.Transport) -> None:
        if (self.is_full or self.budget < FULL_ABOVE) and transport.get_write_buffer_size() > self.budget:
            self.abort(f"it does not read: {transport.get_write_buffer_size()} bytes wait for it")

    @property
    def queued(self) -> int:
        """Bytes that wait for the peer to read."""
        return self._out_bytes + (0 if self._transport is None else self._transport.get_write_buffer_size())

    def certificate(self) -> dict[str, Any] | None:
        """The other end's, verified; None when it showed none."""
        return None if self._transport is None else self._transport.get_extra_info("peercert") or None

    def channel(self) -> bytes:
        """The digest of the certificate of the node that was dialled; empty without TLS."""
        secured = None if self._transport is None else self._transport.get_extra_info("ssl_object")
        certificate = None if secured is None else secured.getpeercert(binary_form=True)
        return b"" if certificate is None else sha256(certificate).digest()

    def chain(self) -> list[bytes]:
        """The other end's certificate and those it was verified by; empty when it showed none."""
        secured = None if self._transport is None else self._transport.get_extra_info("ssl_object")
        if secured is None:
            return []
        from cubecast.net.security.trust import verified_chain  # brings a library along that others do without

        return verified_chain(secured)

    def allow_frames(self, most: int) -> None:
        """Up to this size from now on."""
        self._splitter.most = most

    def pause_reading(self) -> None:
        if self._transport is not None:
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        if self._transport is not None:
            self._transport.resume_reading()

    def close(self) -> None:
        """Write what is queued, then close."""
        self.flush()
        if self._transport is not None:
            self._transport.close()

    def abort(self, reason: str) -> None:
        self._error = self._error or ConnectionAbortedError(reason)
        if self._transport is not None:
            self._transport.abort()

    def take_over(
        self,
        on_frames: Callable[["Connection", list[bytes]], None],
        on_lost: Callable[["Connection", Exception | None], None],
    ) -> None:
        """A new owner, from the next turn on: what came early is handed over first."""
        self.on_frames, self.on_lost = on_frames, on_lost
        early, self.early = self.early, []
        if early:
            self._hand_over(early)

    # For asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=FULL_ABOVE, low=ROOM_BELOW)
        peer = transport.get_extra_info("peername")
        self.host = peer[0] if isinstance(peer, tuple) else ""
        self.label = f"{peer[0]}:{peer[1]}" if isinstance(peer, tuple) else "a local peer"
        self._on_open(self)

    def data_received(self, data: bytes) -> None:
        try:
            frames = self._splitter.feed(data)
            self.traffic.bytes_in += len(data)
            if frames:
                self.traffic.frames_in += len(frames)
                self._hand_over(frames)
        except RemoteProtocolError as error:
            self._refuse(error)

    def _hand_over(self, frames: list[bytes]) -> None:
        """While the owner is behind, nothing more is read."""
        if self._unread:
            self._unread.extend(frames)
        elif len(frames) <= self.at_once and not self.slices.is_behind:
            self.on_frames(self, frames)
        else:
            self._unread.extend(frames)
            self.slices.begin(self._next_frames)
            if self._unread:
                self.pause_reading()

    def _next_frames(self) -> bool:
        unread = self._unread
        if self._transport is None or self._transport.is_closing():
            unread.clear()
            return False
        try:
            self.on_frames(self, [unread.popleft() for _ in range(min(self.at_once, len(unread)))])
        except RemoteProtocolError as error:
            unread.clear()
            self._refuse(error)
        if not unread:
            self.resume_reading()
        return bool(unread)

    def _refuse(self, error: RemoteProtocolError) -> None:
        self._error = error
        self.abort(str(error))

    def pause_writing(self) -> None:
        self.is_full = True
        if self.on_full is not None:
            self.on_full(self)

    def resume_writing(self) -> None:
        self.is_full = False
        if self.on_room is not None:
            self.on_room(self)

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self._out.clear()
        self.on_lost(self, self._error or error)
