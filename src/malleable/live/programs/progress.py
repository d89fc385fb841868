"""Progress that a program reports by lines in a file: `12/100`, `12 100`, `0.12` or `12%`.

Builds report it in their output: `[12/100] cc …` (ninja) or `[ 12%] Building …` (Makefiles of CMake).

A program may append lines or write the file anew each time; the last whole line that says something counts.
It is a file and not a pipe: writing never waits for a reader, and what was written outlives the reader.
"""

from __future__ import annotations

import math
import os
import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

BUILD_LINE = re.compile(r"\[\s*(\d+(?:/\d+|%))\]")
TAIL = 4096
"""Bytes from the end in which the last line is looked for."""


class Progress(NamedTuple):
    """What is done, of how much."""

    done: float
    total: float


def parse_progress(line: str) -> Progress | None:
    """The progress that a line tells; None if it tells none that makes sense."""
    text = line.strip()
    pair = text.split("/") if "/" in text else text.split()
    try:
        if len(pair) == 2:
            progress = Progress(float(pair[0]), float(pair[1]))
        elif text.endswith("%"):
            progress = Progress(float(text[:-1]), 100.0)
        else:
            progress = Progress(float(text), 1.0)
    except ValueError:
        return None
    sensible = 0.0 <= progress.done <= progress.total and 0.0 < progress.total < math.inf
    return progress if sensible else None


def parse_build_progress(line: str) -> Progress | None:
    """The progress that a line of a build's output tells."""
    match = BUILD_LINE.match(line)
    return None if match is None else parse_progress(match[1])


class ProgressFile:
    """A file that is looked at now and then, with what makes progress of one of its lines."""

    def __init__(self, path: Path, parse: Callable[[str], Progress | None] = parse_progress) -> None:
        self.path, self._parse = path, parse
        self._seen: tuple[int, int] = (0, 0)

    def news(self) -> Progress | None:
        """The latest progress, if the file has changed since the last look."""
        try:
            with self.path.open("rb") as file:
                status = os.fstat(file.fileno())
                if (status.st_mtime_ns, status.st_size) == self._seen:
                    return None
                self._seen = status.st_mtime_ns, status.st_size
                file.seek(max(0, status.st_size - TAIL))
                lines = file.read(TAIL).decode("utf-8", errors="replace").split("\n")
        except OSError:
            return None
        # What stands behind the last newline may be half a line, and so may the first of a long file.
        whole = lines[:-1] if status.st_size <= TAIL else lines[1:-1]
        return next(filter(None, map(self._parse, reversed(whole))), None)
