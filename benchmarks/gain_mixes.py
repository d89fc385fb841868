"""The mixes of `bench_gain`: jobs that people would start at about the same time on one machine.

A size is in seconds of the whole machine (of one core for programs, which use one); a mix is about three
seconds of work. Arrivals, sizes and the lengths of units are random, the same for both sides.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from numpy.random import Generator

SPREAD = 0.25
"""Of the logarithm of sizes within a class."""
UNIT_SECONDS = (0.02, 0.05)


@dataclass(frozen=True)
class Job:
    """A job of a mix: a sweep (an Executor's map), a build (make -j) or a program that uses one core."""

    job_class: str
    size: float
    weight: float = 1.0
    arrival: float = 0.0
    form: str = "sweep"
    lazy: bool = False
    """Whether the input is a generator, whose length nobody knows."""
    declared: float | None = None
    """Units that it says it has, as a multiple of those that it has."""
    workers: int | None = None


@dataclass(frozen=True)
class Mix:
    """Jobs as a random generator draws them; `first_ever` says that the broker has not met their classes."""

    what: str
    draw: Callable[[Generator], list[Job]]
    first_ever: bool = False


def unequal(rng: Generator) -> list[Job]:
    """Three sweeps, the short ones of more weight, in any order."""
    return _soon(rng, [Job("short", 0.3, 5.0), Job("middle", 0.8, 2.0), Job("long", 2.0, 1.0)])


def long_matters(rng: Generator) -> list[Job]:
    """Three sweeps, the long one of more weight."""
    return _soon(rng, [Job("short", 0.3), Job("middle", 0.8), Job("long", 2.0, 4.0)])


def equal(rng: Generator) -> list[Job]:
    """Four sweeps of one class."""
    return _soon(rng, [Job("same", 0.75)] * 4)


def queries(rng: Generator) -> list[Job]:
    """A long sweep, and short ones of one class that come while it runs."""
    return _soon(rng, [Job("sweep", 2.0)]) + _queries(rng)


def lazy_queries(rng: Generator) -> list[Job]:
    """The same beside two sweeps over generators."""
    return _soon(rng, [Job("endless", 1.5, lazy=True), Job("stream", 0.5, lazy=True)]) + _queries(rng)


def builds(rng: Generator) -> list[Job]:
    """A build beside two sweeps."""
    return _soon(rng, [Job("build", 0.7, 2.0, form="build"), Job("sweep", 1.6), Job("middle", 0.5, 3.0)])


def programs(rng: Generator) -> list[Job]:
    """Programs of one core each, and of three lengths."""
    kinds = [Job("brief", 0.3, 3.0, form="program"), Job("daily", 0.8, 2.0, form="program")]
    return _soon(rng, [*kinds, Job("nightly", 1.8, form="program")] * 2, within=0.5)


def stream(rng: Generator) -> list[Job]:
    """Jobs of three classes that come one after the other, at a load of about 0.8."""
    classes = [Job("short", 0.1, 5.0), Job("middle", 0.35, 2.0), Job("long", 1.0, 1.0)]
    moments = rng.exponential(0.43, 8).cumsum()
    kinds = rng.choice(3, 8, p=[0.5, 0.3, 0.2])
    return [
        _sized(rng, replace(classes[i], arrival=at - moments[0]))
        for i, at in zip(kinds, moments, strict=True)
    ]


def misdeclared(rng: Generator) -> list[Job]:
    """Three unequal sweeps: the short one says that it has ten times its units, the long one a tenth."""
    jobs = unequal(rng)
    wrong = {"short": 10.0, "middle": 1.0, "long": 0.1}
    return [replace(job, declared=wrong[job.job_class]) for job in jobs]


def wide_and_serial(rng: Generator) -> list[Job]:
    """A sweep that can use all cores, and one that runs one unit at a time."""
    return _soon(rng, [Job("wide", 1.6), Job("serial", 1.2, 2.0, workers=1)])


MIXES = {
    "unequal": Mix("three unequal sweeps, weights 5, 2 and 1", unequal),
    "long-matters": Mix("three unequal sweeps, the long one of weight 4", long_matters),
    "equal": Mix("four equal sweeps", equal),
    "queries": Mix("a long sweep, and six queries of weight 3", queries),
    "lazy-queries": Mix("two sweeps of unknown length, and six queries", lazy_queries),
    "builds": Mix("a build (`make -j`) beside two sweeps", builds),
    "programs": Mix("six programs of three lengths", programs),
    "stream": Mix("eight sweeps of three classes, one after the other", stream),
    "misdeclared": Mix("three unequal sweeps that misstate their units tenfold", misdeclared),
    "wide-and-serial": Mix("a wide sweep and a serial one of weight 2", wide_and_serial),
    "first-unequal": Mix("three unequal sweeps of classes never met", unequal, first_ever=True),
    "first-queries": Mix("lazy sweeps and queries of classes never met", lazy_queries, first_ever=True),
}


def _queries(rng: Generator) -> list[Job]:
    return [_sized(rng, Job("query", 0.12, 3.0, at)) for at in sorted(rng.uniform(0.3, 2.4, 6))]


def _soon(rng: Generator, jobs: list[Job], within: float = 0.3) -> list[Job]:
    """Jobs of random sizes that come at about the same time, in a random order."""
    moments = sorted(rng.uniform(0.0, within, len(jobs)))
    order = rng.permutation(len(jobs))
    return [
        _sized(rng, replace(jobs[i], arrival=float(at - moments[0])))
        for i, at in zip(order, moments, strict=True)
    ]


def _sized(rng: Generator, job: Job) -> Job:
    return replace(job, size=job.size * float(rng.lognormal(0.0, SPREAD)), arrival=float(job.arrival))


def unit_seconds(rng: Generator, job: Job, cores: int) -> list[float]:
    """How long each unit of a job computes: together its size, on so many cores."""
    if job.form == "program":
        return [job.size]
    total = job.size * (cores if job.workers is None else job.workers)
    mean = sum(UNIT_SECONDS) / 2.0
    lengths = rng.uniform(*UNIT_SECONDS, max(1, round(total / mean)))
    return [float(length) for length in lengths * (total / lengths.sum())]
