"""Answers as HTML: tables for notebooks, and a page that stands for itself."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MOST_ROWS = 200
"""Rows of a table at most: a page is for people."""
STYLE = """\
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; margin: 1rem 0; font-variant-numeric: tabular-nums; }
th, td { padding: .2rem .8rem; border-bottom: 1px solid #ccc; text-align: right; }
th:first-child, td:first-child { text-align: left; }
svg { max-width: 100%; height: auto; }
@media (prefers-color-scheme: dark) { body { background: #161616; color: #ddd; } svg { background: #fff; } }
"""


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table; of very many rows the first."""
    head = "".join(f"<th>{html.escape(text)}</th>" for text in headings)
    shown = rows[:MOST_ROWS]
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(text)}</td>" for text in row) + "</tr>" for row in shown
    )
    left = f"<p>… and {len(rows) - len(shown)} more</p>" if len(rows) > len(shown) else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{left}"


def document(title: str, parts: Iterable[str]) -> str:
    """A page of HTML with everything in it: no other file is needed to read it."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(title)}</title><style>\n{STYLE}</style></head>\n"
        f"<body><h1>{html.escape(title)}</h1>\n" + "\n".join(parts) + "\n</body></html>\n"
    )
