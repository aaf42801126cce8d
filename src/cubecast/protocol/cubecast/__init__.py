"""The cubecast protocol: reliable, gapless, pipelined causal publish/subscribe (docs/protocol.md)."""

from cubecast.protocol.cubecast.machine import Cubecast
from cubecast.protocol.cubecast.parameters import Detection, Parameters

__all__ = ["Cubecast", "Detection", "Parameters"]
