"""Paths of the fluid equation and of the system itself, from the same starts, as cells.

All numbers of jobs are divided by the number of cores, so that systems of different size can be laid over one
another. A start is a state of the fluid equation: shares z_iu of jobs of each phase. In the system it is a
crowd of ⌊n·z_iu⌉ jobs that are there at time 0, with exponential sizes of the phase's rate; from then on jobs
arrive as usual. Sizes must be mixtures of exponentials, whose phases only end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from malleable.contracts import Policy
from malleable.engine.run import Run
from malleable.errors import UnsupportedError
from malleable.model import Workload, paper_workload
from malleable.paper.experiments.shared.workloads import (
    WIDE,
    balanced_hyperexponential,
    exponential,
    random_speedup,
)
from malleable.simulation import program
from malleable.sources import ArrayStream, stream
from malleable.theory.attractor import trajectory
from malleable.theory.fluid import Fluid
from malleable.theory.meanfield import mean_field
from malleable.theory.relaxed import bound

if TYPE_CHECKING:
    from collections.abc import Sequence

    from malleable.contracts import FloatArray
    from malleable.sources import Stream

POLICY = "wham"
FINE = 3000
"""Times at which the fluid path is known when a path of the system is held against it."""
KEPT = 240
"""Points of a path that are kept for pictures."""


def laws(name: str, cores: float, load: float) -> Workload:
    """The paper's workload (`phase type`), or the same with exponential sizes of the same means."""
    made = paper_workload() if name == "phase type" else Workload.from_dict(exponential())
    return made.at(cores, load)


def fluid_paths(law: str, load: float, count: int, time: float, seed: int) -> dict[str, Any]:
    """Distance from the fixed point over time, from many starts; the distance is relative to its length."""
    fluid = Fluid(laws(law, 1.0, load), Policy.of(POLICY), 1.0)
    point = fluid.fixed_point()
    times = np.linspace(0.0, time, KEPT)
    paths = [trajectory(fluid, start, times) for start in starts(fluid, point.state, count, seed)]
    length = float(np.linalg.norm(point.state))
    return {
        "times": times.tolist(),
        "fixed": point.jobs.tolist(),
        "cost": point.cost,
        "bound": bound(fluid.workload, 1.0).bound,
        "slowest": float(np.linalg.eigvals(fluid.jacobian(point.state, point.market)).real.max()),
        "distances": [(np.linalg.norm(p.state - point.state, axis=1) / length).tolist() for p in paths],
        "jobs": [p.jobs.tolist() for p in paths],
    }


def starts(fluid: Fluid, target: FloatArray, count: int, seed: int) -> list[FloatArray]:
    """The empty system, then full ones of a single phase, then random mixtures of random fill."""
    rng = np.random.default_rng(seed)
    phases = len(target)
    corners = [fluid.cores * row for row in np.eye(phases)]
    mixtures = [rng.dirichlet(np.full(phases, 0.5)) * fluid.cores * rng.random() for _ in range(count)]
    return [np.zeros(phases), *corners, *mixtures][:count]


def attraction(law: str, load: float, count: int, seed: int) -> dict[str, Any]:
    """How many of the starts end at the fixed point, and how stable that is."""
    return _attraction(laws(law, 64.0, load), count, seed)


def random_attraction(workloads: int, count: int, seed: int) -> list[dict[str, Any]]:
    """The same for random workloads: up to four classes of any concave speedup, size law and load."""
    rng = np.random.default_rng(seed)
    return [
        _attraction(random_workload(rng).at(64.0, float(rng.uniform(0.05, 0.95))), count, seed)
        for _ in range(workloads)
    ]


def _attraction(workload: Workload, count: int, seed: int) -> dict[str, Any]:
    found = mean_field(workload, 64.0, Policy.of(POLICY), starts=count, seed=seed)
    return {
        "classes": len(workload.classes),
        "phases": len(found.state),
        "load": found.load,
        "slowest": max(value.real for value in found.eigenvalues),
        **found.attractor._asdict(),
        **{key: getattr(found.certificate, key) for key in ("proved", "reason", "meet")},
    }


def bracket(law: str, load: float) -> dict[str, Any]:
    """The trajectories from the empty system and from a crowded one, per core, and when they meet."""
    found = mean_field(laws(law, 1.0, load), 1.0, Policy.of(POLICY), starts=1).certificate
    if found.lower is None or found.upper is None:
        raise UnsupportedError("there is no bracket: " + found.reason)
    return {**found.to_dict(), "load": load}


def random_workload(rng: np.random.Generator) -> Workload:
    """One to four classes with ordinary parameters."""
    classes = [
        {
            "name": f"class-{i + 1}",
            "arrivals": {"kind": "poisson", "rate": float(rng.uniform(0.2, 2.0))},
            "size": _random_size(rng),
            "speedup": random_speedup(rng, WIDE),
            "holding_cost": float(np.exp(rng.uniform(-1.0, 1.0))),
        }
        for i in range(int(rng.integers(1, 5)))
    ]
    return Workload.from_dict({"name": "random", "classes": classes})


def _random_size(rng: np.random.Generator) -> dict[str, Any]:
    mean = float(np.exp(rng.uniform(-1.5, 1.5)))
    kind = rng.choice(["exponential", "hyperexponential", "erlang"])
    if kind == "hyperexponential":
        return balanced_hyperexponential(mean, float(rng.uniform(0.1, 0.9)))
    if kind == "erlang":
        return {"kind": str(kind), "stages": int(rng.integers(2, 4)), "mean": mean}
    return {"kind": str(kind), "mean": mean}


def system_paths(
    law: str, load: float, cores: int, start: Sequence[float], time: float, runs: int, seed: int
) -> dict[str, Any]:
    """The largest deviation of the system from the fluid path up to a time, for several seeds; one path."""
    workload = laws(law, cores, load)
    fluid = Fluid(workload, Policy.of(POLICY), float(cores))
    crowd = np.round(np.asarray(start) * cores)
    times = np.linspace(0.0, time, FINE)
    exact = trajectory(fluid, crowd, times).jobs / cores
    deviations, shown = [], None
    for run in range(runs):
        t, jobs = _path(workload, fluid, cores, crowd, time, seed + run)
        known = np.column_stack([np.interp(t, times, column) for column in exact.T])
        deviations.append(float(np.abs(jobs / cores - known).max()))
        shown = shown or _thinned(t, jobs / cores)
    return {
        "cores": cores,
        "deviations": deviations,
        "times": times[:: FINE // KEPT].tolist(),
        "fluid": exact[:: FINE // KEPT].tolist(),
        "path": shown,
    }


def _path(
    workload: Workload, fluid: Fluid, cores: int, crowd: FloatArray, time: float, seed: int
) -> tuple[FloatArray, FloatArray]:
    """Times, and jobs of each class present then: one path of the system that starts with a crowd."""
    source, present, jobs = _with_crowd(workload, fluid, crowd, time, seed)
    rule = program(Policy.of(POLICY), workload, cores)
    run = Run(workload, cores, rule, jobs=jobs, source=source, shortest=1)
    run.extend(jobs)
    records = run.outcome().records
    t = np.cumsum(records.duration)
    # Records that end while the crowd is still coming in belong to no state of the system.
    after = (t > 0.0) & (t <= time)
    return np.concatenate([[0.0], t[after]]), np.vstack([present, records.present[after]])


def _with_crowd(
    workload: Workload, fluid: Fluid, crowd: FloatArray, time: float, seed: int
) -> tuple[Stream, FloatArray, int]:
    """Jobs that are there at time 0, then those that arrive up to `time`; who is there; how many in all."""
    children = np.random.SeedSequence(seed).spawn(2)
    rng = np.random.default_rng(children[0])
    owner = np.repeat(fluid.owner, crowd.astype(int))
    rates = np.repeat(-np.diag(fluid.generator), crowd.astype(int))
    order = rng.permutation(len(owner))
    first = rng.standard_exponential(len(owner)) / rates
    times, classes, sizes = [np.zeros(len(owner))], [owner[order]], [first[order]]
    source = stream(workload, children[1])
    while times[-1].size == 0 or times[-1][-1] <= time:
        chunk = source.take()
        times, classes, sizes = [*times, chunk.times], [*classes, chunk.classes], [*sizes, chunk.sizes]
    t, c, x = np.concatenate(times), np.concatenate(classes), np.concatenate(sizes)
    count = int(np.searchsorted(t, time, side="right"))
    # A little more than asked for, so that the last record is full.
    count = min(count + count // 64 + 2, len(t))
    present = np.bincount(owner, minlength=len(workload.classes)).astype(float)
    return ArrayStream(t[:count], c[:count].astype(np.int64), x[:count]), present, count


def _thinned(times: FloatArray, jobs: FloatArray) -> dict[str, Any]:
    keep = np.unique(np.linspace(0, len(times) - 1, KEPT).astype(int))
    return {"times": times[keep].tolist(), "jobs": jobs[keep].tolist()}
