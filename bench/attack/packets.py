"""Lost, doubled, late and overtaken packets, cuts and black holes, between members with networks of their own.

Each attack is a process in namespaces of its own: `python -m bench.attack.packets NAME SEED DIRECTORY` inside of them.
"""

import asyncio
import dataclasses
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random

from bench.attack.accidents import AFTERWARDS, APPLICATION, MEMBERS, PATIENCE, PEACE, RATE, settled
from bench.attack.rows import Row
from bench.attack.switch import CUT, Switch, Treatment, address, inside
from cubecast.addresses import Address
from cubecast.errors import CubecastError
from cubecast.experiments.live_faults.cluster import ClusterConfig, LiveCluster
from cubecast.experiments.live_faults.recorded import Findings, judge, load

LONG = 3 * PATIENCE
NAMESPACES = ("unshare", "--user", "--map-root-user", "--net", "--mount")
SIZE = 2000
"""Bytes of a message, so that some frames are large."""


def loss(switch: Switch, random: Random) -> float:
    switch.everywhere = Treatment(loss=0.1)
    return 6.0


def heavy_loss(switch: Switch, random: Random) -> float:
    switch.everywhere = Treatment(loss=0.4)
    return 4.0


def disorder(switch: Switch, random: Random) -> float:
    switch.everywhere = Treatment(delay=(0.001, 0.05), doubles=0.1)
    return 6.0


def one_way(switch: Switch, random: Random) -> float:
    one, other = random.sample(range(MEMBERS), 2)
    switch.treatments[one, other] = CUT
    return LONG


def split(switch: Switch, random: Random) -> float:
    few = random.sample(range(MEMBERS), 2)
    for one in few:
        for other in set(range(MEMBERS)) - set(few):
            switch.treatments[one, other] = switch.treatments[other, one] = CUT
    return LONG


def black_hole(switch: Switch, random: Random) -> float:
    switch.everywhere = Treatment(most=600)
    return LONG


Scene = Callable[[Switch, Random], float]
"""Begins, and says for how long it lasts."""
SCENES: dict[str, Scene] = {
    "packets: loss 10 %": loss,
    "packets: loss 40 %": heavy_loss,
    "packets: late, doubled": disorder,
    "packets: one-way cut": one_way,
    "packets: split": split,
    "packets: MTU black hole": black_hole,
}


async def suffer(name: str, seed: int, directory: Path) -> Row:
    random, row = Random(seed), Row(name)
    switch = Switch(MEMBERS, random)
    config = ClusterConfig(
        members=MEMBERS,
        seed=seed,
        directory=directory,
        proxies=False,
        topics=("talk.0", "talk.1"),
        module=APPLICATION,
        patience=PATIENCE,
        round_length=PATIENCE / 4,
        settings={"insecure": True},
        addresses=tuple(Address(address(number), 7400) for number in range(MEMBERS)),
        prefixes=tuple(inside(number) for number in range(MEMBERS)),
    )
    try:
        async with LiveCluster(config) as cluster:
            for member in cluster.members.values():
                await member.ask("publish", topics=list(config.topics), rate=RATE / 2, size=SIZE)
            await asyncio.sleep(PEACE)
            await asyncio.sleep(SCENES[name](switch, random))
            switch.heal()
            await asyncio.sleep(AFTERWARDS)
            await settled(cluster, row)
    except CubecastError as error:
        row.fault(f"it did not get to the end: {error!s:.300}")
    row.counts += f", frames: {switch.forwarded} forwarded, {switch.dropped} dropped, {switch.doubled} doubled"
    row.findings = judge(load(config.records))
    return row


async def _in_namespaces(name: str, seed: int, directory: Path) -> Row:
    command = (*NAMESPACES, sys.executable, "-m", "bench.attack.packets", name, str(seed), str(directory))
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    try:
        said, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
    row = Row(name)
    try:
        found = json.loads(said.splitlines()[-1])
    except (IndexError, ValueError):
        row.fault(f"the process in the namespaces ended with {process.returncode} and no result")
        return row
    row.findings = Findings(**found.pop("findings"))
    return dataclasses.replace(row, **found)


async def _not_allowed(name: str, seed: int, directory: Path) -> Row:
    return Row(name, is_allowed=False, notes=["not done: network namespaces are not allowed on this machine"])


def attacks() -> dict[str, Callable[[int, Path], Awaitable[Row]]]:
    probe = "mount -t tmpfs none /run && mkdir /run/netns && ip netns add probe"
    try:
        allowed = subprocess.run([*NAMESPACES, "sh", "-c", probe], capture_output=True).returncode == 0
    except OSError:
        allowed = False

    def attack(name: str) -> Callable[[int, Path], Awaitable[Row]]:
        suffered = _in_namespaces if allowed else _not_allowed
        return lambda seed, directory: suffered(name, seed, directory)

    return {name: attack(name) for name in SCENES}


def main() -> None:
    name, seed, directory = sys.argv[1:4]
    subprocess.run(["mount", "-t", "tmpfs", "none", "/run"], check=True)
    Path("/run/netns").mkdir()
    row = asyncio.run(suffer(name, int(seed), Path(directory)))
    print(json.dumps(dataclasses.asdict(row)))


if __name__ == "__main__":
    main()
