"""How rules and kernels are compiled with their helpers: functions that only compiled functions call.

numba makes machine code of every function that it compiles, optimises it together with all that it calls, and
compiles it again for every constant that it is called with. Helpers call helpers, so most of the time would
go into machine code that never runs: what runs is the rule or the kernel at the top, into which all of them
are linked. So a helper stays what it is before LLVM optimises it (`HelperLibrary`), and what stands at the
top is optimised once, as a whole, in which helpers are its own affair (`WholeLibrary`): those that are called
in one place vanish into it, and none is a symbol that other code could meet. A number that is written where a
helper is called is a number like any other.
"""

# numba's own classes are not typed.
# mypy: allow-untyped-calls

from __future__ import annotations

from typing import Any

from llvmlite.binding import Linkage
from numba import njit, types
from numba.core.codegen import JITCodeLibrary, RuntimeLinker
from numba.core.compiler import Compiler
from numba.core.environment import lookup_environment

unliteral: Any = types.unliteral
ENVIRONMENT = "_ZN08NumbaEnv"
"""How symbols begin that hold the address of a function's environment, as numba names them."""
CIRCULAR = RuntimeLinker.PREFIX


def helper_code(function: Any, options: dict[str, Any], *, inlined: bool) -> Any:
    """A dispatcher that other compiled functions can call."""
    if inlined:
        options = {**options, "inline": "always"}
    # Nor is a helper called from Python or by address; wrappers for that would take time to compile.
    options = {**options, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    dispatcher: Any = njit(**options, pipeline_class=_HelperCompiler)(function)
    plain = dispatcher._compiler.fold_argument_types  # noqa: SLF001 - numba has no option for it

    def fold(args: Any, kws: Any) -> tuple[Any, Any]:
        signature, found = plain(args, kws)
        return signature, tuple(unliteral(kind) for kind in found)

    dispatcher._compiler.fold_argument_types = fold  # noqa: SLF001 - ditto
    return dispatcher


def hand_environments(made: Any) -> None:
    """Tell code where the environments of its helpers are: printing needs them, and raising."""
    for variable in made.library._final_module.global_variables:  # noqa: SLF001 - as numba's own cache does
        environment = lookup_environment(variable.name) if variable.name.startswith(ENVIRONMENT) else None
        if environment is not None:
            made.library.codegen.set_env(variable.name, environment)


class HelperLibrary(JITCodeLibrary):
    """The code of a helper, to be linked into what calls it: not optimised, and not loaded."""

    @property
    def codegen(self) -> Any:
        return _NotLoaded()

    def get_pointer_to_function(self, name: str) -> int:  # noqa: ARG002 - it has no address
        self._ensure_finalized()
        return 0

    def _optimize_final_module(self) -> None:
        """Nothing: what calls it is optimised with it."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True


class WholeLibrary(JITCodeLibrary):
    """The code of a rule or a kernel with all its helpers, which nothing outside calls."""

    def _optimize_final_module(self) -> None:
        module = self._final_module
        # Functions that call each other in a circle find themselves by their symbols, at run time.
        if not any(one.name.startswith(CIRCULAR) for one in module.global_variables):
            for function in module.functions:
                if not function.is_declaration and function.linkage == Linkage.linkonce_odr:
                    function.linkage = "internal"
        super()._optimize_final_module()


class _NotLoaded:
    """Where numba would write the address of an environment into code that was loaded."""

    def set_env(self, name: str, environment: Any) -> None:
        """Nothing: see `hand_environments`."""


class WholeCompiler(Compiler):
    """numba's compiler, for what stands at the top."""

    def __init__(self, typing: Any, target: Any, library: Any, *settings: Any) -> None:
        super().__init__(typing, target, library or WholeLibrary(target.codegen(), "whole"), *settings)
        self.state.library.enable_object_caching()


class _HelperCompiler(Compiler):
    """numba's compiler, which leaves its code in a `HelperLibrary`."""

    def __init__(self, typing: Any, target: Any, library: Any, *settings: Any) -> None:
        super().__init__(typing, target, library or HelperLibrary(target.codegen(), "helper"), *settings)
