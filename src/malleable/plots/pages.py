"""What pages with figures share: how values are written, how pictures stand in them, their style and script.

A page holds everything that it shows, plotly.js too, and its own policy forbids it to fetch anything.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from malleable import plots

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from malleable.plots.figures import Figure


def render(
    package: str, template: str, figures: Sequence[Figure], pictures: Mapping[str, bytes], **values: Any
) -> str:
    """A page from a template of a package; `pictures` are its figures as SVG, for paper, by name."""
    known = Environment(
        loader=ChoiceLoader([PackageLoader(package, "."), PackageLoader("malleable.plots", ".")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    known.filters |= {"cell": cell, "numeric": numeric}
    return known.get_template(template).render(
        drawings={figure.name: plots.interactive(figure) for figure in figures},
        pictures={figure.name: inlined(pictures[figure.name]) for figure in figures},
        # The library is ours to trust, and must stand in the page as it is.
        plotly=Markup(plots.plotly_script()),  # noqa: S704
        **values,
    )


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


def inlined(picture: bytes) -> str:
    """A picture as an address that holds it: two thirds of what base64 would take."""
    text = re.sub(r"\s+", " ", re.sub(r"<!--.*?-->", "", picture.decode(), flags=re.DOTALL))
    return f"data:image/svg+xml,{quote(text, safe=' /:;,.=()-')}"
