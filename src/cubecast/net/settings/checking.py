"""Is a configuration file right? Everything that is wrong with it, not only the first thing."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from cubecast.errors import BadInput
from cubecast.net.settings.resolve import BadSettings, Resolved, Sources, missing_files, resolve
from cubecast.net.settings.sources import Given, from_file


def check_file(
    kind: type, file: Path, environment: Mapping[str, str], probe: Callable[[Any], object] = lambda config: None
) -> list[str]:
    """A line per problem. A cluster file leaves open which of its nodes reads it: it must be right for each of them.

    `probe` tries what the settings name, as far as that is possible without starting anything, and raises BadInput.
    """
    problems: list[str] = []
    try:
        for options in _readers(kind, file):
            resolved: Resolved[Any] = resolve(kind, Sources(file, environment, options))
            missing = missing_files(kind, resolved)
            problems += [one for one in missing if one not in problems]
            if not missing:
                probe(resolved.config)
    except BadSettings as error:
        problems += error.problems
    except BadInput as error:
        text = str(error)
        problems.append(text if str(file) in text else f"{file}: {text}")
    return problems


def _readers(kind: type, file: Path) -> list[dict[str, tuple[str, Any]]]:
    given = {one.key: one.raw for one in from_file(kind, file) if isinstance(one, Given)}
    peers = given.get("peers")
    if not isinstance(peers, dict) or not peers or "node" in given:
        return [{}]
    return [{"node": ("[peers]", node)} for node in peers]
