"""The mean field of a class rule: fixed point, stability, attraction, and the correction at finite n.

The fluid equation (`theory.fluid`) has one fixed point, where WHAM's cost is the lower bound V*. That the
system's cost converges to it needs more: every trajectory must end there. The paper conjectures this. So we
report the eigenvalues of the linearised equation (all with negative real part: the point is stable), and
integrate from many starts, the empty system, the full one, all jobs in one phase, and random mixtures, to see
how many end at the fixed point.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.integrate import solve_ivp

from malleable import catalog
from malleable.contracts import FloatArray
from malleable.errors import MalleableError, ParameterError
from malleable.spec import NonNegative, validate
from malleable.theory.fluid import Fluid
from malleable.theory.refined import Refined, refine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import ArrayLike

    from malleable.contracts import Policy
    from malleable.model import Workload

ARRIVED = 1e-4
"""Distance from the fixed point, relative to its length, at which a trajectory counts as converged."""
ACCURACY = 1e-7
"""Relative error that the integrator may make in a step."""
EXTENSIONS = 6
"""How often the time of a trajectory that has not arrived is doubled."""
FEW_JOBS = 1e-12
"""Jobs relative to those at the fixed point, below which a count is nothing."""


class ClassPoint(NamedTuple):
    """One class at the fixed point: mean number of jobs present, and cores for each of them."""

    name: str
    jobs: float
    cores: float


class Attractor(NamedTuple):
    """What became of trajectories from many starts."""

    starts: int
    converged: int
    worst_distance: float
    """Largest final distance from the fixed point, relative to its length."""
    left_domain: int
    """Trajectories that passed through states with more jobs than cores, where they time-share."""


@dataclass(frozen=True)
class Trajectory:
    """A solution of the fluid equation."""

    times: FloatArray
    state: FloatArray
    """Jobs of each phase, class after class; one row a time."""
    jobs: FloatArray
    """Jobs of each class; one row a time."""
    left_domain: bool
    """Whether jobs outnumbered cores at one of the times (beyond rounding), where they time-share."""


@dataclass(frozen=True)
class MeanField:
    """The mean field of a policy on a workload."""

    policy: str
    cores: float
    load: float
    classes: tuple[ClassPoint, ...]
    state: tuple[float, ...]
    """Jobs of each phase at the fixed point, class after class."""
    price: float
    cost: float
    """Mean holding cost per job in the limit of many cores."""
    eigenvalues: tuple[complex, ...]
    """Of the linearised equation, fastest decay first."""
    refined: Refined
    attractor: Attractor
    fluid: Fluid = field(repr=False, compare=False)

    @property
    def stable(self) -> bool:
        """Whether small deviations from the fixed point die out."""
        return all(value.real < 0.0 for value in self.eigenvalues)

    def trajectory(self, start: ArrayLike, times: ArrayLike) -> Trajectory:
        """The fluid path from `start` (jobs by phase) at times[0], at the given times."""
        return trajectory(self.fluid, start, times)

    def to_dict(self) -> dict[str, Any]:
        """The JSON document of `malleable meanfield`; an eigenvalue is a number, or [re, im] if complex."""
        return {
            "workload": self.fluid.workload.name,
            "policy": self.policy,
            "cores": self.cores,
            "load": self.load,
            "price": self.price,
            "fixed_point": [c._asdict() for c in self.classes],
            "cost": self.cost,
            "stable": self.stable,
            "eigenvalues": [v.real if v.imag == 0.0 else [v.real, v.imag] for v in self.eigenvalues],
            "refined": self.refined.to_dict(),
            "attractor": self.attractor._asdict(),
        }


def mean_field(
    workload: Workload,
    cores: float,
    policy: Policy,
    *,
    starts: int = 25,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> MeanField:
    """Fixed point, stability, 1/n correction, and an attractor study from `starts` starts.

    `progress(done, starts)` is called after every trajectory.
    """
    _check_count("starts", starts)
    _check_count("seed", seed)
    fluid = Fluid(workload, policy, cores)
    point = fluid.fixed_point()
    eigenvalues = np.linalg.eigvals(fluid.jacobian(point.state, point.market))
    rows = zip(workload.class_names, point.jobs.tolist(), point.widths.tolist(), strict=True)
    order = np.lexsort((eigenvalues.imag, eigenvalues.real))
    return MeanField(
        policy=_name(policy),
        cores=fluid.cores,
        load=workload.load(fluid.cores),
        classes=tuple(ClassPoint(*row) for row in rows),
        state=tuple(point.state.tolist()),
        price=point.price,
        cost=point.cost,
        eigenvalues=tuple(map(complex, eigenvalues[order].tolist())),
        refined=refine(fluid, point),
        attractor=_study(fluid, point.state, float(eigenvalues.real.max()), starts, seed, progress),
        fluid=fluid,
    )


def trajectory(fluid: Fluid, start: ArrayLike, times: ArrayLike) -> Trajectory:
    """Integrate the fluid equation from `start` (jobs by phase) at times[0]."""
    z, t = np.asarray(start, dtype=float), np.asarray(times, dtype=float)
    phases = len(fluid.owner)
    if z.shape != (phases,) or not np.isfinite(z).all() or (z < 0.0).any():
        raise ParameterError(
            f"a start must have {phases} counts of jobs, none negative, got {z.tolist()!r:.60}",
            "give one count for each phase, class after class",
        )
    if t.ndim != 1 or len(t) == 0 or not np.isfinite(t).all() or (np.diff(t) <= 0.0).any():
        raise ParameterError("times must increase", "give at least one time")
    state = np.vstack([z[None], _integrate(fluid, z, t)[1:]]) if len(t) > 1 else z[None]
    return Trajectory(t, state, fluid.by_class(state), left_domain=_leaves(fluid, state))


def _integrate(fluid: Fluid, start: FloatArray, times: FloatArray) -> FloatArray:
    """LSODA, one row a time. The price of the last call is the guess of the next."""
    guess: float | None = None

    def drift(_: float, state: FloatArray) -> FloatArray:
        nonlocal guess
        jobs = np.maximum(fluid.by_class(state), 0.0)
        if not jobs.any():
            return fluid.arrivals
        market = fluid.market(jobs, guess)
        guess = market.price if 0.0 < market.price < np.inf else None
        return fluid.drift(state, market)

    smallest = ACCURACY * max(float(start.max()), float(fluid.arrivals.max()) * FEW_JOBS)
    scale = ACCURACY * float(np.linalg.solve(-fluid.generator.T, fluid.arrivals).max()) * 1e-2
    solved = solve_ivp(
        drift,
        (times[0], times[-1]),
        start,
        method="LSODA",
        t_eval=times,
        rtol=ACCURACY,
        atol=min(max(smallest, scale * 1e-3), scale),
    )
    if not solved.success:
        raise MalleableError(f"the fluid equation cannot be integrated: {solved.message}")
    return np.asarray(solved.y.T, dtype=float)


def _leaves(fluid: Fluid, states: FloatArray) -> bool:
    return bool((fluid.overload(states) > 1.0 + 1e-6).any())


def _study(
    fluid: Fluid,
    target: FloatArray,
    slowest: float,
    starts: int,
    seed: int,
    progress: Callable[[int, int], None] | None,
) -> Attractor:
    """Follow trajectories from many starts until they arrive or time is up."""
    length = float(np.linalg.norm(target))
    # Long enough for a deviation to fall by 1e-8, and for the work of a full system to be done.
    spare = fluid.cores - fluid.workload.total_load
    drain = fluid.cores * float(fluid.workload.mean_sizes.max()) / spare
    time = drain if slowest >= 0.0 else 20.0 / -slowest
    converged = left = 0
    worst = 0.0
    for done, start in enumerate(_starts(fluid, target, starts, seed), 1):
        distance, outside, z, span = np.inf, False, start, time
        for _ in range(EXTENSIONS):
            path = _integrate(fluid, z, np.linspace(0.0, span, 33))
            outside |= _leaves(fluid, path)
            z, span = np.maximum(path[-1], 0.0), 2.0 * span
            distance = float(np.linalg.norm(z - target)) / length
            if distance <= ARRIVED:
                break
        converged += distance <= ARRIVED
        left += outside
        worst = max(worst, distance)
        if progress is not None:
            progress(done, starts)
    return Attractor(starts, converged, worst, left)


def _starts(fluid: Fluid, target: FloatArray, count: int, seed: int) -> Iterator[FloatArray]:
    """The empty system, the full one, all jobs in one phase, and random mixtures, none beyond the cores."""
    rng = np.random.default_rng(seed)
    phases = len(target)
    # Jobs of one phase alone that fill the cores.
    full = fluid.cores / np.maximum(fluid.buyers.floor, 1.0)[fluid.owner]
    special = [np.zeros(phases), target / float(fluid.overload(target))]
    corners = rng.permutation(phases)[: max(0, (count - 2) // 2)]
    special += [np.eye(phases)[u] * full for u in corners]
    for i in range(count):
        mixture = rng.dirichlet(np.full(phases, 0.5)) * full
        fill = 1.0 - 1e-3 * rng.random() if i % 4 == 0 else rng.random()
        yield special[i] if i < len(special) else mixture * fill


def _name(policy: Policy) -> str:
    """The policy as it is written on the command line: `greedy:weight=cmu`."""
    options = ",".join(f"{key}={value}" for key, value in policy.parameters().items())
    name = catalog.display("policies", policy.kind)
    return f"{name}:{options}" if options else name


def _check_count(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0:
        raise ParameterError(f"{name} must be a whole number, 0 or more, got {value!r:.60}")
