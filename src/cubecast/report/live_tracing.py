"""Traces of living nodes: switched on and off at several, their journals collected into one."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cubecast import __version__
from cubecast.net.security.login import NOTHING, Login
from cubecast.net.web.asking import http_address, switch_trace
from cubecast.report.live_asking import Connect
from cubecast.sim.protocols import find
from cubecast.trace.event import RunInfo
from cubecast.trace.journal import collect
from cubecast.trace.reader import read_info


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


def collect_journals(directory: Path, out: Path) -> dict[str, Any]:
    """A trace that `cubecast check` and `cubecast verify` read; what it holds and what it cannot say."""
    info = RunInfo(out.name or "live", "cubecast", find("cubecast").promises, code_version=__version__)
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
