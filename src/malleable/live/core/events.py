"""What happens to jobs and cores: everything that the scheduler is ever told.

Events are frozen values, checked when they are made, and written to and read from plain documents, so that a
journal of them can be kept and replayed. Times of work are in the unit of the clock, on one core.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from annotated_types import Ge, Gt, Le, Lt, MaxLen, MinLen

from malleable.catalog.spec import Spec
from malleable.contracts import Policy
from malleable.errors import ParameterError, did_you_mean

MOST_CORES = 10**7
Name = Annotated[str, MinLen(1), MaxLen(200)]
Cores = Annotated[int, Ge(0), Le(MOST_CORES)]
Number = Annotated[int, Ge(0)]
Positive = Annotated[float, Gt(1e-100), Lt(1e100)]
NonNegative = Annotated[float, Ge(0), Lt(1e100)]
"""Events come from anywhere: ratios and products of their numbers have to stay within the range of floats."""


@dataclass(frozen=True)
class Event(Spec):
    """Something that happened."""

    kind: ClassVar[str] = "an event"
    hint: ClassVar[str] = "leave it out, or give a value that is allowed"

    @classmethod
    def of(cls, value: Any) -> Event:
        """Read an event: an `Event`, or the document that `to_dict` makes."""
        if isinstance(value, Event):
            return value
        if not isinstance(value, Mapping) or not isinstance(value.get("kind"), str):
            raise ParameterError(f"not an event: {value!r:.60}", "give a table with a 'kind'")
        if value["kind"] not in KINDS:
            raise ParameterError(
                f"there is no event {value['kind']!r:.40}", did_you_mean(value["kind"], KINDS)
            )
        return KINDS[value["kind"]].from_parameters({key: v for key, v in value.items() if key != "kind"})


@dataclass(frozen=True)
class Registered(Event):
    """A job is there.

    It takes at most `max_cores`. `units` says how many units of work it has, `size` how long they take on one
    core, where that is known.
    A job that was counted before (its broker was started again) says how many `cores` it uses, its `age` and
    the `work_done`; it keeps them until the next decision, at the next other event. One that was `started`
    holds its memory even while it uses no core.
    """

    kind: ClassVar[str] = "registered"

    job: Name
    job_class: Name
    weight: Positive | None = None
    units: Positive | None = None
    size: Positive | None = None
    work_done: NonNegative = 0.0
    memory: NonNegative = 0.0
    never_pause: bool = False
    cores: Cores = 0
    age: NonNegative = 0.0
    started: bool = False
    max_cores: Annotated[int, Ge(1), Le(MOST_CORES)] | None = None


@dataclass(frozen=True)
class Expected(Event):
    """A job that is not here may be using so many cores, and come back: they are kept for it.

    It was counted by a broker that is gone. With 0 cores it is expected no longer; when it registers, its
    cores are its own again.
    """

    kind: ClassVar[str] = "expected"

    job: Name
    cores: Cores


@dataclass(frozen=True)
class Progressed(Event):
    """A job has done so many of its units in all; `units` corrects how many there are (0: unknown)."""

    kind: ClassVar[str] = "progressed"

    job: Name
    units_done: NonNegative
    units: NonNegative | None = None


@dataclass(frozen=True)
class Confirmed(Event):
    """A job has carried out all actions up to `number`, and uses so many cores now."""

    kind: ClassVar[str] = "confirmed"

    job: Name
    cores: Cores
    number: Number


@dataclass(frozen=True)
class Ended(Event):
    """A job is no longer there, and uses no core."""

    kind: ClassVar[str] = "ended"

    job: Name


@dataclass(frozen=True)
class Finished(Ended):
    """A job has done its work."""

    kind: ClassVar[str] = "finished"


@dataclass(frozen=True)
class Failed(Ended):
    """A job has ended without having done its work."""

    kind: ClassVar[str] = "failed"


@dataclass(frozen=True)
class Cancelled(Ended):
    """A job was ended because its owner asked for it."""

    kind: ClassVar[str] = "cancelled"


@dataclass(frozen=True)
class Withdrawn(Ended):
    """A job has left without having had any work, as an idle Executor does: it counts as no job at all."""

    kind: ClassVar[str] = "withdrawn"


@dataclass(frozen=True)
class Lost(Ended):
    """A job's client is gone, and its cores with it."""

    kind: ClassVar[str] = "lost"


@dataclass(frozen=True)
class WeightChanged(Event):
    """A job matters more or less from now on."""

    kind: ClassVar[str] = "weight_changed"

    job: Name
    weight: Positive


@dataclass(frozen=True)
class ClassChanged(Event):
    """A job is of another class than was said."""

    kind: ClassVar[str] = "class_changed"

    job: Name
    job_class: Name


@dataclass(frozen=True)
class Held(Event):
    """A job is to have no cores until it is `Resumed`, whatever it costs."""

    kind: ClassVar[str] = "held"

    job: Name


@dataclass(frozen=True)
class Resumed(Event):
    """A job that was on hold may have cores again."""

    kind: ClassVar[str] = "resumed"

    job: Name


@dataclass(frozen=True)
class CoresChanged(Event):
    """There are so many cores from now on."""

    kind: ClassVar[str] = "cores_changed"

    cores: Cores


@dataclass(frozen=True)
class PolicyChanged(Event):
    """Another policy decides from now on, by its name with options, such as `fw-cam:beta=0.8`."""

    kind: ClassVar[str] = "policy_changed"

    policy: Any

    def check(self) -> None:
        if not isinstance(self.policy, str | Policy):
            raise ParameterError(
                f"not a policy: {self.policy!r:.60}", "give a name such as 'wham'", ("policy",)
            )


@dataclass(frozen=True)
class Tick(Event):
    """Time has passed: the scheduler looks again."""

    kind: ClassVar[str] = "tick"


KINDS: dict[str, type[Event]] = {
    made.kind: made
    for made in (
        *(Registered, Expected, Progressed, Confirmed, Finished, Failed, Cancelled, Withdrawn, Lost),
        *(WeightChanged, ClassChanged, Held, Resumed, CoresChanged, PolicyChanged, Tick),
    )
}
"""The events by the names that they have in documents."""
