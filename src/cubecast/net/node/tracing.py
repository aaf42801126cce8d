"""A node's journal switched on and off while it lives."""

import re
from pathlib import Path
from typing import Any

from cubecast.errors import BadInput
from cubecast.net.links.handshake import Place
from cubecast.net.node.driver import Driver
from cubecast.net.settings.config import NodeConfig

RUN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class Tracing:
    """Names come from outside: they are names of directories below one that the operator chose, and nothing else."""

    def __init__(self, config: NodeConfig) -> None:
        self._config = config
        self._directory: Path | None = config.journal
        self._since_start = config.journal is not None

    def describe(self, driver: Driver | None) -> dict[str, Any]:
        on = driver is not None and driver.is_journalling
        return {
            "on": on,
            "directory": str(self._directory) if on else None,
            "from_the_beginning": on and self._since_start,
        }

    def switch_on(self, run: str, place: Place, driver: Driver) -> Path:
        """The directory; BadInput when that cannot be."""
        # Here, because it brings the schema of traces along, which a node that writes none does without.
        from cubecast.net.node.journal import Journal

        if not RUN.fullmatch(run):
            raise BadInput(f"{run!r} is no name for a trace: letters, digits, dots, dashes, at most 64")
        if driver.is_journalling:
            raise BadInput(f"a trace is written to {self._directory} already")
        if not driver.inspector.is_active:
            raise BadInput("this node does not take part yet")
        directory = self._home() / run
        if any(directory.glob(f"node-{place.node:05d}-*")):
            raise BadInput(f"{directory} holds a trace of this node already; give it another name")
        try:
            driver.begin_journal(Journal.of(self._config, directory, place))
        except OSError as error:
            raise BadInput(f"cannot write to {directory}: {error.strerror or error}") from None
        self._directory, self._since_start = directory, False
        return directory

    def switch_off(self, driver: Driver) -> Path:
        """Where it is."""
        if not driver.is_journalling or self._directory is None:
            raise BadInput("no trace is written")
        driver.end_journal(at_rest=False, switched_off=True)
        return self._directory

    def _home(self) -> Path:
        config = self._config
        if config.traces is not None:
            return config.traces
        if config.data is None:
            raise BadInput("this node has no place for traces: start it with the setting `traces`, or with --data")
        return config.data / "traces"
