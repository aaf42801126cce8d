"""Is a configuration file right? Everything that is wrong with it, not only the first thing."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cubecast.errors import BadInput
from cubecast.net.settings.resolve import BadSettings, Resolved, Sources, missing_files, resolve
from cubecast.net.settings.sources import Given, from_file


def check_file(kind: type, file: Path, environment: Mapping[str, str]) -> list[str]:
    """A line per problem. A cluster file leaves open which of its nodes reads it: it must be right for each of them."""
    problems: list[str] = []
    try:
        for options in _readers(kind, file):
            resolved: Resolved[Any] = resolve(kind, Sources(file, environment, options))
            problems += [one for one in missing_files(kind, resolved) if one not in problems]
    except BadSettings as error:
        problems += error.problems
    except BadInput as error:
        problems.append(str(error))
    return problems


def _readers(kind: type, file: Path) -> list[dict[str, tuple[str, Any]]]:
    given = {one.key: one.raw for one in from_file(kind, file) if isinstance(one, Given)}
    peers = given.get("peers")
    if not isinstance(peers, dict) or not peers or "node" in given:
        return [{}]
    return [{"node": ("[peers]", node)} for node in peers]
