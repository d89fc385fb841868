"""What compiled code asks of the machine itself: memory ahead of time, and views without reference counts.

Ask the memory for what will be needed soon; uncompiled code does nothing.

With a million jobs the next one to leave is somewhere in tens of megabytes. The kernel knows which it is some
events ahead, so it asks early and goes on.

Array views without reference counts.

Numba counts references to an array wherever a name is bound to it, with atomic instructions, and an inlined
helper binds its arguments at every call. In a kernel that spends 40 ns on an event this doubles the time.
`unowned_view` returns the same array without its owner, so there is nothing to count; the kernel's caller
keeps the real array alive. Uncompiled code gets the array itself.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils as _cgutils
from numba.extending import intrinsic, overload

declared: Any = _cgutils.get_or_insert_function


def prefetch(array: Any, index: Any) -> None:
    """Have the element ready soon."""


prefetch.overloaded = True  # type: ignore[attr-defined]


@intrinsic
def _touch(_context: Any, array: types.Array, index: types.Integer) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        view = context.make_array(signature.args[0])(context, builder, value=args[0])
        place = builder.bitcast(builder.gep(view.data, [args[1]]), ir.IntType(8).as_pointer())
        i32 = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [place.type, i32, i32, i32])
        touch = declared(builder.module, kind, "llvm.prefetch.p0i8")
        builder.call(touch, [place, i32(0), i32(3), i32(1)])
        return context.get_dummy_value()

    return types.none(array, index), codegen


@overload(prefetch, strict=False)
def _prefetch(array: Any, index: Any) -> Any:
    def implementation(array: Any, index: Any) -> None:
        _touch(array, index)  # type: ignore[call-arg]

    return implementation if isinstance(array, types.Array) and isinstance(index, types.Integer) else None


null_of: Any = _cgutils.get_null_value


def unowned_view(array: Any) -> Any:
    """The same array, not counted."""
    return array


unowned_view.overloaded = True  # type: ignore[attr-defined]


@intrinsic
def _without_owner(_context: Any, array: types.Array) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        view = context.make_array(signature.args[0])(context, builder, value=args[0])
        view.meminfo = null_of(view.meminfo.type)
        view.parent = null_of(view.parent.type)
        return view._getvalue()  # noqa: SLF001 - numba's own way to hand out a struct

    return array(array), codegen


@overload(unowned_view, strict=False)
def _borrow(array: Any) -> Any:
    def implementation(array: Any) -> Any:
        return _without_owner(array)  # type: ignore[call-arg]

    return implementation if isinstance(array, types.Array) else None
