"""What a broker tells of itself: the tree as it sees it, its tables, who covers whom, and why something waits."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from cubecast.ids import NodeId, Topic
from cubecast.protocol.brokers.locaps import Tables
from cubecast.protocol.brokers.machine import LoCaPS
from cubecast.protocol.brokers.packets import SubscriptionId
from cubecast.protocol.inspector import Inspector, Standing, topic_told

MOST_SHOWN = 100


class BrokerInspector(Inspector):
    machine: LoCaPS

    @property
    def _tables(self) -> Tables:
        return self.machine._tables

    @property
    def is_active(self) -> bool:
        return self.machine.is_active

    @property
    def living(self) -> list[NodeId]:
        return sorted(node for node, one in self.standings().items() if one.alive)

    def standings(self) -> Mapping[NodeId, Standing]:
        """Of brokers as near as it exchanges messages with; of others a broker knows nothing."""
        machine, substrate = self.machine, self.machine._substrate
        out = substrate.suspects | substrate.removed
        found = {machine.node: Standing(machine.node, machine.incarnation, True)}
        for node in sorted(substrate.near):
            found[node] = Standing(node, substrate.received.lives.get(node, 0), node not in out)
        return found

    def describe(self, now: float, most_topics: int | None = None) -> dict[str, Any]:
        settled = not self.machine._substrate.suspects
        return super().describe(now, most_topics) | {"settled": settled, "brokers": self.brokers()}

    def brokers(self) -> dict[str, Any]:
        """The tree, the sizes of the tables, who covers whom, and what each subscription here waits for."""
        tables, substrate, tree = self._tables, self.machine._substrate, self.machine._parameters.tree
        return {
            "faults": substrate.faults,
            "neighbours": list(tree.neighbours[self.machine.node]),
            "links": [[one, other] for one, near in tree.neighbours.items() for other in near if one < other],
            "suspected": sorted(substrate.suspects),
            "removed": sorted(substrate.removed),
            "advertisements": len(tables.ads),
            "subscriptions": len(tables.table),
            "covered": self._covered(),
            "without_cut": self._without_cut(),
        }

    def _covered(self) -> list[dict[str, str]]:
        """Subscriptions here and which one known here covers each, the first few."""
        tables, found = self._tables, []
        for own, local in list(tables.locals.items())[:MOST_SHOWN]:
            entry = tables.table.get(own)
            covering = None if entry is None else tables.covering_of(own, entry)
            if covering is not None:
                found.append({"subscription": local.topic, "by": _name(covering)})
        return found

    def _without_cut(self) -> list[dict[str, Any]]:
        """Which subscriptions here do not know yet where they begin, and whose answer is missing."""
        tables, found = self._tables, []
        for topic in list(self.machine._unconfirmed)[:MOST_SHOWN]:
            own = self.machine._subscriptions[topic]
            open_ads = tables.open_ads(own)
            missing = [f"broker {one.broker} has not answered for {tables.ads[one].topic}" for one in open_ads]
            found.append({"subscription": topic, "waits_for": missing[:MOST_SHOWN]})
        return found

    # Topics

    @property
    def topics(self) -> Collection[Topic]:
        machine = self.machine
        return dict.fromkeys([*machine._subscriptions, *machine._publishers])

    def describe_topics(self, names: Iterable[Topic]) -> dict[Topic, dict[str, Any]]:
        machine = self.machine
        return {
            name: topic_told(
                subscribed=name in machine._subscriptions,
                confirmed=name in machine._subscriptions and name not in machine._unconfirmed,
                published=machine._counters.get(name, 0),
            )
            for name in names
        }

    def published(self) -> Mapping[Topic, int]:
        return self.machine._counters

    # Ways

    def destinations(self, topic: Topic | None) -> list[NodeId]:
        tables = self._tables
        wanted = {
            subscription.broker
            for subscription, entry in tables.table.items()
            if topic is None or tables.may_want(entry, topic)
        }
        return sorted(wanted - {self.machine.node})

    def reaches(self, topic: Topic, me: NodeId) -> bool:
        return bool(self.destinations(topic))

    def tree(self, root: NodeId, topic: Topic | None) -> dict[NodeId, tuple[NodeId, ...]]:
        tree = self.machine._parameters.tree
        if root not in tree.neighbours:
            return {}
        wanted = [*self.destinations(topic), self.machine.node] if topic is not None else list(tree.neighbours)
        on_the_way = dict.fromkeys(one for node in wanted if node != root for one in tree.path(root, node))
        return {
            node: tuple(one for one in tree.neighbours[node] if one in on_the_way and one not in tree.path(node, root))
            for node in dict.fromkeys([root, *on_the_way])
        }

    def parent(self, topic: Topic, source: NodeId) -> NodeId | None:
        tree = self.machine._parameters.tree
        return tree.side(self.machine.node, source) if source in tree.neighbours else None


def _name(subscription: SubscriptionId) -> str:
    return f"subscription {subscription.number} of broker {subscription.broker}"
