"""A live node's journal: its lines on disk before anybody sees what they tell of; switching it on and off."""

import asyncio
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from cubecast.errors import BadInput
from cubecast.ids import NodeId, Topic
from cubecast.net.links.handshake import Place
from cubecast.net.settings.config import NodeConfig
from cubecast.protocol.effects import Effect, Effects, Send
from cubecast.protocol.inputs import Input
from cubecast.protocol.inspector import Inspector, Reached
from cubecast.trace.journal import JournalWriter
from cubecast.trace.recording import Recording
from cubecast.trace.rows import BASE, OFF, RUN
from cubecast.trace.schema import Kind

if TYPE_CHECKING:
    from cubecast.net.node.driver import Driver


# A live node's journal: the lines of its history on disk, before anybody sees what they tell of.


class Journal:
    """Written at the end of every step, before anybody acts on its effects."""

    def __init__(
        self,
        directory: Path,
        node: int,
        incarnation: int,
        instance: bytes,
        *,
        protocol: str = "",
        packets: bool = False,
    ) -> None:
        self._writer = JournalWriter(directory, node, incarnation, instance.hex()[:8])
        self._recording = Recording(self._writer.line, packets=packets)
        self._protocol = protocol
        self._packets = packets
        self._incarnation = incarnation

    @classmethod
    def of(cls, config: NodeConfig, directory: Path, place: Place) -> "Journal":
        """That of a node with these settings."""
        who = (place.node, place.incarnation, place.instance)
        return cls(directory, *who, protocol=config.protocol, packets=config.journal_packets)

    def started(self, now: float) -> None:
        self._writer.line(RUN, now, self._protocol)
        self._recording.started(now, self._incarnation)
        self._writer.flush()

    def began_late(self, now: float, published: Mapping[Topic, int], subscriptions: Sequence[Reached]) -> None:
        """Switched on in the middle of a life: what was before, and where each subscription is, as its cut."""
        self._writer.line(RUN, now, self._protocol)
        self._recording.started(now, self._incarnation)
        self._writer.line(BASE, now, published)
        for one in subscriptions:
            self._recording.found(now, one.topic, one.delivered, confirmed=one.is_confirmed)
        self._writer.flush()

    def switched_off(self, now: float) -> None:
        """The node goes on and nothing more is written."""
        self._writer.line(OFF, now)
        self._writer.close()

    def packet(self, now: float, sender: NodeId, packet: Any, effects: list[Effect]) -> None:
        """A packet that the machine took, and what came of it."""
        if self._packets:
            self._recording.packet(Kind.RECEIVE, now, sender, packet)
        self._recording.effects(now, effects)
        self._writer.flush()

    def step(self, now: float, given: Input, effects: list[Effect]) -> None:
        """Any other input that the machine took, and what came of it."""
        self._recording.asked(now, given, effects)
        self._recording.effects(now, effects)
        self._writer.flush()

    def ended(self, now: float, *, at_rest: bool) -> None:
        """The last line: at rest nothing was under way."""
        self._recording.ended(now, Kind.QUIESCENT if at_rest else Kind.STOP)
        self._writer.close()

    def abandon(self) -> None:
        """It cannot be written any more."""
        self._writer.abandon()

    def drop(self) -> None:
        """It was not this node's history after all."""
        self._writer.remove()


log = logging.getLogger(__name__)

RUN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


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

        if not RUN_NAME.fullmatch(run):
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
