"""One hierarchy of errors: a sentence that names the thing and its value, and a hint that says what to do.

Everything the library raises on purpose is a `MalleableError`; the command line prints its sentence and
hint on one line each and exits with status 1. A traceback therefore always means a bug.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Iterable


class MalleableError(Exception):
    """Base of all errors: `problem` says what is wrong, `hint` what to do, `path` where in a document.

    A path grows from the inside out: the innermost code names its parameter, and every layer that knows
    more about the place calls `within`.
    """

    def __init__(self, problem: str, hint: str = "", path: tuple[str | int, ...] = ()) -> None:
        super().__init__(problem)
        self.problem = problem
        self.hint = hint
        self.path = path

    def within(self, *outer: str | int) -> Self:
        """Return the same error, placed inside `outer`."""
        return type(self)(self.problem, self.hint, (*outer, *self.path))

    def __reduce__(self) -> tuple[type[Self], tuple[str, str, tuple[str | int, ...]]]:
        return type(self), (self.problem, self.hint, self.path)

    @property
    def sentence(self) -> str:
        """The problem behind its place: `classes[0].size.rate: must be greater than 0, got -1`."""
        return f"{format_path(self.path)}: {self.problem}" if self.path else self.problem

    def __str__(self) -> str:
        return f"{self.sentence} ({self.hint})" if self.hint else self.sentence


class ParameterError(MalleableError, ValueError):
    """A value is not one that the model allows."""


class WorkloadError(MalleableError, ValueError):
    """A workload file or document cannot be understood."""


class UnknownKindError(MalleableError, LookupError):
    """No speedup, distribution, policy or workload goes by that name."""


class JobsError(MalleableError, ValueError):
    """A list of jobs cannot be understood."""


class MeasurementError(MalleableError, ValueError):
    """Measurements cannot be understood, or a command cannot be measured."""


class TraceError(MalleableError, ValueError):
    """A log of jobs cannot be read, or lacks what a question needs."""


class InfeasibleError(MalleableError, ValueError):
    """No allocation can keep up with the work that arrives."""


class UnstableError(MalleableError, ValueError):
    """The policy, as set up, lets the queue of some class grow without bound."""


class PolicyError(MalleableError, RuntimeError):
    """A policy broke the rules: it gave out cores that do not exist, or numbers that are none."""


class PolicyRaisedError(PolicyError):
    """A user's own policy raised an error; `trace` is its traceback, from their code on."""

    trace: str = ""

    @classmethod
    def of(cls, label: str, error: BaseException) -> Self:
        """Blame a policy for what it raised."""
        made = cls(f"the policy {label} raised {type(error).__name__}: {error!s:.200}", "mend the policy")
        made.trace = _trace(error)
        return made

    def __reduce__(self) -> Any:
        return (*super().__reduce__(), {"trace": self.trace})


class ExecutionError(MalleableError, RuntimeError):
    """The work could not be carried out: a worker died, or there is no cluster to send it to."""


class OutputError(MalleableError, OSError):
    """Something cannot be written where it should go."""


class UnsupportedError(MalleableError, TypeError):
    """The question is sound, but this policy or workload has no answer to it."""


def _trace(error: BaseException) -> str:
    """The traceback as text, from the first frame of the user's on: not of this package, nor of a library."""
    # Here and below: what only errors need, every worker would load.
    import sysconfig  # noqa: PLC0415
    import traceback  # noqa: PLC0415

    ours = (os.path.dirname(__file__), sysconfig.get_path("purelib"))  # noqa: PTH120 - see above
    frames = error.__traceback__
    inner = frames
    while inner is not None and inner.tb_frame.f_code.co_filename.startswith(ours):
        inner = inner.tb_next
    return "".join(traceback.format_exception(type(error), error, inner or frames))


def format_path(path: Iterable[str | int]) -> str:
    """Write a place in a document the way TOML users read it: `classes[0].size.rate`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def to_install(extra: str) -> str:
    """A hint: how to install an extra of this package, from a package index or in a clone."""
    return f"pip install 'malleable[{extra}]' (in a clone: pip install -e '.[{extra}]')"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A hint that offers the nearest known words, or all of them when none is near."""
    import difflib  # noqa: PLC0415 - see above

    choices = sorted(known)
    near = difflib.get_close_matches(word, choices, n=3)
    return f"did you mean {' or '.join(map(repr, near))}?" if near else f"known: {', '.join(choices)}"
