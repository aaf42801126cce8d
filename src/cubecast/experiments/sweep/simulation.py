"""The default point of a sweep: one simulation, its parameters those of `SimConfig`."""

from dataclasses import asdict, fields
from pathlib import Path
from random import Random
from typing import Any, get_args, get_type_hints

from cubecast.errors import BadInput
from cubecast.experiments.sweep.grid import Parameters
from cubecast.experiments.sweep.kinds import Figures, PointKind
from cubecast.protocol.families import find
from cubecast.protocol.family import Setup
from cubecast.sim.config import SimConfig
from cubecast.sim.faults import parse_faults
from cubecast.sim.network import parse_delay
from cubecast.sim.run import simulate, simulate_to_directory
from cubecast.sim.workload import parse_workload

_TYPES: dict[str, Any] = get_type_hints(SimConfig)
_SETTING = "settings."
_REPEATED = ("protocol", "nodes", "seed")  # figures that repeat a parameter
_SECONDS_PER_DELIVERY = 1.2e-5
_SECONDS_PER_NODE = 2e-4


def config_of(parameters: Parameters) -> SimConfig:
    """The configuration that flat, untyped parameters describe, or one line about what is wrong with them."""
    settings = {name.removeprefix(_SETTING): str(v) for name, v in parameters.items() if name.startswith(_SETTING)}
    plain = {name: value for name, value in parameters.items() if not name.startswith(_SETTING)}
    known = [field.name for field in fields(SimConfig) if field.name != "settings"]
    for name in plain:
        if name not in known:
            raise BadInput(f"a simulation has no parameter {name!r}; it has {', '.join(known)} and settings.NAME")
    if "protocol" not in plain:
        raise BadInput("a simulation needs a protocol")
    typed: dict[str, Any] = {name: _typed(name, value) for name, value in plain.items()}
    return SimConfig(**typed, settings=settings)


def _typed(name: str, value: Any) -> Any:
    allowed = get_args(_TYPES[name]) or (_TYPES[name],)
    if type(value) in allowed:
        return value
    if type(value) is int and float in allowed:
        return float(value)
    if type(value) is int and name in ("publishers", "subscribers"):
        return str(value)
    raise BadInput(f"{name} must be {allowed[0].__name__}, not {value!r}")


def check(parameters: Parameters) -> Parameters:
    """Everything that can be wrong with a configuration, without building its world."""
    config = config_of(parameters)
    family = find(config.protocol)
    settings = family.choose(config.settings)
    parse_workload(config.workload)
    parse_faults(config.faults)
    parse_delay(config.propagation, Random(0), config.nodes)
    config.count("publishers", config.count("subscribers", config.nodes))
    family.factory(Setup(config.nodes, tuple(range(config.nodes)), {}, Random(0)), config.settings)
    complete: dict[str, Any] = {
        name: value for name, value in asdict(config).items() if name not in ("settings", "seed")
    }
    return complete | {f"{_SETTING}{name}": getattr(value, "value", value) for name, value in settings.items()}


def run(parameters: Parameters) -> Figures:
    return _new(simulate(config_of(parameters)))


def trace(parameters: Parameters, directory: Path) -> Figures:
    return _new(simulate_to_directory(config_of(parameters), directory))


def _new(figures: Figures) -> Figures:
    return {name: value for name, value in figures.items() if name not in _REPEATED}


def cost(parameters: Parameters) -> float:
    """Deliveries dominate; a rough guess is enough to share out the work."""
    config = config_of(parameters)
    subscribers = config.count("subscribers", config.nodes)
    publications = config.count("publishers", subscribers) * config.messages
    if config.workload.startswith("periodic"):
        publications = int(config.window / float(config.workload.partition(":")[2]))
    return publications * subscribers * _SECONDS_PER_DELIVERY + config.nodes * _SECONDS_PER_NODE


SIMULATION = PointKind(
    run, check, trace, cost, ("reception_latency_mean", "delivery_latency_mean", "packets", "false_positives")
)
