"""The command line parses, calls one function of `malleable.api`, and prints: it reaches no deeper."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import malleable.cli

FILES = sorted(Path(malleable.cli.__file__).parent.glob("*.py"))
ALLOWED = {
    "malleable.api",  # the verbs
    "malleable.errors",  # what goes wrong
    "malleable.results",  # what comes back, and whether it can be saved
    "malleable.catalog.families",  # names for --help, without importing anything
    "malleable.catalog.split_policies",  # what --policies means
    "malleable.live.api",  # the verbs of the broker, which load no NumPy
    "malleable.progress",  # the bar, which Python shows as well
    "malleable.numerics.json_numbers",  # numbers as JSON can write them
    "malleable.__version__",
    "malleable.cli",
}
"""What the command line may import at run time. Types, for annotations, may come from anywhere."""


def imported(tree: ast.AST) -> set[str]:
    """Full names of what a file imports from malleable at run time."""
    found = set()
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "malleable":
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.partition(".")[0] == "malleable"}
        found |= imported(node)
    return found


def allowed(name: str) -> bool:
    return any(name == one or name.startswith(f"{one}.") for one in ALLOWED)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_command_line_imports_the_facade_only(file):
    """No module of the command line imports more of the library than the facade, errors and results."""
    names = imported(ast.parse(file.read_text(encoding="utf-8")))
    assert not {name for name in names if not allowed(name)}


def test_forbidden_imports_are_seen():
    """The check can fail: an import inside a function counts, one for annotations does not."""
    tree = ast.parse(
        "if TYPE_CHECKING:\n    from malleable.model import Workload\n"
        "def f():\n    from malleable.theory import relaxed\n"
    )
    assert imported(tree) == {"malleable.theory.relaxed"}
    assert not allowed("malleable.theory.relaxed")
    assert not allowed("malleable.catalog.find")
