"""From what the members left behind to a verdict."""

from pathlib import Path

from cubecast import __version__
from cubecast.check import check_directory
from cubecast.check.verdict import Report
from cubecast.experiments.live_faults.cluster import ClusterConfig
from cubecast.protocol.families import find
from cubecast.trace.event import RunInfo
from cubecast.trace.journal import collect


def collected(config: ClusterConfig, name: str) -> Path:
    """The members' journals as a trace dataset."""
    out = config.directory / "trace"
    parameters = {"members": config.members, "patience": config.patience, "round_length": config.round_length}
    family = find(config.settings.get("protocol", "cubecast"))
    info = RunInfo(
        name,
        family.name,
        family.promises,
        seed=config.seed,
        code_version=__version__,
        parameters=parameters,
        measured=family.measured,
    )
    collect(config.journals, out, info)
    return out


def judged(config: ClusterConfig, name: str) -> Report:
    """The reference checker's verdict on everything the protocol promises."""
    return check_directory(collected(config, name))
