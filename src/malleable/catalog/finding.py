"""Find speedups, distributions, policies, … by name: list a folder, import on demand.

One new thing is one new file: the module's name is the kind and it holds one public concrete class.
Other packages add kinds with an entry point in the group `malleable.<family>`; a user's own file is
named on the spot as `file.py:Name`. Options ride behind the name: `fw-cam:beta=0.8`.

Kinds are imported by names that stand nowhere in the code, and this is the only place in the library where
that is so for them.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import importlib.metadata
import inspect
import pkgutil
from pathlib import Path
from typing import Any

from malleable.catalog.options import parse_options
from malleable.catalog.spec import Spec
from malleable.catalog.user_files import defined, load_module, load_object
from malleable.errors import MalleableError, UnknownKindError, did_you_mean

PACKAGE = Path(__file__).parents[1]


def normalised(name: str) -> str:
    """Kinds are module names; people may write hyphens or capitals."""
    return name.strip().replace("-", "_").lower()


@functools.cache
def kinds(family: str) -> dict[str, str]:
    """Names of all kinds of a family, each with the module (or entry point) that holds it."""
    found = {
        info.name: f"{PACKAGE.name}.{family}.{info.name}"
        for info in pkgutil.iter_modules([str(PACKAGE / family)])
        if not (info.name.startswith("_") or info.ispkg)
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
    return getattr(loaded, attribute) if attribute else _only_class(loaded, module)


def _only_class(module: Any, where: str) -> type[Spec]:
    """The one public concrete Spec that a module defines."""
    found = {
        name: value
        for name, value in vars(module).items()
        if not name.startswith("_")
        and inspect.isclass(value)
        and issubclass(value, Spec)
        and value.__module__ == module.__name__
        and not inspect.isabstract(value)
    }
    if len(found) == 1:
        return next(iter(found.values()))
    if found:
        problem = f"{where} defines {len(found)} classes: {', '.join(found)}"
        raise UnknownKindError(problem, f"say which one: {where}:{next(iter(found))}")
    names = defined(module)
    hint = f"name what to take from it: {where}:{names[0]}" if names else "define a policy there"
    raise UnknownKindError(f"{where} defines no class of a kind of ours", hint)


def display(family: str, kind: str) -> str:
    """Policies are written with hyphens on the command line, parameters of files with underscores."""
    return kind.replace("_", "-") if family == "policies" else kind


def singular(family: str) -> str:
    """`policies` -> `policy`, `speedups` -> `speedup`."""
    if family == "arrivals":
        return "arrival process"
    return family.removesuffix("ies") + "y" if family.endswith("ies") else family.removesuffix("s")


def _named(family: str, reference: str) -> Any:
    """What goes by a name: a kind, something of a user's file, or the one class of such a file."""
    if not reference.partition(":")[0].endswith(".py"):
        return find(family, reference)
    return load_object(reference) if ":" in reference else _only_class(load_module(reference), reference)


def build(family: str, text: str) -> Any:
    """Build from a name with options: `wham`, `fw-cam:beta=0.8`, `my_file.py:Mine:alpha=1`.

    A file that defines one class only needs no name behind it: `my_file.py`, `my_file.py:alpha=1`.
    """
    head, *rest = text.split(":")
    reference = ""
    if head.endswith(".py") and rest and "=" not in rest[0]:
        reference = f"{head}:{rest.pop(0)}".removesuffix(":")
    if len(rest) > 1:
        raise UnknownKindError(f"cannot read {text!r}", "write options as name:key=value,key=value")
    options = parse_options(rest[0]) if rest else {}
    found = _named(family, reference or head)
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
