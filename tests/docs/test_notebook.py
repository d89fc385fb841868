"""The example notebooks: they run, and put out what they show."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
MAKER = importlib.util.spec_from_file_location("make_notebook", DOCS / "make_notebook.py")


@pytest.mark.parametrize("path", sorted((DOCS / "notebooks").glob("*.ipynb")), ids=lambda p: p.stem)
def test_notebook(path):
    """Every code cell of a notebook gives the output that stands below it."""
    maker = importlib.util.module_from_spec(MAKER)
    MAKER.loader.exec_module(maker)
    document = json.loads(path.read_text(encoding="utf-8"))
    kept = [cell["outputs"] for cell in maker.code_cells(document)]
    assert any(kept)
    assert maker.outputs(document) == kept
