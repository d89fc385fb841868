"""Plain functions as code for a device, specialised by constants.

The functions of this package refer to constants of their modules (the number of classes, what is counted, the
rule); `specialised` copies a function with all that it calls, and puts other values in their place. So every
setting has a kernel of its own, in which loops over classes are unrolled and what is not needed is not there,
and there is one text of it.
"""

from __future__ import annotations

import types as python_types
from typing import TYPE_CHECKING, Any

from malleable.engine.compiling import helpers

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def specialised(
    function: Any, constants: Mapping[str, Any], compile_helper: Callable[[Any], Any] = lambda copy: copy
) -> Any:
    """A copy of the function, over copies of its helpers, that sees the constants given."""
    made: dict[Any, Any] = {}

    def copied(one: Any) -> Any:
        called = {name: helper(value) for name, value in helpers(one).items() if name not in constants}
        replaced = {
            name: helper(value) if isinstance(value, python_types.FunctionType) else value
            for name, value in constants.items()
            if name in _names(one)
        }
        copy = python_types.FunctionType(
            one.__code__,
            {**one.__globals__, **called, **replaced},
            one.__name__,
            one.__defaults__,
            _closure(one, called),
        )
        copy.__qualname__, copy.__module__ = one.__qualname__, one.__module__
        return copy

    def helper(one: Any) -> Any:
        if one not in made:
            made[one] = compile_helper(copied(one))
        return made[one]

    return copied(function)


def _names(function: Any) -> set[str]:
    return set(function.__code__.co_names)


def _closure(function: Any, called: Mapping[str, Any]) -> tuple[Any, ...]:
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    return tuple(python_types.CellType(called[name]) if name in called else cell for name, cell in cells)
