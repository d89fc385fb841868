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
import inspect
import pkgutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from malleable.catalog.spec import Spec
from malleable.catalog.user_files import defined, load_module, load_object
from malleable.errors import MalleableError, ParameterError, UnknownKindError, did_you_mean


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


def split_policies(text: str) -> list[str]:
    """Policies at the commas; `key=value` behind a comma still belongs to the policy before it."""
    found: list[str] = []
    for part in filter(None, map(str.strip, text.split(","))):
        if found and "=" in part and ":" not in part.partition("=")[0]:
            found[-1] += f",{part}"
        else:
            found.append(part)
    return found


PACKAGE = Path(__file__).parents[1]
SHORT = 40
"""Letters of a value that a message shows."""


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
    from importlib.metadata import entry_points  # noqa: PLC0415 - it takes longer than all else here

    for point in entry_points(group=f"malleable.{family}"):
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
    made: type[Spec] = getattr(loaded, attribute) if attribute else _only_class(loaded, module)
    return made


def _only_class(module: Any, where: str, contract: type[Spec] = Spec) -> type[Spec]:
    """The one public class of a module that can be had: a concrete one that keeps the contract."""
    found: dict[str, type[Spec]] = {
        name: one for name, one in _own_classes(module).items() if issubclass(one, contract)
    }
    whole = {name: one for name, one in found.items() if not one.lacks()}
    if len(whole) == 1:
        return next(iter(whole.values()))
    if whole:
        ready = min(whole, key=lambda name: _undecorated(whole[name]))
        problem = f"{where} defines {len(whole)} classes: {', '.join(whole)}"
        raise UnknownKindError(problem, f"say which one: {where}:{ready}")
    for error in filter(None, (incomplete(one, where) for one in found.values())):
        raise error
    raise UnknownKindError(f"{where} defines no {_word(contract)}", _offer(module, where, contract))


def _own_classes(module: Any) -> dict[str, Any]:
    """The public classes that a module defines itself."""
    return {
        name: value
        for name, value in vars(module).items()
        if not name.startswith("_") and inspect.isclass(value) and value.__module__ == module.__name__
    }


def _word(contract: type[Spec]) -> str:
    """`Policy` -> `policy`."""
    return "kind" if contract is Spec else contract.__name__.lower()


def _offer(module: Any, where: str, contract: type[Spec]) -> str:
    """A hint: what of a module will do, or what to write there."""
    own = _own_classes(module)
    meant = {name: one for name, one in own.items() if issubclass(one, contract)}
    # Where there are classes, functions are their parts.
    fit = [name for name, one in meant.items() if incomplete(one) is None]
    fit = fit or [name for name in defined(module) if not meant and _fits(getattr(module, name), contract)]
    if fit:
        named = " or ".join(f"{where}:{name}" for name in fit)
        return f"{'name it' if len(fit) == 1 else 'say which one'}: {named}"
    for error in filter(None, map(incomplete, meant.values())):
        return error.problem
    for name in own:
        return f"let class {name} inherit from {contract.__name__}"
    return contract.to_write


def _fits(value: Any, contract: type[Spec]) -> bool:
    """Whether a function or a value of a user's file can be taken for what is asked."""
    if inspect.isclass(value) or contract is Spec:
        return isinstance(value, Spec)
    try:
        contract.of(value)  # type: ignore[attr-defined]
    except MalleableError:
        return False
    return True


def incomplete(one: type[Spec], where: str = "") -> UnknownKindError | None:
    """What has to be added to a class before there can be a value of it; None where there can be one."""
    lacks, place = one.lacks(), f"{where}: " if where else ""
    if lacks:
        problem = f"{place}class {one.__name__} is incomplete: add {' and '.join(lacks)}"
        return UnknownKindError(problem, "; ".join(lacks.values()))
    if _undecorated(one):
        problem = f"{place}class {one.__name__} is no dataclass"
        return UnknownKindError(problem, "write @dataclass(frozen=True) above it")
    return None


def _undecorated(one: type[Spec]) -> bool:
    """Whether a class is no dataclass, or has fields of its own that it did not make."""
    hints = [str(hint) for hint in inspect.get_annotations(one).values()]
    plain = "__dataclass_fields__" not in vars(one)
    return not dataclasses.is_dataclass(one) or (plain and any("ClassVar" not in hint for hint in hints))


def display(family: str, kind: str) -> str:
    """Policies are written with hyphens on the command line, parameters of files with underscores."""
    return kind.replace("_", "-") if family == "policies" else kind


def singular(family: str) -> str:
    """`policies` -> `policy`, `speedups` -> `speedup`."""
    if family == "arrivals":
        return "arrival process"
    return family.removesuffix("ies") + "y" if family.endswith("ies") else family.removesuffix("s")


def _named(family: str, reference: str, contract: type[Spec]) -> Any:
    """What goes by a name: a kind, something of a user's file, or the one class of such a file."""
    file, colon, _ = reference.partition(":")
    if not file.endswith(".py"):
        return find(family, reference)
    if not colon:
        return _only_class(load_module(file), file, contract)
    found = load_object(reference)
    if callable(found) and not inspect.isclass(found):
        return found
    if inspect.isclass(found) and not issubclass(found, contract):
        hint = f"let class {found.__name__} inherit from {contract.__name__}"
        raise UnknownKindError(f"{reference} is a class, but not a {_word(contract)}", hint)
    if not inspect.isclass(found) and not isinstance(found, contract):
        shown = repr(found) if len(repr(found)) <= SHORT else f"a {type(found).__name__}"
        problem = f"{reference} is {shown}, not a {_word(contract)}"
        raise UnknownKindError(problem, _offer(load_module(file), file, contract))
    return found


def build(family: str, text: str, contract: type[Spec] = Spec) -> Any:
    """Build from a name with options: `wham`, `fw-cam:beta=0.8`, `my_file.py:Mine:alpha=1`.

    A file that defines one class of the contract needs no name behind it: `my_file.py`, `my_file.py:alpha=1`.
    """
    head, *rest = text.split(":")
    reference = ""
    if head.endswith(".py") and rest and "=" not in rest[0]:
        reference = f"{head}:{rest.pop(0)}".removesuffix(":")
    if len(rest) > 1:
        raise UnknownKindError(f"cannot read {text!r}", "write options as name:key=value,key=value")
    options = parse_options(rest[0]) if rest else {}
    found = _named(family, reference or head, contract)
    if not (inspect.isclass(found) and issubclass(found, Spec)):
        return found
    lacking = incomplete(found, head if head.endswith(".py") else "")
    if lacking is not None:
        raise lacking
    try:
        return found.from_parameters(options)
    except MalleableError as error:
        raise error.within(reference or head) from None


def from_document(family: str, value: Any) -> Any:
    """Build a spec from a table with a `kind`; errors name the key."""
    if not isinstance(value, Mapping):
        hint = "write a table, such as { kind = ... }"
        raise ParameterError(f"must be a table with a 'kind', got {value!r:.60}", hint)
    if "kind" not in value:
        raise ParameterError("missing key 'kind'", f"known kinds: {', '.join(sorted(kinds(family)))}")
    kind = value["kind"]
    if not isinstance(kind, str):
        raise ParameterError(f"must be a string, got {kind!r:.60}", path=("kind",))
    try:
        cls = find(family, kind)
    except MalleableError as error:
        raise error.within("kind") from None
    keys = {key: item for key, item in value.items() if key != "kind"}
    if not all(isinstance(key, str) for key in keys):
        raise ParameterError(f"keys must be strings, got {list(keys)!r:.60}", did_you_mean(kind, [kind]))
    return cls.from_parameters(keys)
