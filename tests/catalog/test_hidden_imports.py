"""Imports by a string are invisible to the linter of layers: there are few, and each has its reason."""

from __future__ import annotations

import ast
from pathlib import Path

import malleable

ROOT = Path(malleable.__file__).parent
HIDDEN = {
    "__init__.py",  # public names on first use, checked in tests/test_public_names.py
    "catalog/finding.py",  # kinds, found by listing a folder
    "catalog/user_files.py",  # files of users
    "cli/_verbs.py",  # the verb that is asked for, and no other
    "live/workers/contract.py",  # engines, found by listing a folder
    "paper/reproduce.py",  # experiments, found by listing a folder
}


def by_string(tree: ast.AST) -> bool:
    """Whether a file calls `import_module` or `__import__`."""
    names = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    names |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return bool(names & {"import_module", "__import__"})


def test_imports_by_string():
    """Modules are imported by a string only where their names stand nowhere in the code."""
    files = {file.relative_to(ROOT).as_posix(): file for file in sorted(ROOT.rglob("*.py"))}
    found = {name for name, file in files.items() if by_string(ast.parse(file.read_text(encoding="utf-8")))}
    assert found == HIDDEN
