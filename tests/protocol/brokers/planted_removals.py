"""Removals of single corrections of the paper, planted into the machines."""

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from cubecast.protocol.brokers.locamu import Substrate
from cubecast.protocol.brokers.locaps import Tables
from cubecast.protocol.brokers.machine import LoCaPS
from cubecast.protocol.brokers.packets import Want
from cubecast.protocol.brokers.received import Received
from cubecast.protocol.brokers.records import Ways

Plant = tuple[type, str, Callable[..., Any]]


def _numbers_only(self: Received, header: Any, turn: int) -> bool:
    stamps = header.stamps.items()
    return any(self.me in numbers and numbers[self.me] in self.numbers(x, numbers[self.me]) for x, numbers in stamps)


def _without_past(self: Received, header: Any) -> int | None:
    number = header.stamps.get(header.by, {}).get(self.me, 0)
    return header.by if number and self.is_awaited(header.by, number - 1) else None


_missing = Received.missing


def _labels_order(self: Received, header: Any) -> int | None:
    """A number that came too late to order anything is waited for like the others."""
    for broker, numbers in header.labels.items():
        number = numbers.get(self.me, 0)
        if number and self.is_awaited(broker, number - 1):
            return broker
    return _missing(self, header)


_suspect = Substrate.suspect


def _suspect_without_push(self: Substrate, broker: int) -> None:
    transmit, self._transmit = self._transmit, lambda record: None
    try:
        _suspect(self, broker)
    finally:
        self._transmit = transmit


_send_packet = Substrate._send_packet


def _ask_nobody(self: Substrate, peer: int, packet: Any) -> None:
    if not isinstance(packet, Want):
        _send_packet(self, peer, packet)


_cover_from = Tables._cover_from


def _without_seen(self: Tables, subscription: Any, entry: Any, side: int) -> Any:
    seen, self.seen = self.seen, {}
    try:
        yield from list(_cover_from(self, subscription, entry, side))
    finally:
        self.seen = seen


def _drain_what_is_decided(self: Tables, local: Any) -> None:
    waiting = [event for event in local.queue if event.publisher not in local.cut]
    local.queue = deque(event for event in local.queue if event.publisher in local.cut)
    _drain(self, local)
    local.queue.extend(waiting)


_drain = Tables._drain


def _cover_one_by_one(self: Tables, subscription: Any, entry: Any, side: int) -> Any:
    ads = self.ads
    for publisher in [p for p, ad in ads.items() if ad.side == side]:
        self.ads = {publisher: ads[publisher]}
        try:
            yield from list(_cover_from(self, subscription, entry, side))
        finally:
            self.ads = ads


def _settle_one_by_one(self: Tables, subscription: Any, by_hops: Any) -> list[Any]:
    posts = []
    for publisher in by_hops.get(0, {}):
        lasts = [by_hops.get(hops, {}).get(publisher) for hops in range(self.faults + 1)]
        if None not in lasts and publisher not in self.stable[subscription]:
            posts += self._settle(publisher, subscription, max(lasts))
    return posts


def _gone_here_only(self: Tables, body: Any, side: Any) -> set[int]:
    _gone(self, body, side)
    return set()


_gone = Tables._gone

PLANTS: dict[str, tuple[Plant, ...]] = {
    "C1 duplicates are known by numbers alone": ((Received, "is_duplicate", _numbers_only),),
    "C2 nothing waits for the past": ((Received, "missing", _without_past),),
    "C3 late numbers order": ((Received, "missing", _labels_order),),
    "C5 nobody is owed anything": ((Ways, "owed", lambda self, tables: set()),),
    "C6 late copies are not passed on": ((Substrate, "_spread_late", lambda self, record, header, news: None),),
    "C7 nothing is sent again at a suspicion": ((Substrate, "suspect", _suspect_without_push),),
    "C7 nothing is asked for": ((Substrate, "_send_packet", _ask_nobody),),
    "C7 what comes later is not for those who asked": ((Substrate, "_serve_wants", lambda self, record: None),),
    "C8, C9 a partial marker without what was seen": ((Tables, "_cover_from", _without_seen),),
    "C10 undecided events hold nothing": ((Tables, "_drain", _drain_what_is_decided),),
    "C12 new publishers publish at once": ((LoCaPS, "_may_leave", lambda self, waiting: True),),
    "C15 publishers are settled one by one": (
        (Tables, "_cover_from", _cover_one_by_one),
        (Tables, "_settle_together", _settle_one_by_one),
    ),
    "a publisher that ended may begin again": ((Tables, "_has_ended", lambda self, publisher: False),),
    "nobody is told that a broker is gone": ((Tables, "_gone", _gone_here_only),),
}


@contextmanager
def planted(name: str) -> Iterator[None]:
    before = [(kind, method, getattr(kind, method)) for kind, method, _ in PLANTS[name]]
    for kind, method, instead in PLANTS[name]:
        setattr(kind, method, instead)
    try:
        yield
    finally:
        for kind, method, one in before:
            setattr(kind, method, one)
