"""Which of the judged traces do not tell everything, for the reader of the verdict."""

import json
from collections.abc import Iterable
from pathlib import Path

from cubecast.trace.schema import RUN_FILE


def partial_notes(directories: Iterable[Path]) -> list[str]:
    """A line per partial run in and below the directories; they were judged, so their headers can be read."""
    notes = []
    for header in sorted({path for directory in directories for path in directory.rglob(RUN_FILE)}):
        info = json.loads(header.read_text())
        says = info["parameters"].get("partial")
        if says:
            left_out = [".".join(map(str, one)) for one in info["parameters"].get("publishers_without_a_journal", ())]
            without = f"; nothing of nodes {', '.join(left_out)}, which left no journal" if left_out else ""
            notes.append(f"{info['run']}: {says}{without}")
    return notes
