"""cubecast: publish/subscribe in which every subscriber sees causes before effects."""

__version__ = "0.1.0"
