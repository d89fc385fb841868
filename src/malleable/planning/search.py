"""The smallest number of cores that meets a target: narrowed by a bound, found by bisection, then proved.

`find` asks a meter what the metric is on n cores, in stages of rising precision. The metric is taken to fall
with n. The search itself goes by the means of short runs; then n and n − 1 are read again, each as long as it
takes to tell on which side of the limit it lies, and the pair moves on until one meets and the other misses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

WIDTH = 0.02
"""The first step of the search from a guess, as a share of it."""
MOST_UNCLEAR = 6
"""How far apart the numbers that surely meet and surely miss may be before the search gives up."""

STEP = 1.25
"""Between two numbers of cores in the first look for the cheapest."""
PARTS = 8
"""Numbers of cores in each closer look."""
FAR = 2.0
"""The first look ends where a number of cores costs so much more than the cheapest one."""


class Reading(NamedTuple):
    """The metric on so many cores, as far as it is known."""

    cores: int
    value: float
    """Infinite where the work does not fit."""
    low: float
    high: float
    stage: int = 0
    cost: float | None = None
    """Mean holding cost per job, in the same runs."""
    policy: str = ""
    problem: str = ""
    """Why there is no value."""

    def side(self, limit: float) -> int:
        """1 if the metric is below the limit, −1 if it is not, 0 if that is not clear."""
        return 1 if self.high < limit else -1 if self.low >= limit else 0


class Theory(NamedTuple):
    """What is known of the cost on so many cores without a run: None where there is nothing."""

    bound: float | None = None
    mean_field: float | None = None
    refined: float | None = None


class Meter(Protocol):
    """What can be asked about a number of cores: of a workload by simulation, of a log by replay."""

    stages: int
    confidence: float
    known: dict[int, Reading]
    """What was read, the longest run of each number of cores."""
    ran: int
    """Jobs that were run so far."""

    @property
    def least(self) -> int:
        """The fewest cores that are worth a look."""
        ...

    @property
    def policy_name(self) -> str:
        """The policy that it is about."""
        ...

    def read(self, cores: int, stage: int = 0) -> Reading:
        """The metric on so many cores."""
        ...

    def ruled_out(self, most: int) -> tuple[int, float] | None:
        """The most cores up to `most` on which no policy meets the target, and the bound there."""
        ...

    def guess(self, above: int, most: int) -> int | None:
        """Where theory expects the target to be met."""
        ...

    def theory(self, cores: int) -> Theory:
        """What is known of the cost without a run."""
        ...


class Found(NamedTuple):
    """Where the metric falls below the limit."""

    meets: int | None
    """The fewest cores found to meet the target; None if none up to the most asked about does."""
    misses: int | None
    """The most cores below these found to miss it."""
    clear: bool
    """Whether both were told at the confidence asked for."""


def find(
    meter: Meter, limit: float, *, most: int, above: int, seen: Callable[[Found], None] = lambda _: None
) -> Found:
    """The smallest number of cores up to `most` on which the metric is below the limit.

    All up to `above` are known to miss. `seen` is told how far the search has come, for those who stop it.
    """
    known = max(above, meter.least - 1)
    if known >= most:
        return Found(None, most, clear=True)
    ends = _first(meter, limit, known, most, seen)
    if ends is None:
        return Found(None, most, clear=_side(meter, most, limit) < 0)
    return _proved(meter, limit, known, most, *_bisected(meter, limit, *ends, seen), seen)


def _first(
    meter: Meter, limit: float, misses: int, most: int, seen: Callable[[Found], None]
) -> tuple[int, int] | None:
    """Numbers of cores on both sides: steps from a guess that double until they find it."""
    n = min(max(misses + 1, meter.guess(misses, most) or 0), most)
    meets, step = None, max(1, round(WIDTH * n))
    while meets is None or n > misses:
        good = meter.read(n).value < limit
        misses, meets = (misses, n) if good else (n, meets)
        seen(Found(meets, misses, clear=False))
        if meets is not None and not good:
            break
        if n == most and not good:
            return None
        n = max(n - step, misses) if good else min(n + step, most)
        step *= 2
    return misses, meets


def _bisected(
    meter: Meter, limit: float, misses: int, meets: int, seen: Callable[[Found], None]
) -> tuple[int, int]:
    while meets - misses > 1:
        middle = (misses + meets) // 2
        misses, meets = (misses, middle) if meter.read(middle).value < limit else (middle, meets)
        seen(Found(meets, misses, clear=False))
    return misses, meets


def _proved(
    meter: Meter, limit: float, known: int, most: int, misses: int, meets: int, seen: Callable[[Found], None]
) -> Found:
    """Move both ends outwards, and past one another where they were wrong, until each is told for sure."""

    def missed(cores: int) -> int:
        return -1 if cores <= known else _side(meter, cores, limit)

    while True:
        upper = _side(meter, meets, limit)
        while upper <= 0 and meets < most and meets - misses <= MOST_UNCLEAR:
            misses, meets = (meets if upper < 0 else misses), meets + 1
            upper = _side(meter, meets, limit)
        lower = missed(misses)
        while lower == 0 and meets - misses <= MOST_UNCLEAR:
            misses -= 1
            lower = missed(misses)
        found = Found(meets, misses, clear=upper > 0 > lower)
        seen(found)
        if lower <= 0:
            return found
        misses, meets = misses - 1, misses  # that one meets the target, too


def _side(meter: Meter, cores: int, limit: float) -> int:
    """On which side of the limit the metric is, by runs that grow until it is clear."""
    stages = range(1, meter.stages) if meter.stages > 1 else range(1)
    return next((side for stage in stages if (side := meter.read(cores, stage).side(limit))), 0)


def cheapest(meter: Meter, *, most: int, seen: Callable[[Found], None] = lambda _: None) -> Found:
    """The number of cores with the lowest reading: a look at all sizes, then closer around the best."""
    n, tried = meter.least, []
    while n <= most:
        tried.append(n)
        best = min(tried, key=lambda m: meter.read(m).value)
        seen(Found(best, None, clear=False))
        if n > best and meter.read(n).value > FAR * meter.read(best).value:
            break
        n = max(n + 1, round(STEP * n))
    low, high = _beside(tried, best, meter.least, most)
    while high - low > 2:
        step = max(1, (high - low) // PARTS)
        tried = sorted({*range(low, high + 1, step), best, high})
        best = min(tried, key=lambda m: meter.read(m).value)
        seen(Found(best, None, clear=False))
        if step == 1:
            break
        low, high = _beside(tried, best, meter.least, most)
    return Found(best, best - 1 if best > meter.least else None, clear=True)


def _beside(tried: list[int], best: int, least: int, most: int) -> tuple[int, int]:
    """The numbers that were tried on both sides of the best."""
    place = tried.index(best)
    below = tried[place - 1] if place else least
    return below, tried[place + 1] if place + 1 < len(tried) else most
