"""How a program is told of a new width, if it wishes to be: by a signal, or by a command that is run."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
from contextlib import suppress
from dataclasses import dataclass

from malleable.errors import ParameterError

CORES = "{cores}"
SECONDS = 30.0
"""Seconds that a command has to tell the program."""


@dataclass(frozen=True)
class ResizeNotice:
    """Exactly one of a signal for the program's first process, and the words of a command."""

    signum: signal.Signals | None = None
    command: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> ResizeNotice:
        """`USR1` and `SIGUSR1` are signals; all else is a command, which is run without a shell."""
        name = text.strip()
        for candidate in (name, f"SIG{name}"):
            if candidate in signal.Signals.__members__:
                return cls(signum=signal.Signals[candidate])
        try:
            words = shlex.split(name)
        except ValueError as error:
            raise ParameterError(f"cannot read the command {text!r}: {error}", "check its quotes") from None
        if not words:
            raise ParameterError("a resize needs a signal or a command", "USR1, or 'tell-it {cores}'")
        return cls(command=tuple(words))

    def give(self, pid: int, cores: int) -> None:
        """Tell the program; a command that fails or takes too long changes nothing."""
        if self.signum is not None:
            with suppress(ProcessLookupError):
                os.kill(pid, self.signum)
            return
        told = {**os.environ, "MALLEABLE_CORES": str(cores), "MALLEABLE_PID": str(pid)}
        with suppress(OSError, subprocess.TimeoutExpired):
            subprocess.run(  # noqa: S603 - this is what the user asked for
                [word.replace(CORES, str(cores)) for word in self.command], env=told, timeout=SECONDS,
                check=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip
