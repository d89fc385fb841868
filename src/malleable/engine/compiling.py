"""Compile plain Python functions, with all plain functions they call, and keep the machine code on disk.

Rules and kernels are ordinary functions, so they can be read, debugged and run uncompiled; this module is
where they become machine code. A function is copied with its global helpers replaced by compiled ones, so a
policy's file needs no decorator and no numba. A kernel with an explicit signature that takes its rule as a
first-class function is compiled once for all policies.

Numba checks only the file of the compiled function for changes, not those of its helpers, so the name of the
cache folder carries a digest of all sources that a function's module is made of, imports of imports included.
"""

from __future__ import annotations

import functools
import os
import tempfile
import types as python_types
import warnings
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numba
from numba import float64, njit, types, void

from malleable.dependencies import digest, members

config: Any = numba.config

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

F1, F2 = float64[::1], float64[:, ::1]
CLASS_RULE = void(F1, float64, F1, F1)
"""rule(counts, cores, table, out): cores per job of each class."""
JOB_RULE = void(F2, float64, F1, F1)
"""rule(jobs, cores, table, out): cores of each job."""
AS_ARGUMENT = {signature: types.FunctionType(signature) for signature in (CLASS_RULE, JOB_RULE)}


class Entry:
    """A compiled rule as numba passes it to a kernel: its address, looked up once and not at every call.

    Given the rule itself, numba finds its type and its machine code anew each time, which takes as long as
    five hundred events.
    """

    def __init__(self, rule: Any, signature: Any) -> None:
        self._rule = rule  # the machine code lives as long as it does
        self._numba_type_ = AS_ARGUMENT[signature]
        made = rule.get_compile_result(signature)
        self._address = int(made.library.get_pointer_to_function(made.fndesc.llvm_cfunc_wrapper_name))

    def __wrapper_address__(self) -> int:
        return self._address


class SlowPolicyWarning(UserWarning):
    """A policy could not be compiled and runs interpreted."""


@functools.cache
def compiled(function: Callable[..., Any], signature: Any) -> Any:
    """Machine code of `function` for one signature, from the cache where possible."""
    with cache_folder(function.__module__):
        return njit(signature, cache=True, nogil=True, error_model="numpy")(_with_compiled_helpers(function))


@functools.cache
def _helper(function: Callable[..., Any]) -> Any:
    # Nobody calls helpers from Python or by address, and what it takes to do so takes time to compile.
    options: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    if getattr(function, "inlined", False):
        options["inline"] = "always"
    return njit(error_model="numpy", **options)(_with_compiled_helpers(function))


def _with_compiled_helpers(function: Callable[..., Any]) -> Any:
    """A copy of the function that sees compiled versions of the plain functions it calls."""
    if not isinstance(function, python_types.FunctionType):
        return function
    called = {name: _helper(helper) for name, helper in _helpers(function).items()}
    if not called:
        return function
    scope = {**function.__globals__, **called}
    copy = python_types.FunctionType(
        function.__code__, scope, function.__name__, function.__defaults__, function.__closure__
    )
    copy.__qualname__, copy.__module__ = function.__qualname__, function.__module__
    return copy


def _helpers(function: python_types.FunctionType) -> dict[str, python_types.FunctionType]:
    """The plain functions that a function may call, by the names it has for them."""
    scope = function.__globals__
    return {
        name: scope[name]
        for name in _names(function.__code__)
        if isinstance(scope.get(name), python_types.FunctionType) and not hasattr(scope[name], "overloaded")
    }


def extent(function: Any) -> int:
    """Bytes of Python's code in a function and all that it calls: a guess at how long it takes to compile."""
    found, waiting = {function}, [function]
    while waiting:
        new = set(_helpers(waiting.pop()).values()) - found
        found |= new
        waiting += new
    return sum(len(each.__code__.co_code) for each in found)


def _names(code: python_types.CodeType) -> set[str]:
    """All global names that a function's code mentions, nested functions included."""
    inner = (c for c in code.co_consts if isinstance(c, python_types.CodeType))
    return set(code.co_names).union(*map(_names, inner))


def compile_rule(function: Callable[..., Any], signature: Any, name: str) -> tuple[Any, bool]:
    """Compile a user's rule if it can be; otherwise hand it back and say what that costs."""
    reason = getattr(function, "only_python", "")
    if not reason:
        try:
            return compiled(function, signature), True
        except Exception as error:  # noqa: BLE001 - whatever numba dislikes about it
            reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    message = f"policy {name} cannot be compiled ({reason:.120}); it runs interpreted, 50 to 500 times slower"
    warnings.warn(message, SlowPolicyWarning, stacklevel=2)
    return function, False


@contextmanager
def cache_folder(module: str) -> Iterator[None]:
    """Have numba keep machine code in a folder of ours while something of a module is compiled."""
    before = config.CACHE_DIR
    if not before:
        config.CACHE_DIR = _folder(module)
    try:
        yield
    finally:
        config.CACHE_DIR = before


@functools.cache
def _folder(module: str) -> str:
    # A rule from elsewhere depends on the engine alone; numba looks at the rule's own file itself.
    name = digest([module, *members("malleable.engine")], numba.__version__)
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    for root in (base, Path(tempfile.gettempdir())):
        place = root / "malleable" / name
        try:
            place.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(place, os.W_OK):
            return str(place)
    return ""
