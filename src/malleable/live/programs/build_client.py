"""A build as a job of a broker: as many commands run at a time as it is granted cores.

It is a program with a jobserver of its own (`live.programs.jobserver`). Fewer cores are in use only when
commands have ended, and each is given back as that happens. At 0 cores the whole build is stopped; the
commands that were running go on together when it continues, on the CPUs that it has then.

How far a build is, it says itself in its output (ninja, the Makefiles of CMake), or it is not known. To ask
`make -n` beforehand would run `+` recipes, lines with `$(MAKE)` and `$(shell …)` for real, and then again.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from malleable.live.broker.membership import INSIDE_PROGRAM
from malleable.live.programs.jobserver import Jobserver, form_for
from malleable.live.programs.program_client import ProgramClient, WidthChanged
from malleable.live.programs.progress import parse_build_progress

if TYPE_CHECKING:
    from malleable.live.programs.program import Program

NINJA_STATUS = "[%f/%t] "
"""What ninja prints before each command that has ended: how many have, of how many."""


class BuildClient(ProgramClient):
    """One build between a broker and the system."""

    _jobserver: Jobserver | None = None

    def _make_program(self, cores: int, **options: Any) -> Program:
        told = {**os.environ, **INSIDE_PROGRAM, "NINJA_STATUS": NINJA_STATUS, **self._command.environment}
        form = form_for(self._command.words[0])
        self._jobserver = server = Jobserver(cores, form, on_width=lambda _: self._news.put(WidthChanged()))
        return super()._make_program(
            cores,
            environment=server.environment(told),
            inherited=server.inherited,
            output_progress=parse_build_progress,
            **options,
        )

    def _resize(self, program: Program, cores: int) -> int:
        """Commands that run go on to their end; there are never more than were allowed before or are now."""
        if self._jobserver is None:
            return super()._resize(program, cores)
        self._jobserver.set_width(cores)
        if cores == 0:
            return super()._resize(program, 0)
        used = min(self._jobserver.width_in_use, max(self._in_use, cores))
        return super()._resize(program, used)

    def _cores_in_use(self) -> int:
        return self._in_use if self._jobserver is None else self._jobserver.width_in_use

    def _close(self) -> None:
        if self._jobserver is not None:
            self._jobserver.close()
