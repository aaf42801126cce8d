"""Judging journals while they grow, again and again, and leaving the last verdict where a node's page finds it."""

import json
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Any

from cubecast import __version__
from cubecast.check.follow.follower import Follower, Standing
from cubecast.check.verdict import Verdict
from cubecast.errors import BadInput
from cubecast.net.links.loop import run
from cubecast.protocol.families import find
from cubecast.trace.event import RunInfo
from cubecast.trace.journal import VERDICT

if TYPE_CHECKING:
    from cubecast.report.journals import Mirror


def follow(
    directories: Sequence[Path],
    properties: Sequence[str] | None,
    protocol: str,
    patience: float,
    pause: Callable[[], object],
    mirror: "Mirror | None" = None,
) -> Iterator[Standing]:
    """A standing after each look, until all nodes have ended. With a mirror, nodes are asked for news before each."""
    missing = [one for one in directories if not one.is_dir()]
    if missing:
        raise BadInput(f"{missing[0]} is no directory; name the one the nodes write their journals to (--trace)")
    promises = tuple(find(protocol).promises if properties is None else properties)
    info = RunInfo(directories[0].name or "live", protocol, promises, code_version=__version__)
    follower = Follower(list(directories), info, patience)
    while True:
        if mirror is not None:
            run(mirror.fetch())
        standing = follower.look()
        if mirror is not None:
            doubt(standing, mirror.silent(patience))
            run(mirror.leave(said(standing)))
        leave(standing, directories)
        yield standing
        if standing.decided_at_the_end:
            return
        pause()


def doubt(standing: Standing, reasons: Sequence[str]) -> None:
    """What is not known at present may be a violation."""
    standing.reasons += reasons
    if reasons and standing.verdict is Verdict.VALID:
        standing.verdict = Verdict.UNKNOWN


def said(standing: Standing) -> dict[str, Any]:
    return standing.to_json() | {"at": time()}


def leave(standing: Standing, directories: Sequence[Path]) -> None:
    """Beside the journals, as a whole or not at all."""
    text = json.dumps(said(standing))
    for directory in directories:
        draft = directory / f"{VERDICT}.{os.getpid()}"
        draft.write_text(text)
        draft.replace(directory / VERDICT)


def line(standing: Standing) -> str:
    """For people, one line."""
    what = (
        f"{standing.verdict} up to {standing.up_to:.3f} s: {standing.rows:,} rows, {standing.remembered:,} remembered"
    )
    if standing.violations:
        one = standing.violations[0]
        where = f"node {one.node}.{one.incarnation}, row {one.seq}"
        return f"{what}; {len(standing.violations)} violations, the first {one.promise} at {where}: {one.reason}"
    return f"{what}; {standing.reasons[0]}" if standing.reasons else what
