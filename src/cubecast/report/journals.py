"""Journals of running nodes: fetched from the nodes as they grow, for a judge elsewhere; collected into one trace."""

import json
from collections.abc import Sequence
from pathlib import Path
from time import monotonic
from typing import Any

from cubecast import __version__
from cubecast.addresses import Address
from cubecast.errors import BadInput, CubecastError
from cubecast.net.links.login import NOTHING, Login
from cubecast.net.web.asking import http_address, journal_behind, journals_of, leave_verdict
from cubecast.protocol.families import DEFAULT_PROTOCOL, find
from cubecast.report.live_asking import Connect
from cubecast.trace.event import RunInfo
from cubecast.trace.journal import JOURNAL_SUFFIX, LOST_SUFFIX, collect, journals, protocol_of
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
