"""The progress bar of long work: on the command line, in Python with `progress=True`, and in a notebook.

Beside the command line the only importer of rich. A bar is drawn from the thread that does the work and not
from one of its own: worker processes are forked from this one.
"""

from __future__ import annotations

import time
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

REFRESH = 0.1
"""Seconds between two pictures of the bar."""


@contextmanager
def progress_bar(
    unit: str = "jobs", starting: str = "starting (first use compiles)"
) -> Iterator[Callable[[int, int | None], None] | None]:
    """On a terminal or in a notebook a bar on stderr with rate and time left; elsewhere nothing."""
    from rich.console import Console  # noqa: PLC0415 - needed only where something takes long

    screen = Console(stderr=True)
    if not (screen.is_terminal or screen.is_jupyter):
        yield None
        return
    from rich.progress import (  # noqa: PLC0415 - ditto
        BarColumn,
        Progress,
        ProgressColumn,
        TaskProgressColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text  # noqa: PLC0415 - ditto

    class Rate(ProgressColumn):
        def render(self, task: Any) -> Text:
            speed = task.finished_speed or task.speed
            if not task.completed:
                return Text(starting)
            return Text("" if speed is None else f"{_short(speed)} {unit}/s")

    columns = (BarColumn(), TaskProgressColumn(), Rate(), TimeRemainingColumn())
    with Progress(*columns, console=screen, transient=True, auto_refresh=False) as bar:
        task, drawn = bar.add_task("", total=None), 0.0

        def report(done: int, total: int | None) -> None:
            nonlocal drawn
            if time.monotonic() - drawn >= REFRESH:
                bar.update(task, completed=done, total=total, refresh=True)
                drawn = time.monotonic()

        yield report


def watched(
    progress: Callable[[int, int], None] | bool | None, unit: str = "jobs"
) -> AbstractContextManager[Callable[[int, int], None] | None]:
    """What is told of progress: a function of the caller's, a bar for True, nothing for None and False."""
    if progress is True:
        return progress_bar(unit)
    return nullcontext(progress or None)


def _short(rate: float) -> str:
    for size, letter in ((1e6, " M"), (1e3, " k")):
        if rate >= size:
            return f"{rate / size:.3g}{letter}"
    return f"{rate:.3g}"
