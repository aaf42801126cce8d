"""Compilation of kernels, behind one typed decorator."""

from collections.abc import Callable
from typing import Any, TypeVar

import numba

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """Machine code on first call, kept on disk between processes; the semantics stay those of the Python source.

    Without numba's reference counting: kernels are handed all their arrays and allocate none, and counting references
    to every array of a struct at every call costs several times the work itself.
    """
    return numba.njit(cache=True, _nrt=False, forceinline=True)(function)  # type: ignore[no-any-return]
