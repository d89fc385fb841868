"""Which files of this package a module depends on: its own, and those of all it imports, and so on.

What is kept on disk (machine code, values of a reproduction) is true as long as these files are unchanged.
"""

from __future__ import annotations

import ast
import functools
import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

PACKAGE = Path(__file__).parents[1]


def files(modules: Iterable[str]) -> list[Path]:
    """The files behind the modules; those of other packages are left out."""
    found: dict[str, Path] = {}
    waiting = list(modules)
    while waiting:
        name = waiting.pop()
        path = None if name in found else source(name)
        if path is not None:
            found[name] = path
            waiting += imported(path)
    return [found[name] for name in sorted(found)]


@functools.cache
def imported(path: Path) -> tuple[str, ...]:
    """What a file imports anywhere in it: modules, and names of modules that may be modules themselves."""
    found: list[str] = []
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            found += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return tuple(dict.fromkeys(found))


def source(module: str) -> Path | None:
    """The file of a module of this package, if there is one of that name.

    The package's own `__init__` does not count: it is the front door and leads everywhere.
    """
    parts = module.split(".")
    if parts[0] != PACKAGE.name or len(parts) == 1:
        return None
    place = PACKAGE.joinpath(*parts[1:])
    candidates = (place / "__init__.py", place.with_suffix(".py"))
    return next((path for path in candidates if path.is_file()), None)


def members(package: str) -> list[str]:
    """The modules of one of our packages, for what is found by name and not imported."""
    place = PACKAGE.joinpath(*package.split(".")[1:])
    return [f"{package}.{path.stem}" for path in sorted(place.glob("*.py"))]


def digest(modules: Iterable[str], *more: str) -> str:
    """A short digest of all files behind the modules, and of whatever else counts."""
    made = hashlib.sha256("\n".join(more).encode())
    for path in files(modules):
        made.update(path.read_bytes())
    return made.hexdigest()[:16]
