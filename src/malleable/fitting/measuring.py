"""`measure`: run a command on several numbers of cores, and keep how long it took.

Widths take turns, and every second round goes backwards: a machine that gets warmer or busier while it is
measured slows all widths alike. The file is replaced after every run, in one step, so that whatever happens
it holds all runs that ended and nothing else; `malleable fit` reads it.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from malleable.errors import MeasurementError
from malleable.fitting import running
from malleable.fitting.fit import Fit, fit_speedup
from malleable.fitting.measurements import Measurements
from malleable.results import files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from malleable.contracts import FloatArray

SHORT = 0.05
"""Seconds below which starting a program is a good part of its run time."""

Run = tuple[int, float]


@dataclass(frozen=True)
class Measured:
    """Run times of a command."""

    command: tuple[str, ...]
    runs: tuple[Run, ...]
    """Cores and seconds of every run, in the order of running."""
    interrupted: bool = False
    file: Path | None = None

    @property
    def widths(self) -> tuple[int, ...]:
        """The numbers of cores that were run on."""
        return tuple(sorted({k for k, _ in self.runs}))

    @cached_property
    def fit(self) -> Fit | None:
        """The speedup fitted to the run times; None for fewer than two widths."""
        if len(self.widths) < 2:
            return None
        return fit_speedup(Measurements.of(times=self.runs, name=shlex.join(self.command)))

    @property
    def points(self) -> list[dict[str, Any]]:
        """Run times per width: the median, the extremes, and the speedup over one core."""
        return [self._point(k, np.array([t for width, t in self.runs if width == k])) for k in self.widths]

    def _point(self, cores: int, times: FloatArray) -> dict[str, Any]:
        median, fastest, slowest = float(np.median(times)), float(times.min()), float(times.max())
        base = self._one_core
        several = len(times) > 1
        return {
            "cores": cores,
            "time": median,
            "speedup": None if base is None else base / median,
            "low": base / slowest if base is not None and several else None,
            "high": base / fastest if base is not None and several else None,
            "efficiency": None if base is None else base / median / cores,
            "fastest": fastest,
            "slowest": slowest,
            "runs": len(times),
        }

    @property
    def _one_core(self) -> float | None:
        """The median time on one core; as fitted if it was not measured, None if that cannot be."""
        measured = [t for k, t in self.runs if k == 1]
        if measured:
            return float(np.median(measured))
        return 1.0 / self.fit.rate if self.fit else None

    @property
    def notes(self) -> tuple[str, ...]:
        """What to know before trusting the numbers."""
        found = list(self.fit.notes) if self.fit else ["one width tells nothing about the speedup"]
        if self.runs and min(t for _, t in self.runs) < SHORT:
            found.append("runs are so short that starting the program counts; measure a longer one")
        if not running.CAN_BIND:
            found.append("this system cannot bind programs to processors; only the variables were set")
        return tuple(found)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain numbers and texts."""
        fit = self.fit
        return {
            "command": list(self.command),
            "speedup": fit.speedup.to_dict() if fit else None,
            "family": fit.family if fit else None,
            "criterion": fit.criterion if fit else None,
            "points": self.points,
            "interrupted": self.interrupted,
            "file": None if self.file is None else str(self.file),
            "notes": list(self.notes),
            "line": fit.line if fit else None,
        }


def measure(
    command: Sequence[str],
    cores: Sequence[int],
    *,
    repeat: int = 5,
    out: str | Path | None = None,
    progress: Callable[[int, int], None] | None = None,
    group: Callable[[int | None], None] | None = None,
) -> Measured:
    """Run a command on each number of cores, `repeat` times, and keep the times in the file `out`.

    An interruption (KeyboardInterrupt, also raised by `progress`) ends the run at hand; what was measured so
    far is returned, if there is anything. `group` is told the process group of each run, and None at its end.
    """
    path = None if out is None else Path(out)
    _check(command, cores, repeat, path)
    order = list(_order(cores, repeat))
    found = Measured(tuple(command), (), file=path)

    def alive() -> None:
        if progress is not None:
            progress(len(found.runs), len(order))

    try:
        for k in order:
            alive()
            found = replace(found, runs=(*found.runs, (k, running.run(command, k, alive, group))))
            _write(found)
        alive()
    except KeyboardInterrupt:
        if not found.runs:
            raise
        return replace(found, interrupted=len(found.runs) < len(order))
    except MeasurementError as error:
        if path is None or not found.runs:
            raise
        raise MeasurementError(error.problem, f"{error.hint}; {path} holds the runs before it") from None
    return found


def _order(cores: Sequence[int], repeat: int) -> Iterator[int]:
    """The widths in turns, forwards and backwards."""
    for turn in range(repeat):
        yield from cores if turn % 2 == 0 else reversed(cores)


def _check(command: Sequence[str], cores: Sequence[int], repeat: int, path: Path | None) -> None:
    """Find what is wrong before anything runs."""
    if repeat < 1:
        raise MeasurementError(f"repeat must be at least 1, got {repeat}", "for example --repeat 5")
    for k in cores:
        if k < 1:
            raise MeasurementError(f"cores must be at least 1, got {k}", "for example --cores 1,2,4")
    if len(set(cores)) < 2:
        shown = ", ".join(map(str, cores)) or "none"
        problem = f"a speedup needs at least two numbers of cores, got {shown}"
        raise MeasurementError(problem, "for example --cores 1,2,4")
    there = len(running.processors())
    if max(cores) > there:
        problem = f"{max(cores)} cores are more than the {there} that this process may use"
        raise MeasurementError(problem, f"leave out the widths above {there}")
    running.check_program(command)
    if path is not None:
        files.check(path)


def _write(found: Measured) -> None:
    """Put all runs into the file, in one step."""
    if found.file is None:
        return
    told = " ".join(shlex.join(found.command).split())
    lines = [f"# {told}", "cores,time", *(f"{k},{t:.6f}" for k, t in found.runs)]
    files.put(found.file, ("\n".join(lines) + "\n").encode(errors="backslashreplace"))
