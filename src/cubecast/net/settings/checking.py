"""Is a configuration file right? Everything that is wrong with it, not only the first thing."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from cubecast.errors import BadInput
from cubecast.net.settings.resolve import BadSettings, Resolved, Sources, missing_files, resolve
from cubecast.net.settings.sources import Given, from_file


def check_file(kind: type, sources: Sources, probe: Callable[[Any], object] = lambda config: None) -> list[str]:
    """A line per problem. A cluster file leaves open which of its nodes reads it: it must be right for each of them.

    `probe` tries what the settings name, as far as that is possible without starting anything, and raises BadInput.
    """
    problems: list[str] = []
    file = sources.file
    assert file is not None, "a file is checked"
    try:
        for options in _readers(kind, file, sources):
            resolved: Resolved[Any] = resolve(kind, replace(sources, options=options))
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


def _readers(kind: type, file: Path, sources: Sources) -> list[Mapping[str, tuple[str, Any]]]:
    """The options of each node that may read the file."""
    given = {one.key: one.raw for one in from_file(kind, file) if isinstance(one, Given)}
    peers = given.get("peers")
    is_known = "node" in given or "node" in sources.options or "CUBECAST_NODE" in sources.environment
    if not isinstance(peers, dict) or not peers or is_known:
        return [sources.options]
    return [{**sources.options, "node": ("[peers]", node)} for node in peers]
