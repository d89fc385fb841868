"""What the HTTP interface takes and gives, as models that the OpenAPI description is made of.

Requests are checked by them and then by the library, whose rules are stricter. Answers are described by them
and not checked again: a status document of ten thousand jobs is sent as it is.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from malleable.live.broker.state.request import Word

LongWord = Annotated[Word, Field(max_length=1 << 20)]
Name = Annotated[str, Field(min_length=1, max_length=200)]
Positive = Annotated[float, Field(gt=1e-100, lt=1e100)]
NonNegative = Annotated[float, Field(ge=0, lt=1e100)]


class _Request(BaseModel):
    """What a client sends: a key that is not known is an error, and a number is no text."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Submission(_Request):
    """A program to be run. It gets the broker's variables, and those of `environment` on top."""

    command: Annotated[list[LongWord], Field(min_length=1, max_length=10_000)] = Field(
        description="The program and its arguments, as they are: no shell reads them."
    )
    folder: Annotated[Word, Field(max_length=4096)] = Field(
        description="The absolute path of the folder that it runs in."
    )
    environment: dict[Word, LongWord] = Field(default={}, description="Variables that are set for it.")
    job_class: Name | None = Field(
        default=None, alias="class", description="Its class; `program`, or `build` for make, ninja and cargo."
    )
    weight: Positive | None = Field(default=None, description="Cost of its presence per second.")
    size: Positive | None = Field(default=None, description="Seconds that it takes on one core.")
    units: Positive | None = Field(default=None, description="Units of progress that it has.")
    memory: NonNegative = Field(default=0.0, description="Bytes that it needs.")
    never_pause: bool = Field(default=False, description="Whether it keeps a core once it has started.")
    max_cores: Annotated[int, Field(ge=1, le=10**7)] | None = Field(
        default=None, description="The most cores that it takes."
    )
    on_resize: Annotated[Word, Field(max_length=4096)] | None = Field(
        default=None, description="A signal or a command that tells it of a new width."
    )
    form: Literal["program", "build"] | None = Field(
        default=None, description="Whether it takes tokens of a jobserver; told by its name otherwise."
    )
    stdin: Annotated[Word, Field(max_length=4096)] | None = Field(
        default=None, description="The absolute path of the file that it reads as standard input."
    )
    stdin_file: Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=3, max_length=3)] | None = (
        Field(
            default=None,
            description="Device and inode that `stdin` must have, and the offset to read it from.",
        )
    )


class JobChange(_Request):
    """What can be changed of a job that is there."""

    weight: Positive | None = None
    job_class: Name | None = Field(default=None, alias="class")
    on_hold: bool | None = Field(default=None, description="Whether it is to have no cores until told so.")


class MachineChange(_Request):
    """What can be changed of the machine."""

    cores: Annotated[int, Field(ge=0, le=10**7)] | None = None
    policy: Annotated[str, Field(min_length=1, max_length=1000)] | None = Field(
        default=None, description="A policy with its options, such as `fw-cam:beta=0.8`."
    )


class Problem(BaseModel):
    """What is wrong, in one sentence, and what to do."""

    error: str
    hint: str


class JobDocument(BaseModel):
    """A job: a client that is present, or a program that was submitted, with what became of it."""

    model_config = ConfigDict(extra="allow")

    id: str
    job_class: str = Field(alias="class")
    kind: Literal["client", "program", "build"]
    state: Literal["queued", "running", "paused", "finished", "failed", "cancelled", "lost"]
    granted: int = Field(description="Cores that count as its own.")
    in_use: int = Field(description="Cores that it last said it uses.")
    target: int = Field(description="Cores that the policy wants it to have.")
    cpus: list[int]
    max_cores: int | None = Field(default=None, description="The most cores that it takes.")
    progress: float | None = Field(description="From 0 to 1, where it is known.")
    weight: float | None
    command: list[str] | None
    submitted: float | None = Field(default=None, description="Seconds since 1970, as all times.")
    started: float | None = None
    ended: float | None = None
    exit_code: int | None = Field(default=None, description="Negative for a signal.")
    cpu_seconds: float | None = Field(default=None, description="CPU time of a program; of one job only.")
    remaining_estimated: bool | None = Field(
        default=None, description="Whether `remaining` is what is usual in its class."
    )
    on_hold: bool | None = Field(default=None, description="Whether it has no cores until it is resumed.")
    over_share: float | None = Field(
        default=None, description="Work done over what its weighted equal share would have done."
    )
    promised_share: float | None = Field(default=None, description="What that is promised to be at least.")
    removed: bool = Field(default=False, description="Whether what it has printed is kept no longer.")


class Explained(BaseModel):
    """Why a job has its cores, or waits; what would be with a core, or this job, more or less."""

    model_config = ConfigDict(extra="allow")

    policy: str
    cores: float
    price: float | None = Field(description="The policy's price of a core, where it has one.")
    words: list[str] = Field(description="The answer in sentences.")
    job: dict[str, Any] = Field(
        description="The job: cores, what the last saves (value), what one more would save (next), and why."
    )
    next_core: dict[str, Any] = Field(description="Who would gain on one core more.")
    lost_core: dict[str, Any] | None = Field(description="Who would give up a core that is lost.")
    departure: dict[str, Any] = Field(description="Who would change if the job left.")


class StatusDocument(BaseModel):
    """What the broker does right now."""

    model_config = ConfigDict(extra="allow")

    cores: int
    policy: str
    price: float | None = Field(description="WHAM's index: at it jobs want just the cores there are.")
    time: float
    draining: bool
    problem: str = Field(description="Why the policy cannot decide; cores are divided equally then.")
    granted: int
    present: int = Field(description="Jobs that are there, whether listed or not.")
    waiting: int = Field(description="Jobs without a core.")
    programs: int = Field(description="Programs among the jobs; once draining, those that were started.")
    cost: dict[str, float | None]
    ended: dict[str, int]
    classes: list[dict[str, Any]]
    jobs: list[dict[str, Any]]


class Jobs(BaseModel):
    """The jobs that are there, and the last programs that have ended."""

    jobs: list[JobDocument]


class Alive(BaseModel):
    """The broker answers."""

    process: int


class Submitted(BaseModel):
    """A program was accepted: it is on the disk."""

    id: str


class Asked(BaseModel):
    """A job was asked to end; it says itself when it has."""

    id: str


class Machine(BaseModel):
    """The machine as it is now."""

    cores: int
    policy: str
    draining: bool
