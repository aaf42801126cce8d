"""What live nodes say about themselves: tables of one; a table of several that is drawn anew every second; held
messages across nodes.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from cubecast.api.connect import Connecting
from cubecast.errors import CubecastError
from cubecast.escaping import visible
from cubecast.net.links.login import NOTHING, Login
from cubecast.net.web.asking import http_address, switch_trace

# Asking several nodes at once, and switching their tracing on and off.

# Asking several living nodes at once what they say about themselves

GRACE = 1.0
"""Seconds a node gets to answer besides those to connect, which end with a reason."""
Connect = Callable[[str], Connecting]
"""A connection to the node at one address."""


@dataclass
class Said:
    """What came back, by the address that was asked."""

    statuses: dict[str, dict[str, Any]] = field(default_factory=dict)
    silent: dict[str, str] = field(default_factory=dict)
    """Why there is nothing from the others."""


async def ask_each(addresses: Iterable[str], connect: Connect, timeout: float) -> Said:
    """Every one a new connection: a client that lost its node would move and ask another one."""
    said, asked = Said(), list(dict.fromkeys(addresses))

    async def ask(address: str) -> None:
        try:
            async with asyncio.timeout(timeout), connect(address) as client:
                said.statuses[address] = await client.status()
        except (CubecastError, TimeoutError, OSError) as error:
            said.silent[address] = str(error) or f"no answer in {timeout:g} s; is a node running there?"

    await asyncio.gather(*map(ask, asked))
    said.statuses = {address: said.statuses[address] for address in asked if address in said.statuses}
    return said


# Tracing switched on and off at several living nodes


async def switch_each(
    nodes: Sequence[str], connect: Connect, timeout: float, run: str | None, login: Login = NOTHING
) -> list[dict[str, Any]]:
    """One after the other; the first that refuses ends it, with what was switched before left as it is."""
    done = []
    for node in nodes:
        async with connect(node) as client:
            status = await client.status()
        said = await switch_trace(http_address(status["http"], node), run, timeout, login)
        done.append({"node": status["node"], "address": node} | said)
    return done


# Held messages across nodes: what one node is missing, looked for at the others.

MOST_ASKED = 16
"""Members asked besides those that were named."""
MOST_TREES = 50

Status = Mapping[str, Any]


async def held_across(named: Sequence[str], connect: Connect, timeout: float, *, ask_members: bool) -> dict[str, Any]:
    """What the named nodes hold; the messages they miss are looked for at all who answer."""
    said = await ask_each(named, connect, timeout)
    others = Said()
    if ask_members:
        others = await ask_each(list(_worth_asking(said.statuses.values()))[:MOST_ASKED], connect, timeout)
    everybody = {one["node"]: one for one in (*others.statuses.values(), *said.statuses.values())}
    return {
        "nodes": [_located(one, everybody) for one in said.statuses.values()],
        "asked": sorted(everybody),
        "silent": said.silent | others.silent,
    }


def _worth_asking(statuses: Iterable[Status]) -> Iterable[str]:
    """Addresses of living members that may have what a node misses: its source first."""
    known = {one["node"] for one in statuses}
    first: dict[str, None] = {}
    rest: dict[str, None] = {}
    for status in statuses:
        missing = [one["chain"][-1] for one in status["held"] if one["chain"]]
        sources = {link["message"][0] for link in missing}
        for member in status["members"] if missing else ():
            if member["alive"] and member["node"] not in known:
                (first if member["node"] in sources else rest)[member["address"]] = None
    return [*first, *(address for address in rest if address not in first)]


def _located(status: Status, everybody: Mapping[int, Status]) -> dict[str, Any]:
    held = []
    for one in status["held"]:
        chain = [link | {"at": _places(one["topic"], link["message"], status, everybody)} for link in one["chain"]]
        held.append(one | {"chain": chain})
    parts = ("node", "incarnation", "held_in_all", "held_back", "waiting")
    return {part: status[part] for part in parts} | {"held": held}


def _places(
    topic: str, message: Sequence[int], asking: Status, everybody: Mapping[int, Status]
) -> dict[str, list[int]]:
    """Which of the others published it, delivered it, hold it, or have nothing of it; with very many topics a node
    lists some, and may not say."""
    found: dict[str, list[int]] = {"published": [], "delivered": [], "held": [], "absent": [], "unsaid": []}
    for node, status in sorted(everybody.items()):
        if node != asking["node"]:
            found[_standing(topic, message, status)].append(node)
    return found


def _standing(topic: str, message: Sequence[int], status: Status) -> str:
    source, incarnation, counter = message
    here = status["topics"].get(topic)
    if here is None:
        return "absent" if status["topics_in_all"] == len(status["topics"]) else "unsaid"
    if (status["node"], status["incarnation"]) == (source, incarnation) and here["published"] >= counter:
        return "published"
    for publisher in here["publishers"]:
        if (publisher["node"], publisher["incarnation"]) == (source, incarnation) and publisher["delivered"] >= counter:
            return "delivered"
    for one in status["held"]:
        first = one["message"]
        same = one["topic"] == topic and first[:2] == [source, incarnation]
        if same and first[2] <= counter < first[2] + one["messages"]:
            return "held"
    return "absent"


# For people


def print_held(console: Console, found: Mapping[str, Any]) -> None:
    for node in found["nodes"]:
        console.print(f"node {node['node']} holds {node['held_in_all']:,} publications")
        for one in node["held"][:MOST_TREES]:
            console.print(_tree(one), soft_wrap=True)
        for topic, publications in node["held_back"].items():
            console.print(f"{topic}: {publications:,} publications wait for a subscriber that reads slowly")
    for address, reason in found["silent"].items():
        console.print(f"{address} does not answer: {reason}")


def _name(message: Sequence[int]) -> str:
    return ".".join(map(str, message))


def _tree(one: Mapping[str, Any]) -> Tree:
    size = f"{one['messages']:,} messages, {one['bytes']:,} bytes"
    root = branch = Tree(f"{one['topic']} {_name(one['message'])} ({size}), held for {one['for']:,.3f} s")
    for link in one["chain"]:
        branch = branch.add(f"waits for {_name(link['message'])}: {_state(link)}")
        where = [f"{how} at {', '.join(map(str, nodes))}" for how, nodes in link["at"].items() if nodes]
        if where:
            branch.add("elsewhere: " + "; ".join(where))
        if "next" in link:
            branch.add(f"next: {link['next']}")
    return root


def _state(link: Mapping[str, Any]) -> str:
    if link["state"] == "held":
        return f"held here itself, for {link['for']:,.3f} s"
    way = "" if link["via"] is None else f", comes from node {link['via']}"
    return f"not here; its source, node {link['source']}, is {link['source_state']}{way}"


# Tables.


def status_tables(status: Mapping[str, Any]) -> Iterator[Table]:
    yield _members_table(status)
    if status.get("overlay", {}).get("edges"):
        yield _overlay(status["overlay"])
    if status["topics"]:
        yield _topics(status)
    if status.get("streams"):
        yield _streams(status)
    if status.get("remarks"):
        yield _remarks(status["remarks"])


def _table(title: str, *columns: str) -> Table:
    """First column of names, the others of numbers."""
    table = Table(title=title, title_justify="left")
    for position, column in enumerate(columns):
        table.add_column(column, justify="right" if position else "left")
    return table


def _members_table(status: Mapping[str, Any]) -> Table:
    title = f"node {status['node']} of cluster {status['cluster']!r} · clients: {status['clients']}"
    table = _table(title, "member", "incarnation", "address", "state", "bytes queued for it")
    for one in status["members"]:
        state = "alive" if one["alive"] else "gone"
        table.add_row(str(one["node"]), str(one["incarnation"]), one["address"], state, f"{one['queued']:,}")
    return table


def _overlay(overlay: Mapping[str, Any]) -> Table:
    """What the node knows of who is connected to whom; the corners of a cube say it by their ids."""
    near: dict[int, list[str]] = {}
    for one, other, label in overlay["edges"]:
        near.setdefault(one, []).append(f"{other} ({label})" if label else str(other))
    table = Table(title=f"overlay: {overlay['shape']}", title_justify="left")
    for heading in ("node", "children" if overlay["shape"] == "tree" else "neighbours"):
        table.add_column(heading)
    for node, others in near.items():
        table.add_row(str(node), ", ".join(others))
    return table


def _streams(status: Mapping[str, Any]) -> Table:
    table = _table(
        f"streams: {status['streams_in_all']:,}",
        *("stream", "publisher", "messages", "parent", "depth", "children", "behind", "copies per message", "slow"),
    )
    for one in status["streams"]:
        parent = "–" if one["parent"] is None else str(one["parent"])
        numbers = (one["publisher"], one["messages"], parent, one["depth"], len(one["children"]), one["behind"])
        table.add_row(one["topic"], *map(str, numbers), f"{one['copies_per_message']:.2f}", str(len(one["slow"])))
    return table


def _remarks(remarks: Sequence[Sequence[str]]) -> Table:
    table = Table(title="this node", title_justify="left", show_header=False)
    for about, text in remarks:
        table.add_row(about, text)
    return table


def _topics(status: Mapping[str, Any]) -> Table:
    shown, in_all = len(status["topics"]), status["topics_in_all"]
    title = f"topics: {in_all:,}" if shown == in_all else f"{shown:,} of {in_all:,} topics, the busy ones first"
    table = _table(title, "topic", "members", "published here", "not yet stable", "window", "kept", "lag")
    for name, one in status["topics"].items():
        window = f"{one['window']['used']}/{one['window']['size']}"
        lag = sum(publisher["lag"] for publisher in one["publishers"])
        counts = (one["published"], one["unstable"] + one["waiting"])
        table.add_row(
            name, str(len(one["members"])), *(f"{n:,}" for n in counts), window, f"{one['kept']:,}", f"{lag:,}"
        )
    return table


COLUMNS = ("node", "alive", "in/s", "out/s", "latency", "holding", "held", "queued", "clients", "lag")
LEGEND = (
    "in/s, out/s: messages delivered and published · latency, holding: p50/p99 in ms · queued: bytes that wait for "
    "peers · lag: ms the event loop is late"
)
LONGEST_LOOK = 1.0
"""Seconds to wait for a node that does not answer: the others should not wait for it."""
NOTHING_SAID = "–"


async def watch(
    console: Console, addresses: Sequence[str], connect: Connect, timeout: float, interval: float, times: int | None
) -> None:
    """Until interrupted, or so many times."""
    before: dict[str, tuple[float, Mapping[str, Any]]] = {}
    done = 0
    with Live(console=console, auto_refresh=False, transient=False) as live:
        while times is None or done < times:
            started = monotonic()
            said = await ask_each(addresses, connect, min(timeout, LONGEST_LOOK))
            live.update(picture(said, before, started), refresh=True)
            before = {address: (started, status) for address, status in said.statuses.items()}
            done += 1
            if done != times:
                await asyncio.sleep(max(0.0, started + interval - monotonic()))
    if not console.is_terminal:
        console.print()  # a file gets the last picture, without the end of its last line


def picture(said: Said, before: Mapping[str, tuple[float, Mapping[str, Any]]], now: float) -> Group:
    table = Table(box=SIMPLE_HEAD, caption=LEGEND, caption_justify="left", padding=0, show_edge=False)
    for position, column in enumerate(COLUMNS):
        table.add_column(column, justify="right" if position else "left", no_wrap=True)
    for address, status in said.statuses.items():
        table.add_row(*_row(address, status, before.get(address), now))
    parts: list[Any] = [table]
    parts += [Text(visible(f"{address} does not answer: {reason}"), "red") for address, reason in said.silent.items()]
    for status in said.statuses.values():
        faults = {} if status["observed"] is None else status["observed"]["faults"]
        bad = ", ".join(f"{kind} {count:,}" for kind, count in faults.items() if kind not in ("connected", "left"))
        if bad:
            parts.append(Text(visible(f"node {status['node']}: {bad}"), "yellow"))
    if said.statuses:
        parts.append(_members(next(iter(said.statuses.values()))))
    return Group(*parts)


def _row(
    address: str, status: Mapping[str, Any], before: tuple[float, Mapping[str, Any]] | None, now: float
) -> list[str]:
    rates = {} if status["observed"] is None else status["observed"]["rates"]
    alive = sum(member["alive"] for member in status["members"])
    return [
        f"{status['node']} {address}",
        f"{alive}/{len(status['members'])}",
        _rate(status, before, now, _delivered),
        _rate(status, before, now, _published),
        _percentiles(rates.get("latency")),
        _percentiles(rates.get("holding")),
        f"{sum(one['messages'] for one in status['held']):,}",
        f"{sum(member['queued'] for member in status['members']):,}",
        f"{status['clients']:,}",
        NOTHING_SAID if "loop_lag" not in rates else _time(rates["loop_lag"]),
    ]


def _delivered(status: Mapping[str, Any]) -> int:
    if status["observed"] is not None:
        return int(status["observed"]["totals"]["delivered"])
    return sum(publisher["delivered"] for topic in status["topics"].values() for publisher in topic["publishers"])


def _published(status: Mapping[str, Any]) -> int:
    if status["observed"] is not None:
        return int(status["observed"]["totals"]["published"])
    return sum(topic["published"] for topic in status["topics"].values())


def _rate(
    status: Mapping[str, Any],
    before: tuple[float, Mapping[str, Any]] | None,
    now: float,
    count: Callable[[Mapping[str, Any]], int],
) -> str:
    """From what the node counts anyway, so that nodes which do not observe themselves have rates, too (with very many
    topics, of those they list)."""
    if before is None:
        return NOTHING_SAID
    then, old = before
    return f"{max(0, count(status) - count(old)) / max(now - then, 1e-3):,.0f}"


def _percentiles(found: Mapping[str, float | None] | None) -> str:
    if found is None or found["p50"] is None or found["p99"] is None:
        return NOTHING_SAID
    return f"{_time(found['p50'])}/{_time(found['p99'])}"


def _time(seconds: float) -> str:
    """Milliseconds, with as many digits as mean something."""
    milliseconds = seconds * 1000
    return f"{milliseconds:.2f}" if milliseconds < 10 else f"{milliseconds:,.0f}"


def _members(status: Mapping[str, Any]) -> Table:
    table = Table(
        *("member", "incarnation", "address", "state", "bytes queued for it"),
        title=f"members, as node {status['node']} sees them",
        title_justify="left",
    )
    for one in status["members"]:
        state = ("alive" if one["connected"] else "disconnected") if one["alive"] else "gone"
        row = (one["node"], one["incarnation"], one["address"], state, f"{one['queued']:,}")
        table.add_row(*map(str, row), style=None if state == "alive" else "red")
    return table
