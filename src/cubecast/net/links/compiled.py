"""Which build this is: modules every frame passes through may be compiled, which changes nothing but speed."""

from cubecast.net.links import turn

IS_COMPILED = not turn.__file__.endswith(".py")
