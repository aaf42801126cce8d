"""Journals of running nodes: fetched from the nodes as they grow, for a judge elsewhere; collected into one trace;
judged while they grow, again and again, the last verdict left where a node's page finds it.
"""

import json
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from time import monotonic, time
from typing import Any

from cubecast import __version__
from cubecast.addresses import Address
from cubecast.check.follow.follower import Follower, Standing
from cubecast.check.verdict import Verdict
from cubecast.errors import BadInput, CubecastError
from cubecast.net.links.login import NOTHING, Login
from cubecast.net.links.loop import run
from cubecast.net.web.asking import http_address, journal_behind, journals_of, leave_verdict
from cubecast.protocol.families import DEFAULT_PROTOCOL, find
from cubecast.report.live_status import Connect
from cubecast.trace.event import RunInfo
from cubecast.trace.journal import JOURNAL_SUFFIX, LOST_SUFFIX, VERDICT, collect, journals, protocol_of
from cubecast.trace.reader import read_info
from cubecast.trace.schema import Kind

AT_ONCE = 16 << 20
"""Bytes of a node's journals fetched before the next node has its turn."""
ENDS = tuple(f'["{kind}",' for kind in (Kind.STOP, Kind.QUIESCENT))
TAIL = 4096


class Mirror:
    """`await fetch()` again and again; the files are in `directory`."""

    def __init__(
        self, nodes: Sequence[str], connect: Connect, directory: Path, timeout: float, login: Login = NOTHING
    ) -> None:
        self._nodes, self._connect, self.directory = list(nodes), connect, directory
        self._timeout, self._login = timeout, login
        self._http: dict[str, Address] = {}
        self._ids: dict[str, int] = {}
        self._silent: dict[str, tuple[float, str]] = {}
        """Since when a node does not answer, and what became of the last question."""

    async def fetch(self) -> None:
        """What is new at each node. BadInput when one that never answered refuses: that does not pass by itself."""
        for node in self._nodes:
            try:
                if node not in self._http:
                    async with self._connect(node) as client:
                        self._http[node] = http_address((await client.status())["http"], node)
                await self._fetch_from(node, self._http[node])
                self._silent.pop(node, None)
            except (CubecastError, TimeoutError, OSError) as error:
                if isinstance(error, BadInput) and node not in self._ids:
                    raise
                self._http.pop(node, None)  # who comes back may serve elsewhere
                self._silent.setdefault(node, (monotonic(), str(error) or type(error).__name__))

    async def _fetch_from(self, node: str, address: Address) -> None:
        said = await journals_of(address, self._timeout, self._login)
        self._ids[node] = int(said["node"])
        left = AT_ONCE
        for name, size in said["journals"].items():
            path = self._path(name)
            have = path.stat().st_size if path.exists() else 0
            while have < size and left > 0:
                data = await journal_behind(address, name, have, self._timeout, self._login)
                if not data:
                    break
                with path.open("ab") as file:
                    file.write(data)
                have, left = have + len(data), left - len(data)

    def _path(self, name: str) -> Path:
        """Of the copy, under the name that the journal has by now."""
        path = self.directory / Path(name).name
        before = path.with_name(path.name.removesuffix(LOST_SUFFIX) + JOURNAL_SUFFIX)
        if path.name.endswith(LOST_SUFFIX) and before.exists():
            before.rename(path)
        return path

    def silent(self, patience: float) -> list[str]:
        """Nodes that may have done something of which nothing is known here."""
        told = []
        for node, (since, why) in self._silent.items():
            name = self._ids.get(node)
            if monotonic() - since >= patience and (name is None or not _has_stopped(self.directory, name)):
                told.append(f"{node} does not answer, so what it did since is not known: {why}")
        return told

    async def leave(self, standing: dict[str, Any]) -> None:
        """At the nodes, whose pages show it."""
        verdict = json.dumps(standing | {"witnesses": standing["witnesses"][:1]}).encode()
        for node, address in self._http.items():
            if node not in self._silent:
                try:
                    await leave_verdict(address, verdict, self._timeout, self._login)
                except (CubecastError, TimeoutError, OSError):
                    continue  # the next look says that it is silent


def _has_stopped(directory: Path, node: int) -> bool:
    """Does its last journal end with a farewell?"""
    paths = journals(directory).get(node)
    if not paths:
        return False
    with paths[-1].open("rb") as file:
        file.seek(max(0, paths[-1].stat().st_size - TAIL))
        lines = file.read().decode(errors="replace").splitlines()
    return bool(lines) and lines[-1].startswith(ENDS)


def collect_journals(directory: Path, out: Path) -> dict[str, Any]:
    """A trace that `cubecast check` and `cubecast verify` read; what it holds and what it cannot say."""
    family = find(protocol_of(directory) or DEFAULT_PROTOCOL)
    name = out.name or "live"
    info = RunInfo(name, family.name, family.promises, code_version=__version__, measured=family.measured)
    rows = collect(directory, out, info)
    written = read_info(out)
    return {
        "trace": str(out),
        "rows": rows,
        "nodes": written.nodes,
        "partial": written.parameters.get("partial"),
        "publishers_without_a_journal": written.parameters.get("publishers_without_a_journal", []),
        "lost_journals": written.parameters.get("lost_journals", []),
        "promises": list(written.promises),
    }


# Judging journals while they grow.


def follow(
    directories: Sequence[Path],
    properties: Sequence[str] | None,
    patience: float,
    pause: Callable[[], object],
    mirror: "Mirror | None" = None,
) -> Iterator[Standing]:
    """A standing after each look, until all nodes have ended. With a mirror, nodes are asked for news before each."""
    missing = [one for one in directories if not one.is_dir()]
    if missing:
        raise BadInput(f"{missing[0]} is no directory; name the one the nodes write their journals to (--trace)")
    protocol = None
    follower = Follower(list(directories), _judged_by(directories, DEFAULT_PROTOCOL, properties), patience)
    while True:
        if mirror is not None:
            run(mirror.fetch())
        if protocol is None and (protocol := _protocol(directories)) is not None:
            follower.info = _judged_by(directories, protocol, properties)
        standing = follower.look()
        if mirror is not None:
            doubt(standing, mirror.silent(patience))
            run(mirror.leave(said(standing)))
        leave(standing, directories)
        yield standing
        if standing.decided_at_the_end:
            return
        pause()


def _protocol(directories: Sequence[Path]) -> str | None:
    """What the nodes run; None while no journal says it."""
    named = sorted({name for one in directories if (name := protocol_of(one)) is not None})
    if len(named) > 1:
        raise BadInput(f"these are journals of {' and of '.join(named)}; name the directories of one cluster")
    return named[0] if named else None


def _judged_by(directories: Sequence[Path], protocol: str, properties: Sequence[str] | None) -> RunInfo:
    """Nodes are held to what their own protocol promises."""
    family = find(protocol)
    promises = tuple(family.promises if properties is None else properties)
    name = directories[0].name or "live"
    return RunInfo(name, family.name, promises, code_version=__version__, measured=family.measured)


def doubt(standing: Standing, reasons: Sequence[str]) -> None:
    """What is not known at present may be a violation."""
    standing.reasons += reasons
    if reasons and standing.verdict is Verdict.VALID:
        standing.verdict = Verdict.UNKNOWN


def said(standing: Standing) -> dict[str, Any]:
    return standing.to_json() | {"at": time()}


def leave(standing: Standing, directories: Sequence[Path]) -> None:
    """Beside the journals, as a whole or not at all."""
    text = json.dumps(said(standing))
    for directory in directories:
        draft = directory / f"{VERDICT}.{os.getpid()}"
        draft.write_text(text)
        draft.replace(directory / VERDICT)


def line(standing: Standing) -> str:
    """For people, one line."""
    what = (
        f"{standing.verdict} up to {standing.up_to:.3f} s: {standing.rows:,} rows, {standing.remembered:,} remembered"
    )
    if standing.violations:
        one = standing.violations[0]
        where = f"node {one.node}.{one.incarnation}, row {one.seq}"
        return f"{what}; {len(standing.violations)} violations, the first {one.promise} at {where}: {one.reason}"
    return f"{what}; {standing.reasons[0]}" if standing.reasons else what
