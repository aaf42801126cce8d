"""What metrics need of a run's header."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

_TRANSMISSION = ("transmission_time", "transmission")


class Header(NamedTuple):
    run: str
    protocol: str
    seed: int | None
    clock_unit: str
    setting: str
    """Protocol, nodes and parameters as text: equal for runs that differ only in their seed."""
    transmission_time: float | None
    """Service time of a node's output queue, if the run had such a thing."""
    queued_control: bool = True
    """Whether control packets wait in that queue too."""

    def to_json(self) -> dict[str, Any]:
        return self._asdict()


def header_of(info: Mapping[str, Any]) -> Header:
    """From the content of `run.json`."""
    parameters = {key: value for key, value in dict(info.get("parameters") or {}).items() if key != "seed"}
    setting = {"protocol": info["protocol"], "nodes": info.get("nodes"), **parameters}
    return Header(
        run=info["run"],
        protocol=info["protocol"],
        seed=info.get("seed"),
        clock_unit=info.get("clock_unit") or "",
        setting=json.dumps(setting, sort_keys=True, default=str),
        transmission_time=_transmission_time(parameters),
        queued_control=parameters.get("queued_control", True) is not False,
    )


def _transmission_time(parameters: Mapping[str, Any]) -> float | None:
    """Stated directly or among the parameters of the network; nothing else is guessed."""
    network = parameters.get("network")
    for place in (parameters, network if isinstance(network, Mapping) else {}):
        for name in _TRANSMISSION:
            if isinstance(value := place.get(name), int | float) and value > 0:
                return float(value)
    return None
