"""What a reproduction was made with: effort, seeds, versions, machine, and what was chosen freely.

It names no host and no folder, so that it can be published.
"""

from __future__ import annotations

import os
import platform
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from malleable import __version__
from malleable.results.versions import versions_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from malleable.paper.contracts import Effort
    from malleable.paper.write import Chapter

PACKAGES = ("numpy", "numba", "scipy", "plotly", "matplotlib", "jinja2")
SEEDS = ("seed", "seeds")


def manifest(chapters: Sequence[Chapter], effort: Effort) -> dict[str, Any]:
    """The manifest as one document."""
    return {
        "effort": asdict(effort),
        "seeds": {chapter.name: seeds(chapter) for chapter in chapters},
        "versions": versions(),
        "machine": machine(),
        "choices": {chapter.name: chapter.choices for chapter in chapters if chapter.choices},
        "cells": {chapter.name: len(chapter.values) for chapter in chapters},
    }


def seeds(chapter: Chapter) -> list[int]:
    """Seeds that the cells of an experiment were given or report."""
    return sorted(set(_found(chapter.asked)) | set(_found(chapter.values)))


def versions() -> dict[str, str]:
    """Versions of all that numbers and drawings depend on."""
    return {"malleable": __version__, "python": platform.python_version(), **versions_of(PACKAGES)}


def machine() -> dict[str, Any]:
    """What the machine is, not whose."""
    made: dict[str, Any] = {"platform": platform.platform(), "cpu": _cpu(), "cores": os.cpu_count()}
    with suppress(ValueError, OSError, AttributeError):
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        made["memory_gb"] = round(memory / 2**30, 1)
    return made


def _cpu() -> str:
    """The processor's name, as far as the system tells."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _found(document: Any) -> Iterator[int]:
    """All whole numbers that stand under the name of a seed, anywhere in a document."""
    if isinstance(document, dict):
        for key, value in document.items():
            if key in SEEDS:
                yield from (seed for seed in _flat(value) if type(seed) is int)
            else:
                yield from _found(value)
    elif isinstance(document, list | tuple):
        for value in document:
            if isinstance(value, dict | list | tuple):
                yield from _found(value)


def _flat(value: Any) -> Iterator[Any]:
    if isinstance(value, list | tuple):
        for one in value:
            yield from _flat(one)
    else:
        yield value
