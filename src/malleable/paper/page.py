"""One page with all findings: self-contained, opened from disk, to be read on a screen, a phone or paper.

Everything that the page shows is in it (`plots.pages`); only the links to download a figure or a table point
to the files beside it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from malleable import plots
from malleable.paper.contracts import count_verdicts
from malleable.plots import pages

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Mapping, Sequence

    from malleable.paper.contracts import Table
    from malleable.paper.write import Chapter

TEMPLATE = "page.html.jinja"
CLAIMS = {"Claims of the paper": True, "Claims of this project, beyond the paper": False}
BADGES = {"holds": "✓", "fails": "✗", "undecided": "?"}


def page(chapters: Sequence[Chapter], manifest: Mapping[str, Any], pictures: Mapping[str, bytes]) -> str:
    """The page; `pictures` are the figures as SVG, by name, for paper and for browsers without scripts."""
    claims = (
        (title, count_verdicts([one.findings for one in chapters], of_the_paper=of_the_paper))
        for title, of_the_paper in CLAIMS.items()
    )
    figures = {figure.name: figure for chapter in chapters for figure in chapter.findings.figures}
    return pages.render(
        "malleable.paper",
        TEMPLATE,
        list(figures.values()),
        pictures,
        chapters=chapters,
        manifest=manifest,
        counts=[(title, _badges(counts)) for title, counts in claims if counts.total()],
        badges=BADGES,
        suffixes=(*plots.SUFFIXES, "csv"),
        rows=rows,
    )


def _badges(counts: Counter[str]) -> list[tuple[str, str, int]]:
    return [(word, sign, counts[word]) for word, sign in BADGES.items()]


def rows(table: Table) -> list[tuple[Any, ...]]:
    """The rows of a table."""
    return list(zip(*table.columns.values(), strict=True))
