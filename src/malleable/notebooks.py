"""Tables for notebooks: what `_repr_html_` of results, bounds and plans returns.

Plain HTML with a few inline styles, so that a notebook shows it on a light and on a dark page alike.
"""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

CELL = "padding:0.15em 0.8em;text-align:{};border:none;white-space:nowrap"
HEAD = "font-weight:600"
TABLE = "<table style='border-collapse:collapse;margin:0.4em 0'>"


def table(
    title: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    facts: Iterable[tuple[str, Any]] = (),
    notes: Iterable[str] = (),
) -> str:
    """A table with a title above it; `facts` are lines of a name and a value below, `notes` sentences."""
    head = "".join(_cell("th", name, i, HEAD) for i, name in enumerate(columns))
    body = "".join(f"<tr>{''.join(_cell('td', v, i) for i, v in enumerate(row))}</tr>" for row in rows)
    more = "".join(f"<tr>{_cell('td', name, 0)}{_cell('td', value, 1)}</tr>" for name, value in facts)
    said = "".join(f"<p style='margin:0.3em 0.8em'>Note: {html.escape(note)}</p>" for note in notes)
    caption = f"<caption style='text-align:left;padding:0.3em 0.8em;{HEAD}'>{html.escape(title)}</caption>"
    shown = f"{TABLE}{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    below = f"{TABLE}<tbody>{more}</tbody></table>" if more else ""
    return f"<div style='overflow-x:auto'>{shown}{below}{said}</div>"


def _cell(tag: str, value: Any, column: int, style: str = "") -> str:
    """A cell: names on the left, numbers on the right."""
    side = "right" if column else "left"
    return f"<{tag} style='{CELL.format(side)};{style}'>{_text(value)}</{tag}>"


def _text(value: Any) -> str:
    if value is None:
        return "–"
    return html.escape(f"{value:.5g}" if isinstance(value, float) else str(value))
