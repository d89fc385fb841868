"""Python files of users, named on the spot as `file.py:Name`, and the modules that stand beside them.

The folder of such a file is a package whose name is the folder's path, so the modules of two folders never
meet, and none of them hides a module of another package. Code in the folder imports its neighbours as if the
folder were on the path (`import helper`), whenever it runs; the standard library goes first. A process that
is handed a policy of such a file by pickle imports it under the same name.
"""

from __future__ import annotations

import builtins
import importlib
import importlib.util
import os
import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from typing import TYPE_CHECKING, Any

from malleable.catalog.spec import Spec
from malleable.errors import UnknownKindError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import CodeType, ModuleType

DOT = "\N{ONE DOT LEADER}"
"""Stands for a full stop in the name of a folder, where it would separate packages."""

"""The package itself: its code needs no checks, and its errors are not a user's."""


def load_object(reference: str) -> Any:
    """Import `path/to/file.py:Name`."""
    path, _, name = reference.rpartition(":")
    if not name or not path.endswith(".py"):
        file = (path or name).strip()
        names = ", ".join(defined(load_module(file))) if file.endswith(".py") else ""
        hint = f"{file} defines {names}" if names else "name a file and what to take from it"
        raise UnknownKindError(f"{reference!r} is not of the form file.py:Name", hint)
    module = load_module(path)
    if not hasattr(module, name):
        known = defined(module)
        hint = did_you_mean(name, known) if known else "define it there, or name another file"
        raise UnknownKindError(f"{path} defines no {name!r}", hint)
    return getattr(module, name)


def defined(module: ModuleType) -> list[str]:
    """The public functions, classes and made kinds that a module has of its own, in their order."""
    own = module.__name__
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and (isinstance(value, Spec) or (callable(value) and getattr(value, "__module__", "") == own))
    ]


def load_module(path: str) -> ModuleType:
    """Run a user's file, and what it imports from its folder if that has changed."""
    file = Path(path)
    if not file.is_file():
        beside = [other.name for other in file.parent.glob("*.py")]
        hint = did_you_mean(file.name, beside) if beside else "give the path of a Python file"
        raise UnknownKindError(f"there is no file {path!r}", hint)
    package = str(file.resolve().parent).replace(".", DOT)
    name = f"{package}.{file.stem}"
    before = _forget(package, name)
    spec = importlib.util.spec_from_file_location(name, file, loader=_Source(name, str(file)))
    assert spec is not None  # noqa: S101 - it has a loader
    assert spec.loader is not None  # noqa: S101 - ditto
    # Dataclasses look their own module up, so it has to be known.
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        sys.modules.update(before)
        raise UnknownKindError(
            f"cannot import {path}: {type(error).__name__}: {error}", "mend the file, then try again"
        ) from error
    return module


def _forget(package: str, name: str) -> dict[str, ModuleType]:
    """Forget a module, and with it all of its folder if one of them is not what its file says now."""
    importlib.invalidate_caches()
    loaded = {key: module for key, module in sys.modules.items() if key.startswith(f"{package}.")}
    stale = any(
        _Source.read.get(key) != _bytes(module) for key, module in loaded.items() if key in _Source.read
    )
    forgotten = loaded if stale else {key: module for key, module in loaded.items() if key == name}
    for key in forgotten:
        del sys.modules[key]
    return forgotten


def _bytes(module: ModuleType) -> bytes | None:
    try:
        return Path(str(module.__file__)).read_bytes()
    except OSError:
        return None


class _Source(SourceFileLoader):
    """Runs a file of a user's as it stands now: stored bytecode may be up to a second older than an edit."""

    read: dict[str, bytes] = {}  # noqa: RUF012 - one for all: what every module was made of
    """The text behind each module."""

    def get_code(self, fullname: str) -> CodeType:
        data = self.read[fullname] = self.get_data(self.path)
        return self.source_to_code(data, self.path)

    def exec_module(self, module: ModuleType) -> None:
        folder = self.name.partition(".")[0]
        vars(module)["__builtins__"] = {**vars(builtins), "__import__": _importing(folder)}
        super().exec_module(module)


def _importing(package: str) -> Callable[..., Any]:
    """The `import` of modules in a folder: neighbours come first, all else is as usual."""
    folder = Path(package.replace(DOT, "."))

    def find(
        name: str, scope: Any = None, local: Any = None, names: Sequence[str] = (), level: int = 0
    ) -> ModuleType:
        top = name.partition(".")[0]
        here = (folder / f"{top}.py").is_file() or (folder / top / "__init__.py").is_file()
        if level == 0 and here and top not in sys.stdlib_module_names and top != "malleable":
            return builtins.__import__(name, {"__package__": package}, None, names, 1)
        return builtins.__import__(name, scope, local, names, level)

    return find


class _Folders(MetaPathFinder):
    """Finds packages that are named by the path of a folder, and what is in them."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if os.sep not in fullname:
            return None
        if path is None:
            folder = fullname.replace(DOT, ".")
            found = ModuleSpec(fullname, None, is_package=True) if Path(folder).is_dir() else None
            if found is not None:
                found.submodule_search_locations = [folder]
            return found
        found = PathFinder.find_spec(fullname, path, target)
        if found is not None and isinstance(found.loader, SourceFileLoader):
            found.loader = _Source(fullname, found.loader.path)
        return found


if not any(isinstance(finder, _Folders) for finder in sys.meta_path):
    sys.meta_path.insert(0, _Folders())
