"""Words of pages and messages: phrases that read as translated stay out (docs/writing.md)."""

from __future__ import annotations

import ast
import re

import pytest
from test_docs import DOCS, PAGES, ROOT, name_of

OUT = re.compile(
    r"\b(?:[oO]f (?:ours|theirs)|[dD]earer|[sS]ays? all|[nN]obody|[sS]omebody|(?:are|is) its due"
    r"|[wW]hat there is is used|(?:pipe|terminal|price|difference) is none)\b"
)
KEPT = {DOCS / "writing.md"}
"""The page that names them."""
VERBS = sorted((ROOT / "src" / "malleable").rglob("*.py"))


@pytest.mark.parametrize("page", [page for page in PAGES if page not in KEPT], ids=name_of)
def test_pages(page):
    """No page has a phrase that the house style leaves out."""
    found = [match[0] for match in OUT.finditer(page.read_text(encoding="utf-8"))]
    assert not found, found


def texts(path):
    """The texts of a module that are not docstrings: what people are shown."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings
    ]


def test_messages():
    """No message or help text of the program has one either."""
    found = {
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in VERBS
        for text in texts(path)
        for match in OUT.finditer(text)
    }
    assert not found, "\n".join(sorted(found))


def test_the_pattern_finds_them():
    """The phrases of the page on writing are found, so the tests above can fail."""
    text = (DOCS / "writing.md").read_text(encoding="utf-8")
    assert {match[0].lower() for match in OUT.finditer(text)} >= {
        "of ours",
        "dearer",
        "say all",
        "pipe is none",
    }
