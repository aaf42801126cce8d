"""Compilation of kernels, behind one typed decorator."""

from collections.abc import Callable
from typing import Any, TypeVar

import numba
from numba.core import cgutils, types
from numba.extending import intrinsic

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """Machine code on first call, kept on disk between processes; the semantics stay those of the Python source.

    Without numba's reference counting: kernels are handed all their arrays and allocate none, and counting references
    to every array of a struct at every call costs several times the work itself.
    """
    return numba.njit(cache=True, _nrt=False, forceinline=True)(function)  # type: ignore[no-any-return]


@intrinsic  # type: ignore[untyped-decorator]
def prefetch(_typing: Any, array: Any, index: Any) -> tuple[Any, Callable[..., Any]]:
    """Have an element on its way into the cache; `index` is a tuple of integers within bounds."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = signature.args[0]
        view = context.make_array(kind)(context, builder, arguments[0])
        place = cgutils.get_item_pointer(context, builder, kind, view, cgutils.unpack_tuple(builder, arguments[1]))
        address, number, nothing = cgutils.voidptr_t, cgutils.int32_t, cgutils.ir.VoidType()
        instruction = cgutils.ir.FunctionType(nothing, [address, number, number, number])
        fetch = cgutils.get_or_insert_function(builder.module, instruction, "llvm.prefetch.p0i8")
        builder.call(fetch, [builder.bitcast(place, address), number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(array, index), generate
