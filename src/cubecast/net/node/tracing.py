"""A machine's journal while one is written, and switching it on and off in a living node."""

import asyncio
import logging
import re
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from cubecast.errors import BadInput
from cubecast.ids import NodeId
from cubecast.net.links.handshake import Place
from cubecast.net.settings.config import NodeConfig
from cubecast.protocol.effects import Effects, Send
from cubecast.protocol.inputs import Input
from cubecast.protocol.inspector import Inspector

if TYPE_CHECKING:
    from cubecast.net.node.driver import Driver
    from cubecast.net.node.journal import Journal

log = logging.getLogger(__name__)

RUN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class Journalling:
    """A machine's journal, while one is written."""

    def __init__(self, journal: "Journal | None", inspector: Inspector, encode: Callable[[Any], bytes]) -> None:
        self.journal, self._inspector, self._encode = journal, inspector, encode

    def begin(self, journal: "Journal") -> None:
        """In the middle of this life; whatever happens from now on is written."""
        journal.began_late(monotonic(), self._inspector.published(), self._inspector.reached())
        self.journal = journal

    def end(self, *, at_rest: bool, switched_off: bool = False) -> None:
        """The history ends here, even if the node goes on, which `switched_off` says it does."""
        journal, self.journal = self.journal, None
        if journal is not None:
            try:
                if switched_off:
                    journal.switched_off(monotonic())
                else:
                    journal.ended(monotonic(), at_rest=at_rest)
            except OSError as error:
                log.error("the journal has no end, its trace cannot be judged: %s", error)

    def _lose(self, error: OSError) -> None:
        """A full disk is no reason to stop serving: the history ends in the middle, the node goes on."""
        journal, self.journal = self.journal, None
        if journal is not None:
            log.error("the journal ends here, its trace cannot be judged; the node goes on without: %s", error)
            try:
                journal.abandon()
            except OSError as another:
                log.error(
                    "that journal could not be marked as lost; remove it before a trace is collected: %s", another
                )

    def drop(self) -> None:
        journal, self.journal = self.journal, None
        if journal is not None:
            journal.drop()

    def packet(self, now: float, sender: NodeId, packet: Any, effects: Effects) -> None:
        self._frame(effects)
        if self.journal is not None:
            try:
                self.journal.packet(now, sender, packet, effects)
            except OSError as error:
                self._lose(error)

    def step(self, now: float, told: Input, effects: Effects) -> None:
        self._frame(effects)
        if self.journal is not None:
            try:
                self.journal.step(now, told, effects)
            except OSError as error:
                self._lose(error)

    def _frame(self, effects: Effects) -> None:
        for effect in effects:
            if isinstance(effect, Send) and effect.packet.frame is None:
                effect.packet.frame = self._encode(effect.packet)


class Tracing:
    """Names come from outside: they are names of directories below one that the operator chose, and nothing else."""

    def __init__(self, config: NodeConfig) -> None:
        self._config = config
        self._directory: Path | None = config.journal
        self._since_start = config.journal is not None

    def from_the_beginning(self, place: Place) -> "Journal | None":
        """The journal of a life that begins now, where the settings want one."""
        where = self._config.journal
        if where is None:
            return None
        from cubecast.net.node.journal import Journal  # as in `switch_on`

        try:
            journal = Journal.of(self._config, where, place)
            journal.started(asyncio.get_running_loop().time())
        except OSError as error:
            raise BadInput(f"no journal can be written in {where}: {error.strerror}") from None
        return journal

    def describe(self, driver: "Driver | None") -> dict[str, Any]:
        on = driver is not None and driver.journalling.journal is not None
        return {
            "on": on,
            "directory": str(self._directory) if on else None,
            "from_the_beginning": on and self._since_start,
        }

    def switch_on(self, run: str, place: Place, driver: "Driver") -> Path:
        """The directory; BadInput when that cannot be."""
        # Here, because it brings the schema of traces along, which a node that writes none does without.
        from cubecast.net.node.journal import Journal

        if not RUN.fullmatch(run):
            raise BadInput(f"{run!r} is no name for a trace: letters, digits, dots, dashes, at most 64")
        if driver.journalling.journal is not None:
            raise BadInput(f"a trace is written to {self._directory} already")
        if not driver.inspector.is_active:
            raise BadInput("this node does not take part yet")
        directory = self._home() / run
        if any(directory.glob(f"node-{place.node:05d}-*")):
            raise BadInput(f"{directory} holds a trace of this node already; give it another name")
        try:
            driver.journalling.begin(Journal.of(self._config, directory, place))
        except OSError as error:
            raise BadInput(f"cannot write to {directory}: {error.strerror or error}") from None
        self._directory, self._since_start = directory, False
        return directory

    def switch_off(self, driver: "Driver") -> Path:
        """Where it is."""
        if not driver.journalling.journal is not None or self._directory is None:
            raise BadInput("no trace is written")
        driver.journalling.end(at_rest=False, switched_off=True)
        return self._directory

    def _home(self) -> Path:
        config = self._config
        if config.traces is not None:
            return config.traces
        if config.data is None:
            raise BadInput("this node has no place for traces: start it with the setting `traces`, or with --data")
        return config.data / "traces"
