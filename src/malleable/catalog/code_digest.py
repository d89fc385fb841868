"""A digest of everything that a function is compiled from.

Machine code holds the values that the function saw when it was compiled: its constants, its defaults, what it
closes over, the globals it names (attributes of modules too), and the same for every function it calls. All
of that is in the digest, wherever it was defined, so code that was kept is used only where it would be made
again. Line numbers and file names are not: moving a function changes nothing.
"""

from __future__ import annotations

import dis
import functools
import hashlib
import pickle
import platform
import sys
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

VERSIONS = (platform.python_version(), *map(version, ("numba", "llvmlite", "numpy")))
GIVEN = frozenset({*sys.stdlib_module_names, "numpy", "numba", "llvmlite", "scipy"}) - {"__main__"}
"""Packages whose functions are what their names say: they change with a version only."""
PLAIN = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis))


class UnknownContentError(Exception):
    """A function refers to something whose content cannot be told, so its code must not be kept."""


def code_digest(*parts: Any) -> str:
    """A digest of functions, with all they are compiled from, and of any other plain values."""
    made = hashlib.sha256()
    seen: dict[int, int] = {}
    for piece in _pieces((VERSIONS, parts), seen):
        made.update(len(piece).to_bytes(8, "little"))
        made.update(piece)
    return made.hexdigest()


def _pieces(value: Any, seen: dict[int, int]) -> Iterator[bytes]:
    """The content of a value, piece by piece."""
    yield type(value).__name__.encode()
    # What numba has compiled is what it was compiled from.
    value = getattr(value, "py_func", value)
    if isinstance(value, FunctionType):
        yield from _function(value, seen)
    elif isinstance(value, PLAIN):
        yield value.hex().encode() if isinstance(value, float) else repr(value).encode()
    elif isinstance(value, np.ndarray | np.generic) and not value.dtype.hasobject:
        yield repr((value.dtype, value.shape)).encode()
        yield value.tobytes()
    elif isinstance(value, tuple | list):
        # Code names the fields of a named tuple, so which is which counts.
        yield repr(getattr(value, "_fields", ())).encode()
        for item in value:
            yield from _pieces(item, seen)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _pieces((key, item), seen)
    elif isinstance(value, type) and not _given(value):
        raise UnknownContentError(f"the class {value.__qualname__}")
    else:
        yield _pickled(value)


def _function(function: FunctionType, seen: dict[int, int]) -> Iterator[bytes]:
    """A function: its code, and what its code refers to; where it occurs again, only which one it is."""
    if id(function) in seen:
        yield repr(seen[id(function)]).encode()
        return
    seen[id(function)] = len(seen)
    if _given(function):
        yield f"{function.__module__}.{function.__qualname__}".encode()
        return
    if hasattr(function, "overloaded"):
        # Its machine code is written by hand beside it.
        yield Path(function.__code__.co_filename).read_bytes()
    yield _code(function.__code__)
    yield from _pieces((function.__defaults__, function.__kwdefaults__, vars(function)), seen)
    for name, value in sorted(references(function).items(), key=lambda pair: pair[0]):
        yield name.encode()
        if isinstance(value, ModuleType):
            yield from _attributes(value, _words(function.__code__), seen)
        else:
            yield from _pieces(value, seen)


def _attributes(module: ModuleType, words: frozenset[str], seen: dict[int, int]) -> Iterator[bytes]:
    """What a function may look up in a module: the attributes that its code names."""
    yield module.__name__.encode()
    if module.__name__.partition(".")[0] in GIVEN:
        return
    for word in sorted(words & vars(module).keys()):
        value = vars(module)[word]
        yield word.encode()
        yield from _attributes(value, words, seen) if isinstance(value, ModuleType) else _pieces(value, seen)


def _given(value: Any) -> bool:
    return str(value.__module__).partition(".")[0] in GIVEN


def _pickled(value: Any) -> bytes:
    """Anything else: builtins and NumPy's functions by name, members of an enumeration with their value."""
    try:
        return pickle.dumps(value)
    except Exception as error:
        raise UnknownContentError(repr(value)) from error


@functools.cache
def _code(code: CodeType) -> bytes:
    """A digest of code objects alone, those of nested functions included."""
    made = hashlib.sha256(code.co_code)
    made.update(code.co_exceptiontable)
    shape = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
    made.update(repr((shape, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)).encode())
    for constant in code.co_consts:
        inner = _code(constant) if isinstance(constant, CodeType) else repr(constant).encode()
        made.update(type(constant).__name__.encode() + inner)
    return made.digest()


@functools.cache
def _words(code: CodeType) -> frozenset[str]:
    """All names in the code, those of attributes among them."""
    inner = (_words(c) for c in code.co_consts if isinstance(c, CodeType))
    return frozenset(code.co_names).union(*inner)


@functools.cache
def _globals(code: CodeType) -> frozenset[str]:
    """The global names that the code reads, nested functions included."""
    inner = (_globals(c) for c in code.co_consts if isinstance(c, CodeType))
    here = (i.argval for i in dis.get_instructions(code) if i.opname in {"LOAD_GLOBAL", "LOAD_NAME"})
    return frozenset(here).union(*inner)


def references(function: FunctionType) -> dict[str, Any]:
    """What a function refers to, by the names it has for it: globals, and what it closes over."""
    scope = function.__globals__
    found = {name: scope[name] for name in _globals(function.__code__) if name in scope}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # not filled yet: a function that names itself before it is bound
            continue
    return found
