"""The families by name. A declaration is imported when it is asked for: naming one loads no other.

Adding a family is its folder and a line here. A name such as `package.module:NAME` finds a declaration anywhere.
"""

from functools import cache
from importlib import import_module

from cubecast.errors import BadInput
from cubecast.protocol.family import Family

FAMILIES = {
    "cubecast": "cubecast.protocol.cubecast.family:CUBECAST",
    "vcube-ps": "cubecast.protocol.hypercube.families:VCUBE_PS",
    "srpt": "cubecast.protocol.hypercube.families:SRPT",
    "srpt-b": "cubecast.protocol.hypercube.families:SRPT_B",
    "vcube-pb": "cubecast.protocol.hypercube.families:VCUBE_PB",
    "causal-broadcast": "cubecast.protocol.hypercube.families:CAUSAL_BROADCAST",
    "timer-bundling": "cubecast.protocol.hypercube.families:TIMER_BUNDLING",
    "locaps": "cubecast.protocol.brokers.families:LOCAPS",
    "delta": "cubecast.protocol.brokers.families:DELTA",
    "gryphon": "cubecast.protocol.brokers.families:GRYPHON",
    "epto": "cubecast.protocol.epidemic.families:EPTO",
    "epto-published": "cubecast.protocol.epidemic.families:EPTO_PUBLISHED",
    "brisa": "cubecast.protocol.epidemic.brisa_family:BRISA",
    "hyparview": "cubecast.protocol.epidemic.brisa_family:HYPARVIEW",
    "flood": "cubecast.protocol.epidemic.brisa_family:FLOOD",
    "simple-gossip": "cubecast.protocol.epidemic.brisa_family:SIMPLE_GOSSIP",
    "simple-tree": "cubecast.protocol.epidemic.brisa_family:SIMPLE_TREE",
    "tag": "cubecast.protocol.epidemic.brisa_family:TAG",
    "stan": "cubecast.protocol.epidemic.families:STAN",
    "crosspost": "cubecast.protocol.epidemic.families:CROSSPOST",
    "simple-flood": "cubecast.protocol.epidemic.families:SIMPLE_FLOOD",
}


DEFAULT_PROTOCOL = "cubecast"
"""What live nodes run unless told otherwise."""
STREAM_PROTOCOL = "brisa"
"""What `cubecast stream` runs."""


@cache
def find(name: str) -> Family:
    """The declaration of this name, or one line with the names there are."""
    place = FAMILIES.get(name, name)
    module, colon, attribute = place.partition(":")
    if not (module and colon and attribute):
        raise BadInput(f"unknown protocol {name!r}; there are {', '.join(FAMILIES)}")
    try:
        found = getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise BadInput(f"no protocol is declared at {name!r}: {error}") from None
    if not isinstance(found, Family):
        raise BadInput(f"no protocol is declared at {name!r}, that is a {type(found).__name__}")
    return found
