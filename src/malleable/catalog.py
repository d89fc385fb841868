"""Find speedups, distributions, policies, … by name: list a folder, import on demand.

One new thing is one new file: the module's name is the kind and it holds one public concrete class.
Other packages add kinds with an entry point in the group `malleable.<family>`; a user's own file is
named on the spot as `file.py:Name`. Options ride behind the name: `fw-cam:beta=0.8`.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import importlib.metadata
import importlib.util
import inspect
import pkgutil
import sys
from pathlib import Path
from typing import Any

from malleable import families
from malleable.errors import MalleableError, UnknownKindError, did_you_mean
from malleable.spec import Spec

FAMILIES = families.FAMILIES


def normalised(name: str) -> str:
    """Kinds are module names; people may write hyphens or capitals."""
    return name.strip().replace("-", "_").lower()


@functools.cache
def kinds(family: str) -> dict[str, str]:
    """Names of all kinds of a family, each with the module (or entry point) that holds it."""
    package = importlib.import_module(f"malleable.{family}")
    found = {
        info.name: f"{package.__name__}.{info.name}"
        for info in pkgutil.iter_modules(package.__path__)
        if not info.name.startswith("_")
    }
    for point in importlib.metadata.entry_points(group=f"malleable.{family}"):
        found.setdefault(normalised(point.name), point.value)
    return found


@functools.cache
def find(family: str, name: str) -> type[Spec]:
    """The class of the kind called `name`; an unknown name is an error with a suggestion."""
    module = kinds(family).get(normalised(name))
    if module is None:
        known = [display(family, kind) for kind in kinds(family)]
        raise UnknownKindError(f"no {singular(family)} is called {name!r}", did_you_mean(name, known))
    module, _, attribute = module.partition(":")
    loaded = importlib.import_module(module)
    return getattr(loaded, attribute) if attribute else _only_class(loaded)


def _only_class(module: Any) -> type[Spec]:
    """The one public concrete Spec that a module defines."""
    (found,) = (
        value
        for name, value in vars(module).items()
        if not name.startswith("_")
        and inspect.isclass(value)
        and issubclass(value, Spec)
        and value.__module__ == module.__name__
        and not inspect.isabstract(value)
    )
    return found


def display(family: str, kind: str) -> str:
    """Policies are written with hyphens on the command line, parameters of files with underscores."""
    return kind.replace("_", "-") if family == "policies" else kind


def singular(family: str) -> str:
    """`policies` -> `policy`, `speedups` -> `speedup`."""
    return {"policies": "policy", "arrivals": "arrival process"}.get(family, family.removesuffix("s"))


def load_object(reference: str) -> Any:
    """Import `path/to/file.py:Name`."""
    path, _, name = reference.rpartition(":")
    file = Path(path)
    if not name or file.suffix != ".py":
        raise UnknownKindError(f"{reference!r} is not of the form file.py:Name")
    if not file.is_file():
        raise UnknownKindError(f"there is no file {path!r}", "give the path of a Python file")
    # Dataclasses look their own module up, so it has to be known; the folder keeps json.py apart from json.
    spec = importlib.util.spec_from_file_location(f"{file.resolve().parent}.{file.stem}", file)
    assert spec is not None  # noqa: S101 - a .py suffix always has a loader
    assert spec.loader is not None  # noqa: S101 - ditto
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[spec.name]
        raise UnknownKindError(
            f"cannot import {path}: {type(error).__name__}: {error}", "mend the file, then try again"
        ) from error
    if not hasattr(module, name):
        public = [key for key in vars(module) if not key.startswith("_")]
        raise UnknownKindError(f"{path} defines no {name!r}", did_you_mean(name, public))
    return getattr(module, name)


def function_policy(function: Any) -> Any:
    """A policy made of a bare Python function (see `malleable.policies._function`)."""
    return importlib.import_module("malleable.policies._function").Function(function)


def parse_options(text: str) -> dict[str, Any]:
    """Read `beta=0.8,shared=true` into numbers, booleans and strings."""
    options: dict[str, Any] = {}
    for item in filter(None, text.split(",")):
        key, equals, value = item.partition("=")
        if not equals or not key.strip():
            raise UnknownKindError(
                f"cannot read the option {item!r}", "write options as name:key=value,key=value"
            )
        options[key.strip().replace("-", "_")] = _literal(value.strip())
    return options


def _literal(text: str) -> Any:
    if text.lower() in {"true", "false"}:
        return text.lower() == "true"
    for convert in (int, float):
        try:
            return convert(text)
        except ValueError:
            continue
    parts = [_literal(part) for part in text.split("/")] if "/" in text else []
    # Widths such as 4/2/8 are a list; a name such as c/x is not.
    return tuple(parts) if parts and not any(isinstance(part, str) for part in parts) else text


def build(family: str, text: str) -> Any:
    """Build from a name with options: `wham`, `fw-cam:beta=0.8`, `my_file.py:Mine:alpha=1`."""
    head, *rest = text.split(":")
    reference = ""
    if head.endswith(".py") and rest:
        reference = f"{head}:{rest.pop(0)}"
    if len(rest) > 1:
        raise UnknownKindError(f"cannot read {text!r}", "write options as name:key=value,key=value")
    options = parse_options(rest[0]) if rest else {}
    found = load_object(reference) if reference else find(family, head)
    if not (inspect.isclass(found) and issubclass(found, Spec)):
        return found
    if inspect.isabstract(found) or not dataclasses.is_dataclass(found):
        raise UnknownKindError(
            f"{reference or head} is not a complete dataclass",
            "write @dataclass(frozen=True) above the class",
        )
    try:
        return found.from_parameters(options)
    except MalleableError as error:
        raise error.within(reference or head) from None
