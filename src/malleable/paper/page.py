"""One page with all findings: self-contained, opened from disk, to be read on a screen, a phone or paper.

Everything that the page shows is in it, plotly.js too, and its own policy forbids it to fetch anything; only
the links to download a figure or a table point to the files beside it.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from malleable import plots
from malleable.paper.write import count_verdicts

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Mapping, Sequence

    from malleable.paper.contracts import Table
    from malleable.paper.write import Chapter

TEMPLATE = "page.html.jinja"
BADGES = {"holds": "✓", "fails": "✗", "undecided": "?"}


def page(chapters: Sequence[Chapter], manifest: Mapping[str, Any], pictures: Mapping[str, bytes]) -> str:
    """The page; `pictures` are the figures as SVG, by name, for paper and for browsers without scripts."""
    known = Environment(
        loader=PackageLoader("malleable.paper", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    known.filters |= {"cell": cell, "numeric": numeric, "rows": rows}
    claims = (
        ("Claims of the paper", count_verdicts(chapters, of_the_paper=True)),
        ("Claims of this project, beyond the paper", count_verdicts(chapters, of_the_paper=False)),
    )
    figures = {figure.name: figure for chapter in chapters for figure in chapter.findings.figures}
    return known.get_template(TEMPLATE).render(
        chapters=chapters,
        manifest=manifest,
        counts=[(title, _badges(counts)) for title, counts in claims if counts.total()],
        badges=BADGES,
        suffixes=(*plots.SUFFIXES, "csv"),
        drawings={name: plots.interactive(figure) for name, figure in figures.items()},
        pictures={name: _inlined(pictures[name]) for name in figures},
        # The library is ours to trust, and must stand in the page as it is.
        plotly=Markup(plots.plotly_script()),  # noqa: S704
    )


def _badges(counts: Counter[str]) -> list[tuple[str, str, int]]:
    return [(word, sign, counts[word]) for word, sign in BADGES.items()]


def cell(value: Any) -> str:
    """A value in a table for people: six significant digits, a dash for none."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return "∞" if value == math.inf else "−∞" if value == -math.inf else f"{value:.6g}"
    return str(value)


def numeric(value: Any) -> bool:
    """Whether a value is a number, and stands on the right."""
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def rows(table: Table) -> list[tuple[Any, ...]]:
    """The rows of a table."""
    return list(zip(*table.columns.values(), strict=True))


def _inlined(picture: bytes) -> str:
    """A picture as an address that holds it: two thirds of what base64 would take."""
    text = re.sub(r"\s+", " ", re.sub(r"<!--.*?-->", "", picture.decode(), flags=re.DOTALL))
    return f"data:image/svg+xml,{quote(text, safe=' /:;,.=()-')}"
