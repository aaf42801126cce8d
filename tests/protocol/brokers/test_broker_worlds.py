"""Random worlds of brokers: publishers and subscribers come and go at once, with filters, with and without faults."""

from collections import Counter
from random import Random

import pytest

from cubecast.protocol.brokers.machine import BrokerParameters
from cubecast.protocol.brokers.tree import BrokerTree
from cubecast.protocol.filters import ALL, parse
from protocol.brokers.broker_world import BrokerWorld

KINDS = ("crash", "doubt", "cut off", "slow", "restart")
LONGEST = 200_000.0
"""By then a world that comes to rest has."""
WANTED = (ALL, parse("price >= 50"), parse("price >= 70"), parse("side = 'buy'"), parse("price >= 50 and side = 'buy'"))


def random_tree(rng: Random, count: int) -> BrokerTree:
    return BrokerTree(((rng.randrange(max(0, node - 3), node), node) for node in range(1, count)), range(count))


def busy_world(seed: int, faults: int, brokers: int) -> BrokerWorld:
    rng = Random(f"brokers {seed}")
    tree = random_tree(rng, brokers)
    world = BrokerWorld(BrokerParameters(tree, faults, remove_after=5000.0), rng, (1.0, rng.choice((2.0, 20.0, 80.0))))
    nodes = list(tree.neighbours)
    topics = ("t", "u")
    for _ in range(rng.randrange(20, 60)):
        node, topic, time = rng.choice(nodes), rng.choice(topics), rng.uniform(0, 2500)
        kind = rng.random()
        if kind < 0.25:
            wanted = rng.choice(WANTED)
            world.at(time, lambda n=node, t=topic, w=wanted: world.subscribe(n, t, w))
        elif kind < 0.32:
            world.at(time, lambda n=node, t=topic: world.unsubscribe(n, t))
        elif kind < 0.36:
            world.at(time, lambda n=node, t=topic: world.unadvertise(n, t))
        else:
            attributes = {"price": rng.randrange(100), "side": rng.choice(("buy", "sell"))}
            count = rng.choice((1, 1, 1, 3))
            world.at(time, lambda n=node, t=topic, a=attributes, c=count: world.publish(n, t, a, c))
    return world


@pytest.mark.parametrize("faults", [0, 1, 2])
@pytest.mark.parametrize("first", [0, 12])
def test_without_faults_every_promise_holds(faults: int, first: int):
    deliveries = cuts = 0
    for seed in range(first, first + 12):
        world = busy_world(seed, faults, 3 + seed % 9)
        world.run()
        assert not world.judge(), f"seed {seed}, f {faults}: {world.judge()}"
        deliveries += sum(len(seen.delivered) for seen in world.subscriptions)
        cuts += sum(bool(cut) for seen in world.subscriptions for cut in seen.cut.values())
    assert deliveries > 100 and cuts > 5, "the worlds are too quiet to say anything"


def within_premise(tree: BrokerTree, faulty: set[int], faults: int) -> bool:
    """At most f of the brokers on any path of 2f + 1."""
    for one in tree.neighbours:
        for other in tree.neighbours:
            path = (one, *tree.path(one, other))
            if len(path) <= 2 * faults + 1 and len(faulty.intersection(path)) > faults:
                return False
    return True


def add_faults(world: BrokerWorld, seed: int) -> list[str]:
    """Crashes, doubts, cut-offs and slow links of as many brokers as f allows; their names, for the tally."""
    rng, tree, faults = Random(f"faults {seed}"), world.parameters.tree, world.parameters.faults
    faulty: set[int] = set()
    for node in rng.sample(list(tree.neighbours), min(len(tree), 3)):
        if within_premise(tree, faulty | {node}, faults):
            faulty.add(node)
    kinds = []
    for node in sorted(faulty):
        kind = rng.choice(KINDS)
        kinds.append(kind)
        start = rng.uniform(100, 1200)
        near = sorted(tree.within(node, 2 * faults + 1))
        if kind == "slow":
            for peer in near:
                world.slow[frozenset((node, peer))] = rng.choice((1, 5, 20))
            continue
        if kind in ("crash", "restart"):
            world.at(start, lambda n=node: world.crash(n))
        end = start + rng.uniform(50, 800)
        if kind == "restart":
            world.at(end, lambda n=node: world.restart(n))
        pairs = {frozenset((node, peer)) for peer in near}
        if kind == "cut off":
            world.at(start, lambda p=pairs: world.cut_off.update(p))
            world.at(end, lambda p=pairs: world.cut_off.difference_update(p))
        for peer in near:
            if kind in ("doubt", "restart") and rng.random() < 0.5:
                if kind == "restart":  # the link is made anew before anybody noticed
                    back = end + rng.uniform(0, 40)
                    world.at(back, lambda n=node, p=peer: world.trust(p, n))
                    world.at(back, lambda n=node, p=peer: world.trust(n, p))
                continue
            world.at(start + rng.uniform(10, 40), lambda n=node, p=peer: world.suspect(p, n))
            if kind != "crash":
                back = end + rng.uniform(1, 40)
                world.at(back, lambda n=node, p=peer: world.trust(p, n))
                if kind == "restart":
                    world.at(back, lambda n=node, p=peer: world.trust(n, p))
                if kind == "cut off":
                    world.at(start + rng.uniform(10, 40), lambda n=node, p=peer: world.suspect(n, p))
                    world.at(back, lambda n=node, p=peer: world.trust(n, p))
    return kinds


def faulty_world(seed: int, faults: int, brokers: int) -> tuple[BrokerWorld, list[str]]:
    world = busy_world(seed, faults, brokers)
    return world, add_faults(world, seed)


def check_faulty(seeds: range, faults: int) -> None:
    kinds: Counter[str] = Counter()
    deliveries = 0
    for seed in seeds:
        world, drawn = faulty_world(seed, faults, 3 + seed % 9)
        kinds.update(drawn)
        world.run(LONGEST)
        assert not world.judge(), f"seed {seed}, f {faults}: {world.judge()}"
        deliveries += sum(len(seen.delivered) for seen in world.subscriptions)
    assert deliveries > 5 * len(seeds) and set(kinds) == set(KINDS), kinds


@pytest.mark.parametrize("faults", [1, 2])
def test_as_many_faults_as_f_allows_are_survived(faults: int):
    check_faulty(range(16), faults)


@pytest.mark.slow
@pytest.mark.parametrize("faults", [1, 2])
@pytest.mark.parametrize("first", range(1000, 3000, 500))
def test_many_more_faults_are_survived(faults: int, first: int):
    check_faulty(range(first, first + 500), faults)


CURED = {
    "numbers given after the copy that named their broker first": ((20355, 2), (22724, 2), (30246, 2)),
    "a broker taken back by some and given up by others": ((30338, 2), (30457, 2)),
    "who is behind a broker that one gave up and the next suspects": ((21307, 2),),
    "a late number for the new life of a target": ((20715, 2), (20734, 1)),
}
"""Worlds that went wrong, by what was behind it."""


@pytest.mark.parametrize(("seed", "faults"), [one for worlds in CURED.values() for one in worlds])
def test_worlds_that_went_wrong_once_do_not(seed: int, faults: int):
    world, _ = faulty_world(seed, faults, 3 + seed % 9)
    world.run(LONGEST)
    assert not world.judge()
