"""What is answered in JSON (health, members, topics, rates, what is held, traces, journals), and what browsers need.
docs/http.md documents the shapes. Times are in seconds, those of day since 1970.
"""

import asyncio
import json
import os
import re
from collections.abc import Callable, Mapping
from heapq import nlargest
from itertools import chain, islice
from pathlib import Path
from time import monotonic, thread_time, time
from typing import Any, Generic, TypeVar

import msgspec
from aiohttp import web

from cubecast.errors import BadInput, Closed
from cubecast.ids import NodeId, Topic
from cubecast.net.gateway.websocket import WebSockets
from cubecast.net.links.handshake import Place
from cubecast.net.members.directory import Directory
from cubecast.net.node.driver import Driver
from cubecast.net.node.status import Chains
from cubecast.net.observe.recent import MOST_SAMPLES
from cubecast.net.settings.security import Origins
from cubecast.net.web import pages
from cubecast.net.web.access import WEBSOCKET
from cubecast.net.web.observer import Observer, WatchedNode
from cubecast.protocol.inspector import Inspector
from cubecast.trace.journal import JOURNAL_SUFFIX, VERDICT

# What the endpoints say.

MOST_SHOWN = 1000
MOST_TOPICS = 250
"""Described in one answer; a look at each of very many would keep the node from its work."""


def _inside(observer: Observer) -> tuple[Place, Driver]:
    me, driver = observer.directory.me, observer.driver
    if me is None or driver is None:
        raise Closed("this node has no place yet")
    return me, driver


def cube(observer: Observer, root: NodeId | None, topic: Topic | None) -> dict[str, Any]:
    """Members and one tree: by which way a publication of `root` reaches the living, or those who want `topic`."""
    me, driver = _inside(observer)
    inspector = driver.inspector
    tree = _tree(_source(me.node, inspector, topic) if root is None else root, observer.directory, inspector, topic)
    standings = observer.standings()
    queued = observer.peers.queued
    members = []
    for node in sorted(observer.directory.places):
        place = observer.directory.places[node]
        standing = standings.get(node)
        state, since = observer.state(place, standings)
        members.append(
            {
                "node": node,
                "incarnation": place.incarnation if standing is None else standing.incarnation,
                "address": place.address,
                "state": state,
                "since": since,
                "connected": node == me.node or node in queued,
                "queued": queued.get(node, 0),
            }
        )
    members += [_unheard_of(int(node)) for node in tree["children"] if int(node) not in observer.directory.places]
    return {
        "node": me.node,
        "incarnation": me.incarnation,
        "cluster": observer.config.cluster,
        "dimension": observer.directory.told_dimension,
        "at": time(),
        "members": members,
        "overlay": inspector.overlay().to_json(MOST_SHOWN),
        "tree": tree,
    }


def _unheard_of(node: NodeId) -> dict[str, Any]:
    """A node that trees name, and of which nothing else is known here."""
    standing = {"incarnation": 0, "address": "", "state": "unknown", "since": None}
    return {"node": node, **standing, "connected": False, "queued": 0}


def _source(me: NodeId, inspector: Inspector, topic: Topic | None) -> NodeId:
    """Whose tree is shown to those who ask for none: this node's, unless it only hears others'."""
    heard = [one["publisher"] for one in inspector.streams(MOST_TOPICS) if topic in (None, one["topic"])]
    return me if me in heard else next(iter(heard), me)


def _tree(root: NodeId, directory: Directory, inspector: Inspector, topic: Topic | None) -> dict[str, Any]:
    children = inspector.tree(root, topic)
    if directory.draws_ids and root not in directory.places and not children:
        raise BadInput(f"this node knows no node {root}")
    if not 0 <= root < directory.size:
        raise BadInput(f"node {root} does not exist in a cube of {directory.size}")
    named = dict.fromkeys(chain(children, *children.values()), ())
    return {
        "root": root,
        "topic": topic,
        "whole": inspector.knows_whole_trees,
        "children": {str(node): list(below) for node, below in (named | children).items()},
    }


def topics(observer: Observer) -> dict[str, Any]:
    """Topics this node knows, the busiest first, then those with something under way."""
    _, driver = _inside(observer)
    inspector = driver.inspector
    delivered, published = observer.samples.topic_rates["delivered"], observer.samples.topic_rates["published"]
    known = inspector.describe_topics(_some_topics(inspector, delivered, published))
    held_back = driver.deferred.counts
    rows = [
        {
            "topic": name,
            **{part: one[part] for part in ("members", "subscribed", "confirmed", "published")},
            "delivered": observer.meter.delivered.get(name, 0),
            "publish_rate": published.get(name, 0.0),
            "deliver_rate": delivered.get(name, 0.0),
            **{part: one[part] for part in ("unstable", "waiting", "window", "kept", "kept_bytes")},
            "lag": sum(publisher["lag"] for publisher in one["publishers"]),
            "held_back": held_back.get(name, 0),
        }
        for name, one in known.items()
    ]
    rows.sort(key=lambda row: (-row["deliver_rate"] - row["publish_rate"], row["topic"]))
    streams = inspector.streams(MOST_TOPICS)
    in_all = len(inspector.topics)
    return {"topics": rows, "topics_in_all": in_all, "streams": streams, "remarks": inspector.remarks()}


def _some_topics(
    inspector: Inspector, delivered: Mapping[Topic, float], published: Mapping[Topic, float]
) -> list[Topic]:
    """Described are the busiest of the last second, and as far as there is room others."""
    if len(inspector.topics) <= MOST_TOPICS:
        return list(inspector.topics)
    rates = {name: rate + published.get(name, 0.0) for name, rate in delivered.items()}
    rates |= {name: rate for name, rate in published.items() if name not in rates}
    busiest = [name for name in nlargest(MOST_TOPICS, rates, key=rates.__getitem__) if name in inspector.topics]
    if len(busiest) == MOST_TOPICS:
        return busiest
    others = inspector.some_topics(MOST_TOPICS)
    return list(islice(dict.fromkeys(chain(busiest, others)), MOST_TOPICS))


def rates(observer: Observer, last: int) -> dict[str, Any]:
    """The last seconds, oldest first, and the totals since this node began."""
    return {
        "started": observer.started,
        "at": time(),
        "samples": list(observer.samples.ring)[-max(1, min(last, MOST_SAMPLES)) :],
        "totals": observer.samples.totals() | {"reconnects": observer.reconnects},
    }


def faults(observer: Observer) -> dict[str, Any]:
    return {"events": observer.happenings.newest_first(), "counts": dict(observer.happenings.counts)}


def held(observer: Observer) -> dict[str, Any]:
    """What is held at this node and why, oldest first."""
    me, driver = _inside(observer)
    found = driver.inspector.held(monotonic())
    return {
        "node": me.node,
        "held": Chains(found, observer.peers, driver).explained(MOST_SHOWN),
        "held_in_all": len(found),
        "held_back": driver.deferred.counts,
        "waiting": driver.inspector.waiting()[:MOST_SHOWN],
    }


# Which they are.

_encode = msgspec.json.Encoder().encode
FRESH = {"Cache-Control": "no-store"}


def json_answer(data: Any, status: int = 200) -> web.Response:
    return web.Response(body=_encode(data), status=status, content_type="application/json", headers=FRESH)


def health_routes(node: WatchedNode) -> list[web.RouteDef]:
    async def alive(_: web.Request) -> web.Response:
        return json_answer({"alive": True})

    async def ready(_: web.Request) -> web.Response:
        reasons = node.reasons_not_ready()
        return json_answer({"ready": not reasons, "reasons": reasons}, 503 if reasons else 200)

    told = AnswerCache(node.status)

    async def status(_: web.Request) -> web.Response:
        try:
            return json_answer(told())
        except Closed as error:
            return json_answer({"error": str(error)}, 503)

    return [web.get("/healthz", alive), web.get("/readyz", ready), web.get("/status.json", status)]


SWITCH = {"true": True, "1": True, "on": True, "false": False, "0": False, "off": False}


def trace_routes(node: WatchedNode) -> list[web.RouteDef]:
    async def look(_: web.Request) -> web.Response:
        return json_answer(node.tracing())

    async def switch(request: web.Request) -> web.Response:
        on = SWITCH.get(request.query.get("on", ""))
        if on is None:
            return json_answer({"error": "say on=true or on=false"}, 400)
        try:
            directory = node.switch_tracing(request.query.get("run", "trace") if on else None)
        except (BadInput, Closed) as error:
            return json_answer({"error": str(error)}, 409)
        return json_answer(node.tracing() | {"directory": str(directory)})

    return [web.get("/trace", look), web.post("/trace", switch)]


MOST_VERDICT = 64 << 10
"""Bytes of a verdict that are read."""
MOST_DIGITS = 19
"""Of a number that is asked with: ids have up to 63 bits."""


def answers_routes(node: WatchedNode) -> list[web.RouteDef]:
    def seen() -> Observer:
        if node.observer is None:
            raise Closed("this node does not observe itself")
        return node.observer

    all_topics, all_held = AnswerCache(lambda: topics(seen())), AnswerCache(lambda: held(seen()))

    def answering(view: Callable[[web.Request], dict[str, Any]]) -> Callable[[web.Request], Any]:
        async def handle(request: web.Request) -> web.Response:
            try:
                return json_answer(view(request))
            except Closed as error:
                return json_answer({"error": str(error)}, 503)
            except BadInput as error:
                return json_answer({"error": str(error)}, 400)

        return handle

    return [
        web.get("/api/cube.json", answering(lambda ask: _cube(seen(), ask))),
        web.get("/api/topics.json", answering(lambda _: all_topics())),
        web.get("/api/rates.json", answering(lambda ask: rates(seen(), _number(ask, "last") or MOST_SAMPLES))),
        web.get("/api/held.json", answering(lambda _: all_held())),
        web.get("/api/faults.json", answering(lambda _: faults(seen()) | {"verdict": last_verdict(node)})),
    ]


def last_verdict(node: WatchedNode) -> dict[str, Any] | None:
    """What `cubecast verify --follow` last said about the directory this node's journal is in."""
    directory = node.tracing()["directory"]
    path = Path(directory or "") / VERDICT
    try:
        with path.open("rb") as file:
            said = json.loads(file.read(MOST_VERDICT))
        first = next(iter(said["witnesses"] or said["unknown_because"]), None)
        because = f"{first['property']}: {first['reason']}" if isinstance(first, dict) else first
        told = {name: said[name] for name in ("verdict", "rows", "up_to", "at")}
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return told | {"because": because} if directory else None


def _cube(observer: Observer, request: web.Request) -> dict[str, Any]:
    return cube(observer, _number(request, "root"), request.query.get("topic"))


def _number(request: web.Request, name: str) -> int | None:
    text = request.query.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) <= MOST_DIGITS):
        raise BadInput(f"{name} is a number, not {text!r}")
    return int(text)


def browser_routes(node: WatchedNode) -> list[web.RouteDef]:
    sockets = WebSockets(
        node.clients,
        node.config.cluster,
        Origins(node.config.ws_origins),
        lambda: node.security.policy,
        lambda: node.config.limits,
        lambda kind, detail: node.notice(kind, None, detail),
    )
    return [web.get(WEBSOCKET, sockets.handle), *pages.routes()]


# A node's journal for a judge who has no files of this machine.
#
# A judge asks for what came behind the bytes that it has, and leaves its verdict here, where the node's page shows it.

MOST_AT_ONCE = 1 << 20
"""Bytes of a journal in one answer."""
NAME = re.compile(r"node-\d{5,20}-\d{5,10}-[A-Za-z0-9_-]{1,80}(\.lost)?\.jsonl")


def journal_routes(node: WatchedNode) -> list[web.RouteDef]:
    def directory() -> Path:
        told = node.tracing()["directory"]
        if told is None:
            raise web.HTTPConflict(text="this node writes no journal; start it with --trace, or: cubecast trace on\n")
        return Path(told)

    async def listed(_: web.Request) -> web.Response:
        return json_answer({"node": node.status()["node"], "journals": await asyncio.to_thread(_sizes, directory())})

    async def read(request: web.Request) -> web.Response:
        name, begin = request.query.get("name", ""), request.query.get("from", "0")
        if not NAME.fullmatch(name) or not (begin.isascii() and begin.isdecimal() and len(begin) <= 18):
            raise web.HTTPBadRequest(text="say name=…, as /trace/journals lists it, and from=BYTE\n")
        try:
            data = await asyncio.to_thread(_piece, directory() / name, int(begin))
        except FileNotFoundError:
            raise web.HTTPNotFound(text=f"there is no journal {name}\n") from None
        return web.Response(body=data, content_type="application/octet-stream")

    async def judged(request: web.Request) -> web.Response:
        await asyncio.to_thread(_leave, directory(), await request.read())
        return json_answer({})

    return [
        web.get("/trace/journals", listed),
        web.get("/trace/journal", read),
        web.post("/trace/verdict", judged),
    ]


def _sizes(directory: Path) -> dict[str, int]:
    return {path.name: path.stat().st_size for path in sorted(directory.glob(f"node-*{JOURNAL_SUFFIX}"))}


def _piece(path: Path, begin: int) -> bytes:
    with path.open("rb") as file:
        file.seek(begin)
        return file.read(MOST_AT_ONCE)


def _leave(directory: Path, verdict: bytes) -> None:
    """As a whole or not at all."""
    draft = directory / f"{VERDICT}.{os.getpid()}"
    draft.write_bytes(verdict)
    draft.replace(directory / VERDICT)


# Answers that take long to make are given again for a while: looking at a node must not be what keeps it busy.
#
# What an answer costs is the processor time of the event loop's thread. The time of day would count what other
# processes and threads did meanwhile, too: on a busy machine a cheap answer would seem dear, and grow old just when
# people look.

Answer = TypeVar("Answer")

QUICK = 0.02
"""Seconds of work an answer may take to be made anew every time."""
SHARE = 20
"""Otherwise it is made once in so many times as long as it took: at most this part of a core goes into it."""


class AnswerCache(Generic[Answer]):
    def __init__(
        self,
        make: Callable[[], Answer],
        clock: Callable[[], float] = monotonic,
        worked: Callable[[], float] = thread_time,
    ) -> None:
        self._make, self._clock, self._worked = make, clock, worked
        self._kept: tuple[float, Answer] | None = None
        """Until when, and what."""

    def __call__(self) -> Answer:
        if self._kept is not None and self._clock() < self._kept[0]:
            return self._kept[1]
        before = self._worked()
        answer = self._make()
        took = self._worked() - before
        self._kept = None if took < QUICK else (self._clock() + SHARE * took, answer)
        return answer
