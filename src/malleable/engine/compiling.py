"""Compile plain Python functions, with all plain functions they call, and keep the machine code on disk.

Rules and kernels are ordinary functions, so they can be read, debugged and run uncompiled; this module is
where they become machine code. A function is copied with its helpers replaced by compiled ones, so a policy's
file needs no decorator and no numba. A kernel with an explicit signature that takes its rule as a first-class
function is compiled once for all policies.

Code that is not of this package is not trusted with memory: it is compiled with bounds checks, works on a
copy of the jobs, and what it raises is noticed (`guarded`).

Machine code is found by its symbol, and numba tells symbols apart by numbers that start anew in every
process. Code that two processes kept would meet under one symbol in a third, which then runs one for the
other; so names that need not be unique carry a digest of what they are compiled from (`_symbol`).
"""

from __future__ import annotations

import functools
import types as python_types
import warnings
from typing import TYPE_CHECKING, Any

import numba
import numpy as np
from numba import float64, int64, njit, types, void
from numba.core.registry import CPUDispatcher

from malleable.catalog.code_digest import UnknownContentError, code_digest, references
from malleable.catalog.families import is_ours
from malleable.engine.code_cache import CodeCache
from malleable.engine.helper_code import WholeCompiler, hand_environments, helper_code
from malleable.engine.legal_widths import legalise, set_aside

config: Any = numba.config

if TYPE_CHECKING:
    from collections.abc import Callable

F1, F2 = float64[::1], float64[:, ::1]
CLASS_RULE = void(F1, float64, F1, F1)
"""rule(counts, cores, table, out): cores per job of each class."""
JOB_RULE = void(F2, float64, F1, F1)
"""rule(jobs, cores, table, out): cores of each job."""
AS_ARGUMENT = {signature: types.FunctionType(signature) for signature in (CLASS_RULE, JOB_RULE)}
RAISED = -np.inf
"""What a guarded rule leaves in `out` where it raised an exception."""
PLAIN: dict[str, Any] = {"error_model": "numpy"}
CHECKED: dict[str, Any] = {"error_model": "numpy", "boundscheck": True}
NAMING = "helpers without symbols"
"""Part of every digest, so that code that was kept in another form is not found any more."""


class RuleAddress:
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


def can_compile() -> bool:
    """Whether numba is allowed to compile (see NUMBA_DISABLE_JIT)."""
    return not config.DISABLE_JIT


def compiled(function: Callable[..., Any], signature: Any) -> Any:
    """Machine code of `function` for one signature, from the cache where possible.

    A user's function may change while the process runs (a global, a helper): its content is read each time.
    """
    function = _plain(function)
    if not isinstance(function, python_types.FunctionType):
        raise TypeError(f"not a plain function: {type(function).__name__}")
    if is_ours(function):
        return _compiled_once(function, signature)
    try:
        content = code_digest(function, guarded, CHECKED, NAMING)
    except UnknownContentError:
        return _machine_code(function, signature, "")
    return _compiled_content(_ByContent(function, content), signature)


@functools.cache
def _compiled_once(function: Callable[..., Any], signature: Any) -> Any:
    return _machine_code(function, signature, code_digest(function, PLAIN, NAMING))


class _ByContent:
    """A function that equals every other of the same content."""

    def __init__(self, function: Any, content: str) -> None:
        self.function, self.content = function, content

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ByContent) and self.content == other.content

    def __hash__(self) -> int:
        return hash(self.content)


@functools.lru_cache(maxsize=256)
def _compiled_content(what: _ByContent, signature: Any) -> Any:
    return _machine_code(what.function, signature, what.content)


def _machine_code(function: Any, signature: Any, content: str) -> Any:
    """Compile, or load what was compiled from the same content; without a content it is not kept."""
    made = _Compiler(checked=not is_ours(function)).copy(function)
    if not is_ours(function):
        made = guarded(helper_code(made, CHECKED, inlined=False))
        made.__qualname__ = f"{made.__qualname__}.{content}"
    dispatcher = njit(**PLAIN, nogil=True, pipeline_class=WholeCompiler)(made)
    if not content:
        dispatcher.compile(signature)
        hand_environments(dispatcher.get_compile_result(signature))
        return dispatcher
    cache = dispatcher._cache = CodeCache(content)  # noqa: SLF001 - numba's own would not see what helpers refer to
    with cache.alone():
        dispatcher.compile(signature)
    hand_environments(dispatcher.get_compile_result(signature))
    return dispatcher


def guarded(rule: Any) -> Callable[..., None]:
    """The rule on a copy of the jobs, so that it cannot change them, and with a mark where it raised.

    A kernel calls rules by address, where an exception would be printed and forgotten.
    """

    def guard(jobs: Any, cores: float, table: Any, out: Any) -> None:
        try:
            rule(jobs.copy(), cores, table, out)
        except Exception:  # noqa: BLE001 - whatever it is, Python raises it again (see `machines`)
            out[:] = RAISED

    return guard


def on_copies(rule: Callable[..., None]) -> Callable[..., None]:
    """The same for a rule that runs interpreted, whose exceptions pass by themselves; ours need no copy."""
    if is_ours(rule):
        return rule

    def interpreted(jobs: Any, cores: float, table: Any, out: Any) -> None:
        rule(jobs.copy(), cores, table, out)

    return interpreted


class _Compiler:
    """Copies of functions that see compiled versions of the plain functions they call."""

    def __init__(self, *, checked: bool) -> None:
        self.checked = checked
        self.made: dict[Any, Any] = {}

    def copy(self, function: Any) -> Any:
        """The function over compiled helpers and under its symbol; itself where it needs neither."""
        called = {name: self.helper(helper) for name, helper in helpers(function).items()}
        symbol = _symbol(function)
        if not called and symbol == function.__qualname__:
            return function
        scope = {**function.__globals__, **called}
        closure = tuple(
            python_types.CellType(called[name]) if name in called else cell
            for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        )
        copy = python_types.FunctionType(
            function.__code__, scope, function.__name__, function.__defaults__, closure
        )
        copy.__qualname__, copy.__module__ = symbol, function.__module__
        copy.__kwdefaults__ = function.__kwdefaults__
        return copy

    def helper(self, function: Any) -> Any:
        """A compiled helper; those without checks are shared by all that call them."""
        if not self.checked:
            return _helper(function)
        if function not in self.made:
            self.made[function] = helper_code(self.copy(function), CHECKED, inlined=_is_inlined(function))
        return self.made[function]


@functools.cache
def _helper(function: Callable[..., Any]) -> Any:
    return helper_code(_Compiler(checked=False).copy(function), PLAIN, inlined=_is_inlined(function))


def _symbol(function: Any) -> str:
    """A name that no function of other content has; that of a module's function of ours is one already."""
    if is_ours(function) and function.__closure__ is None:
        return str(function.__qualname__)
    try:
        return f"{function.__qualname__}.{code_digest(function)}"
    except UnknownContentError:  # it is not kept, so numba's number is enough
        return str(function.__qualname__)


def _is_inlined(function: Any) -> bool:
    return bool(getattr(function, "inlined", False))


def _plain(function: Any) -> Any:
    """The Python function behind one that its author has already compiled."""
    return function.py_func if isinstance(function, CPUDispatcher) else function


def helpers(function: Any) -> dict[str, python_types.FunctionType]:
    """The plain functions that a function may call, by the names it has for them."""
    plain = {name: _plain(value) for name, value in references(function).items()}
    return {
        name: value
        for name, value in plain.items()
        if isinstance(value, python_types.FunctionType)
        and value is not function
        and not hasattr(value, "overloaded")
    }


def code_size(function: Any) -> int:
    """Bytes of Python's code in a function and all that it calls: a guess at how long it takes to compile."""
    found, waiting = {function}, [function]
    while waiting:
        new = set(helpers(waiting.pop()).values()) - found
        found |= new
        waiting += new
    return sum(len(each.__code__.co_code) for each in found)


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


def compiled_stage() -> tuple[Any, Any]:
    """`set_aside` and `legalise` of `legal_widths` as machine code, for who asks often about many jobs."""
    tuple_type: Any = types.Tuple
    aside = tuple_type((int64, float64))(F2, F1, float64, float64, F1, int64[::1], F1)
    return compiled(set_aside, aside), compiled(legalise, void(F2, int64[::1], int64, F1, float64, F1, F1))
