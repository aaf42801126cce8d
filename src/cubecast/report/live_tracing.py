"""The journals of living nodes, collected into one trace."""

from pathlib import Path
from typing import Any

from cubecast import __version__
from cubecast.protocol.families import DEFAULT_PROTOCOL, find
from cubecast.trace.event import RunInfo
from cubecast.trace.journal import collect, protocol_of
from cubecast.trace.reader import read_info


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
