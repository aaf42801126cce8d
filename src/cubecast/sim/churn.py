"""Subscribers that come and go: every leaver is replaced by a random outsider, so their number stays (§5.6.6)."""

from random import Random

from cubecast.errors import BadInput
from cubecast.ids import NodeId
from cubecast.sim.world import World


def install(world: World, topic: str, session_mean: float, until: float, rng: Random) -> None:
    """Exponential session times of this mean; nobody leaves after `until`."""

    def schedule_leave(node: NodeId) -> None:
        time = world.now + rng.expovariate(1 / session_mean)
        if time < until:
            world.at(time, leave, node)

    def leave(node: NodeId) -> None:
        if world.unsubscribe(node, topic):
            replace(node)
        else:
            schedule_leave(node)

    def replace(leaver: NodeId) -> None:
        outsiders = [other for other in world.nodes if topic not in world.subscriptions[other] and other != leaver]
        newcomer = rng.choice(outsiders)
        if world.subscribe(newcomer, topic):
            schedule_leave(newcomer)
        elif world.now < until:  # that one is still leaving: another one, a little later
            world.at(world.now + 1.0, replace, leaver)

    if all(topic in world.subscriptions[node] for node in world.nodes):
        raise BadInput("churn needs nodes that do not subscribe, to replace the leavers; lower the subscribers")
    for node in world.nodes:
        if topic in world.subscriptions[node]:
            schedule_leave(node)
