"""A program that someone wants to be run: what it is, where, and what is known of it as a job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Annotated, Any, ClassVar, Literal

from annotated_types import Ge, Le, MaxLen, MinLen
from pydantic import PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from malleable.catalog.spec import Spec, frozen
from malleable.errors import ParameterError
from malleable.live.core.events import MOST_CORES, Name, NonNegative, Positive, Registered
from malleable.live.programs.resize_notice import ResizeNotice

MOST_BYTES = 1 << 20
"""Of all words and variables together: the system starts no program with many more than these."""
LONGEST_WORD = (1 << 17) - 1
"""Bytes of one word or variable that the system lets a program be started with."""
BUILDS = frozenset(("make", "gmake", "ninja", "ninja-build", "samu", "cargo"))
"""Programs that take tokens of a jobserver."""


def _check_text(value: Any) -> str:
    if not isinstance(value, str):
        raise PydanticCustomError("string_type", "Input should be a valid string")
    return value


Word = Annotated[str, PlainValidator(_check_text), WithJsonSchema({"type": "string"})]
"""Text as the system has it: bytes that are not UTF-8 stand in it as Python has them, as lone surrogates."""
Text = Annotated[Word, MaxLen(4096)]


@dataclass(frozen=True)
class ProgramRequest(Spec):
    """A command with the folder that it runs in and the variables that are set for it.

    The variables are added to those of the broker. A `build` gets a jobserver whose tokens follow its cores;
    whether a command is one is told by its name where it is not said. Its class is `program` or `build` then.
    It reads `stdin`, which must be the file with that device and inode at its start, from that offset on.
    """

    kind: ClassVar[str] = "a program"
    alternatives: ClassVar[Any] = {"kind": ("form", lambda given: given["kind"])}

    command: Annotated[tuple[Word, ...], MinLen(1), MaxLen(10_000)]
    folder: Text
    environment: dict[Word, Word] = field(default_factory=dict)
    job_class: Name | None = None
    weight: Positive | None = None
    size: Positive | None = None
    units: Positive | None = None
    memory: NonNegative = 0.0
    never_pause: bool = False
    max_cores: Annotated[int, Ge(1), Le(MOST_CORES)] | None = None
    on_resize: Text | None = None
    form: Literal["program", "build"] | None = None
    stdin: Text | None = None
    stdin_file: tuple[Annotated[int, Ge(0)], Annotated[int, Ge(0)], Annotated[int, Ge(0)]] | None = None

    def check(self) -> None:
        if not self.command[0]:
            raise ParameterError("the command has no name", "write it behind --: -- python work.py")
        for place, path in (("folder", self.folder), ("stdin", self.stdin or "/")):
            if not PurePath(path).is_absolute():
                raise ParameterError(f"not an absolute path: {path!r:.60}", "start it with /", (place,))
        for name in self.environment:
            if not name or "=" in name:
                raise ParameterError(f"not the name of a variable: {name!r:.60}", "", ("environment",))
        words = [*self.command, self.folder, *(f"{k}={v}" for k, v in self.environment.items())]
        _check_words([*words, self.on_resize or "", self.stdin or ""])
        if self.on_resize is not None:
            ResizeNotice.parse(self.on_resize)
        if self.form is None:
            is_build = PurePath(self.command[0]).name in BUILDS
            object.__setattr__(self, "form", "build" if is_build else "program")
        if self.job_class is None:
            object.__setattr__(self, "job_class", self.form)

    @classmethod
    def of(cls, value: Any) -> ProgramRequest:
        """Read a request: a `ProgramRequest`, or the document that `parameters` makes."""
        if isinstance(value, ProgramRequest):
            return value
        if not isinstance(value, Mapping):
            raise ParameterError(f"not a request: {value!r:.60}", "give a table with a 'command'")
        return cls.from_parameters({str(key): frozen(given) for key, given in value.items()})

    def registered(self, job: str, **known: Any) -> Registered:
        """The job of this request, as the scheduler is told of it."""
        return Registered(
            job, self.job_class or "program", self.weight, self.units, self.size, memory=self.memory,
            never_pause=self.never_pause, max_cores=self.max_cores, **known,
        )  # fmt: skip


def _check_words(words: list[str]) -> None:
    """What the system cannot start a program with is refused now, and not when its turn comes."""
    total = 0
    for word in words:
        try:
            size = len(word.encode("utf-8", errors="surrogateescape"))
        except UnicodeEncodeError:
            raise ParameterError(f"not text: {word!r:.60}", "leave lone surrogates out") from None
        if "\0" in word:
            raise ParameterError(f"has a zero byte: {word!r:.60}", "no word or variable of a program may")
        if size > LONGEST_WORD:
            raise ParameterError(
                f"{size} bytes are too long for a word: {word!r:.60}", f"at most {LONGEST_WORD}"
            )
        total += size + 1
    if total > MOST_BYTES:
        raise ParameterError(f"words and variables have {total} bytes", f"at most {MOST_BYTES}; use a file")
