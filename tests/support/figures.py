"""Small figures, and Python processes that draw them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from malleable.plots.figures import Axis, Figure, Panel, Series

TESTS = Path(__file__).parents[1]


def one_panel(*series: Series, x: Axis | None = None, y: Axis | None = None, **more) -> Figure:
    return Figure("f", "F", "", (Panel(x or Axis("x"), y or Axis("y"), series, **more),))


def printed(code: str, **environment: str) -> list[str]:
    """The words that another process prints."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=TESTS,
        env={**os.environ, **environment},
    )
    return done.stdout.split()
