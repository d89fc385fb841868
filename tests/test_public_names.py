"""The front door: every public name is found, and is what type checkers believe it to be."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest

import malleable

TREE = ast.parse(Path(malleable.__file__).read_text(encoding="utf-8"))


def for_type_checkers() -> dict[str, str]:
    """Names that the file imports for type checkers, each with its module."""
    block = next(node for node in TREE.body if isinstance(node, ast.If))
    return {
        alias.name: str(node.module).removeprefix("malleable.")
        for node in block.body
        if isinstance(node, ast.ImportFrom) and node.module != "typing"
        for alias in node.names
    }


@pytest.mark.parametrize("name", malleable.__all__)
def test_every_public_name_resolves(name):
    """A name of `malleable` is the object of that name in its home."""
    home = importlib.import_module(f"malleable.{malleable._HOMES[name]}")
    assert getattr(malleable, name) is getattr(home, name)


def test_type_checkers_see_the_same_names():
    """The lazy names and those that type checkers read agree, module by module."""
    assert for_type_checkers() == malleable._HOMES


def test_every_verb_is_a_function_of_the_facade():
    """What `malleable` offers in small letters is a verb of `api`, or reads a workload."""
    verbs = {name for name in malleable.__all__ if name.islower() and not name.endswith("_workload")}
    assert {malleable._HOMES[name] for name in verbs} == {"api"}


def test_an_unknown_name():
    with pytest.raises(AttributeError, match="no attribute 'simulat'"):
        _ = malleable.simulat
