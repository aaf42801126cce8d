"""What no process of an overlay can see alone: in each flow the primary parents form a forest."""

from collections.abc import Callable
from typing import Any

from cubecast.ids import NodeId


def check_forest(machine_of: Callable[[NodeId], Any], node: NodeId) -> None:
    """After a step of this process, which is the only one that may have closed a cycle. Who crashed has no machine."""
    for key in machine_of(node).flows:
        seen, here = {node: None}, _primary(machine_of(node), key)
        while here is not None:
            assert here not in seen, f"primary parents of {key.topic} of {key.root} in a cycle: {[*seen, here]}"
            seen[here] = None
            here = _primary(machine_of(here), key)


def _primary(machine: Any, key: Any) -> NodeId | None:
    flow = None if machine is None else machine.flows.get(key)
    return None if flow is None else flow.primary
