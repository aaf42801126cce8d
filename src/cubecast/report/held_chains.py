"""Held messages across nodes: what one node is missing, looked for at the others."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.tree import Tree

from cubecast.report.live_asking import Connect, Said, ask_each

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
