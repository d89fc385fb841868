"""Draw figures: on paper (matplotlib: SVG, PNG, PDF) and on a page (plotly: JSON for plotly.js).

The only part of the package that imports matplotlib or plotly, and only when something is drawn: they come
with `malleable[paper]`. Both drawings are made from the same `Figure` and share colours and layout.
"""

from __future__ import annotations

import functools
import hashlib
import html
import importlib.metadata
import importlib.util
import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from malleable.errors import ExecutionError, OutputError, to_install
from malleable.planning import Explanation, Plan, page
from malleable.plots._layout import with_data
from malleable.plots.fit_figures import fit_figure
from malleable.plots.planning_figures import explanation_figure, plan_figure
from malleable.plots.result_figures import comparison_figure, result_figure
from malleable.plots.trace_figures import trace_figure
from malleable.results import Comparison, Result, files
from malleable.traces.describing import TraceSummary

if TYPE_CHECKING:
    from collections.abc import Callable

    from malleable.fitting import Fit, SizeFit
    from malleable.plots.figures import Figure

__all__ = [
    "SUFFIXES",
    "check_file",
    "check_installed",
    "comparison_figure",
    "digest",
    "draw_file",
    "draw_files",
    "draw_picture",
    "explanation_figure",
    "figure_of",
    "fit_figure",
    "interactive",
    "is_installed",
    "plan_figure",
    "plotly_script",
    "prepare",
    "result_figure",
    "trace_figure",
    "write_page",
]

NEEDED = ("fontTools", "jinja2", "matplotlib", "plotly", "threadpoolctl")
SUFFIXES = ("svg", "png", "pdf")
FIGURES: dict[type, Callable[..., Figure]] = {
    Result: result_figure,
    Comparison: comparison_figure,
    TraceSummary: trace_figure,
    Explanation: explanation_figure,
    Plan: plan_figure,
}
"""What shows each answer; fits have the other one."""


def _missing() -> list[str]:
    return [name for name in NEEDED if importlib.util.find_spec(name) is None]


def is_installed() -> bool:
    """Whether the libraries of the extra are there."""
    return not _missing()


def check_installed() -> None:
    """Raise an error that says what to install if the libraries of the extra are not there."""
    missing = _missing()
    if missing:
        problem = f"figures and their page need {' and '.join(missing)}, not installed"
        raise ExecutionError(problem, to_install("paper"))


def figure_of(found: Fit | SizeFit | Result | Comparison | TraceSummary | Explanation | Plan) -> Figure:
    """The figure of an answer, whichever it is."""
    draw = FIGURES.get(type(found), fit_figure)
    return draw(found)


def prepare() -> None:
    """Load what drawing needs, so that processes forked from this one have it."""
    check_installed()
    from malleable.plots._fonts import families  # noqa: PLC0415 - heavy, and an extra

    families()


def draw_files(figure: Figure) -> dict[str, bytes]:
    """The figure as files, by suffix: svg, png and pdf; the same bytes every time."""
    check_installed()
    from malleable.plots._paper import drawn  # noqa: PLC0415 - heavy, and an extra

    return drawn(with_data(figure), SUFFIXES)


def draw_picture(figure: Figure) -> bytes:
    """The figure as SVG."""
    check_installed()
    from malleable.plots._paper import drawn  # noqa: PLC0415 - heavy, and an extra

    return drawn(with_data(figure), SUFFIXES[:1])["svg"]


def check_file(path: str | Path) -> Path:
    """The path, if a figure can be drawn into such a file."""
    check_installed()
    if Path(path).suffix.removeprefix(".") not in SUFFIXES:
        hint = f"end it in {', '.join(f'.{suffix}' for suffix in SUFFIXES)}"
        raise OutputError(f"cannot tell the format of a picture from {str(path)!r}", hint)
    files.check(Path(path))
    return Path(path)


def draw_file(figure: Figure, path: str | Path) -> Path:
    """Draw a figure into a file whose ending names the format."""
    place = check_file(path)
    files.put(place, draw_files(figure)[place.suffix.removeprefix(".")])
    return place


def write_page(found: Explanation | Plan, path: str | Path) -> Path:
    """An answer as one page of HTML, with its picture if the libraries of the extra are there."""
    parts, place = [found._repr_html_()], Path(path)
    if is_installed():
        figure = figure_of(found)
        picture = draw_files(figure)["svg"].decode()
        shown = picture[picture.index("<svg") :]
        parts.append(f"<figure>{shown}<figcaption>{html.escape(figure.caption)}</figcaption></figure>")
    files.put(place, page.document(found.title, parts).encode())
    return place


def interactive(figure: Figure) -> dict[str, Any]:
    """The figure for plotly.js: {"data": …, "layout": …}.

    `layout.meta` holds `wide` and `narrow`: the settings to apply when panels stand side by side, and when
    the screen is so narrow that they stand one above another.
    """
    check_installed()
    from malleable.plots._screen import described  # noqa: PLC0415 - heavy, and an extra

    return described(with_data(figure))


def plotly_script() -> str:
    """The plotly.js that belongs to the figures, to be put into a page."""
    check_installed()
    from plotly.offline import get_plotlyjs  # noqa: PLC0415 - heavy, and an extra

    script: str = get_plotlyjs()
    return script


def digest(figure: Figure) -> str:
    """A digest of all that a figure's files depend on: what it shows, and how that is drawn."""
    shown = json.dumps(asdict(figure), sort_keys=True, default=_plain)
    return hashlib.sha256(f"{_drawing()}\n{shown}".encode()).hexdigest()[:16]


def _plain(value: Any) -> Any:
    """NumPy's numbers and arrays as Python's."""
    return value.tolist()


@functools.cache
def _drawing() -> str:
    made = hashlib.sha256(importlib.metadata.version("matplotlib").encode())
    for source in sorted(Path(__file__).parent.glob("*.py")):
        made.update(source.read_bytes())
    return made.hexdigest()
