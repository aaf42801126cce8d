"""The cubecast protocol: reliable, gapless, pipelined causal publish/subscribe (docs/protocol.md)."""

from cubecast.protocol.vcube.cubecast.machine import Cubecast
from cubecast.protocol.vcube.cubecast.parameters import Detection, Parameters

__all__ = ["Cubecast", "Detection", "Parameters"]
