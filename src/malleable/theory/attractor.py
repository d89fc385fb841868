"""Where trajectories of the fluid equation go: integration, a study from many starts, and a certificate.

The paper conjectures that the fixed point attracts every trajectory. For a rule that is monotone, and a load
that its demand can use, that is a theorem (`docs/explanation/attractor.md`), and `certificate` says whether
it applies. Then two trajectories show how fast: every one that starts between the empty system and an upper
state stays between the trajectories of these two, which rise and fall to the fixed point.

`study` follows trajectories from the empty system, the full one, all jobs in one phase, and random mixtures,
and counts those that arrive: evidence where nothing is proved, and a check where it is. The time given is a
multiple of the slowest time constant at the fixed point, doubled a few times where needed.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.integrate import solve_ivp

from malleable.contracts import FloatArray
from malleable.errors import MalleableError, ParameterError, UnsupportedError
from malleable.theory.many_trajectories import Swarm
from malleable.theory.market import EqualBuyers
from malleable.theory.monotonicity import Monotone, monotone
from malleable.theory.relaxed import least_cores

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import ArrayLike, NDArray

    from malleable.theory.fluid import FixedPoint, Fluid
    from malleable.theory.market import Clearing

ARRIVED = 1e-4
"""Distance from the fixed point, relative to its length, at which a trajectory counts as converged."""
ACCURACY = 1e-6
"""Relative error that the integrator may make in a step."""
EXTENSIONS = 6
"""How often the time of a trajectory that has not arrived is doubled."""
OVER, CLOSE = 1e-6, 1e-12
"""Overload, and time that is left, below which there is none."""
BATCH = 10**6
"""Numbers of jobs by phase, in all trajectories that are followed at once."""
MOST_STEPS = 2000
"""Where a trajectory that does not get on with others is followed alone."""
FEW_JOBS = 1e-9
"""Absolute error allowed, relative to the load."""
CROWDED = 2.0
"""The least widths of all jobs of the upper state, relative to the cores."""
POINTS, SHOWN = 193, 33
"""Points in time at which the two trajectories are compared, and those that are kept."""
CLEARED = 1e-6
"""Relative difference of demand and cores at a fixed point that uses all of them."""


class AbruptError(UnsupportedError):
    """A rule whose answers jump wherever its trajectories go: no step is short enough."""


class Bound(NamedTuple):
    """One of the two trajectories between which the others stay."""

    times: list[float]
    jobs: list[list[float]]
    """Jobs of each class at these times."""


class Certificate(NamedTuple):
    """Whether the fixed point is proved to attract every trajectory, and how fast."""

    proved: bool
    reason: str
    """Why it is proved, or why the theorem does not apply."""
    monotone: bool
    """Whether the rule is monotone, as far as is known."""
    lower: Bound | None = None
    upper: Bound | None = None
    """From the empty system, and from one in which the least widths take twice the cores there are."""
    within: float = ARRIVED
    meet: float | None = None
    """The time from which the two are within this distance of each other, relative to the fixed point."""

    def to_dict(self) -> dict[str, Any]:
        """Its part of a JSON document."""
        ends = {name: end and end._asdict() for name, end in (("lower", self.lower), ("upper", self.upper))}
        return {**self._asdict(), **ends}


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
    """Jobs of each phase, class after class; one row per point in time."""
    jobs: FloatArray
    """Jobs of each class; one row per point in time."""
    left_domain: bool
    """Whether jobs outnumbered cores at one of the times (beyond rounding), where they time-share."""


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
    """The states at the times, one row each, by LSODA; by BDF where LSODA finds no first step."""
    for method in ("LSODA", "BDF"):
        solved = _solved(fluid, start, times, method)
        if solved.success:
            return np.asarray(solved.y.T, dtype=float)
    raise MalleableError(f"the fluid equation cannot be integrated: {solved.message}")


def _solved(fluid: Fluid, start: FloatArray, times: FloatArray, method: str) -> Any:
    """What SciPy makes of it. Every market is found from the one before."""
    market: Clearing | None = None
    calls = 0

    def drift(_: float, state: FloatArray) -> FloatArray:
        nonlocal market, calls
        calls += 1
        if calls > fluid.patience:
            raise AbruptError(
                "the rule changes too abruptly for trajectories of its fluid equation to be followed",
                "simulate, or leave the trajectories out with --starts 0 (starts=0)",
            )
        jobs = np.maximum(fluid.by_class(state), 0.0)
        market = fluid.market(jobs, market) if jobs.any() else None
        return fluid.drift(state, market)

    with warnings.catch_warnings():
        # What goes wrong is told by the result; the warning is for who has nothing else to try.
        warnings.filterwarnings("ignore", message="lsoda", category=UserWarning)
        return solve_ivp(
            drift,
            (times[0], times[-1]),
            start,
            method=method,
            t_eval=times,
            rtol=ACCURACY,
            atol=FEW_JOBS * float(fluid.work.sum()),
        )


def settling_time(fluid: Fluid) -> float:
    """Long enough for the work of a full system to be done."""
    spare = fluid.cores - least_cores(fluid.workload, fluid.buyers)
    return fluid.cores * float(fluid.workload.mean_sizes.max()) / spare


def _leaves(fluid: Fluid, states: FloatArray) -> bool:
    return bool((fluid.overload(states) > 1.0 + OVER).any())


def study(
    fluid: Fluid,
    point: FixedPoint,
    slowest: float,
    starts: int,
    seed: int,
    progress: Callable[[int, int], None] | None,
) -> Attractor:
    """Follow trajectories from many starts until they arrive or time is up."""
    # Long enough for a deviation to fall by 1e-8.
    time = settling_time(fluid) if slowest >= 0.0 else 20.0 / -slowest
    length = float(np.linalg.norm(point.state))
    converged = left = done = 0
    worst = 0.0
    remaining = _starts(fluid, point.state, starts, seed)
    while batch := list(islice(remaining, max(1, BATCH // len(point.state)))):
        states, span = np.array(batch), time
        outside = np.zeros(len(states), dtype=bool)
        going = np.arange(len(states))
        for extension in range(EXTENSIONS):
            states[going], left_now = _followed(fluid, states[going], point, span)
            outside[going] |= left_now
            distances = np.linalg.norm(states - point.state, axis=1) / length
            arrived = len(states) if extension == EXTENSIONS - 1 else int((distances <= ARRIVED).sum())
            if progress is not None:
                for count in range(done + len(states) - len(going), done + arrived):
                    progress(count + 1, starts)
            going, span = np.flatnonzero(distances > ARRIVED), 2.0 * span
            if not len(going):
                break
        converged += int((distances <= ARRIVED).sum())
        left += int(outside.sum())
        worst = max(worst, float(distances.max()))
        done += len(states)
    return Attractor(starts, converged, worst, left)


def certificate(fluid: Fluid, point: FixedPoint, slowest: float, *, bracket: bool) -> Certificate:
    """Whether the theorem applies; with `bracket`, the two trajectories that show how fast."""
    known = monotone(fluid.policy, fluid.workload, fluid.cores)
    holds = known is not None and known.holds
    reason = _obstacle(fluid, point, known)
    if reason:
        return Certificate(False, reason, holds)
    proof = "the rule is monotone and its demand crosses the cores, so every trajectory is squeezed"
    if not bracket:
        return Certificate(True, proof, holds)
    return _bracketed(fluid, point, slowest, Certificate(True, proof, holds))


def _obstacle(fluid: Fluid, point: FixedPoint, known: Monotone | None) -> str:
    """The assumption of the theorem that is not known to hold; empty if all do."""
    if known is None:
        return "the rule looks at more than class counts"
    if not known.holds:
        return f"the rule is not monotone: from {known.example} jobs a width rises by {known.worst:.1%}"
    if not known.by_construction:
        return f"the rule was monotone at {known.asked} random counts, which is evidence and no proof"
    return _obstacle_to_market(fluid, point)


def _obstacle_to_market(fluid: Fluid, point: FixedPoint) -> str:
    """What is not as the theorem asks of a market and its load."""
    if not fluid.shares_time:
        return "jobs that outnumber the cores do not time-share: those worth less wait"
    if isinstance(fluid.buyers, EqualBuyers) and not _concave_from_zero(fluid):
        return (
            "with equal shares the speedups must be concave from 0 on, or there may be several fixed points"
        )
    used = float(point.jobs @ point.market.quantities)
    sated = bool((point.market.quantities >= point.market.high).all() and used < fluid.cores)
    if not (abs(used - fluid.cores) <= CLEARED * fluid.cores or (fluid.satiable and sated)):
        return f"demand uses {used:.4g} of {fluid.cores:g} cores at any price, however low"
    return ""


def _concave_from_zero(fluid: Fluid) -> bool:
    """Whether every speedup is concave, and nowhere better than one core for each core."""
    speedups = fluid.buyers.speedups
    efficient = speedups.most_efficient
    return bool(speedups.concave.all() and (speedups(efficient) <= efficient * (1.0 + CLEARED)).all())


def _bracketed(fluid: Fluid, point: FixedPoint, slowest: float, proved: Certificate) -> Certificate:
    """The certificate with the trajectories from both sides, followed until they meet."""
    # As if all jobs had been at this share of their speed on the least width for ever.
    share = float(fluid.work @ (fluid.floor / fluid.buyers.speedups(fluid.floor))[fluid.owner])
    share /= CROWDED * fluid.cores
    speeds = share * fluid.buyers.speedups(fluid.floor)
    starts = (np.zeros(len(point.state)), fluid.work / speeds[fluid.owner])
    length = float(np.linalg.norm(point.state))
    span = settling_time(fluid) if slowest >= 0.0 else 20.0 / -slowest
    for _ in range(EXTENSIONS):
        times = np.linspace(0.0, span, POINTS)
        low, high = _pair(fluid, np.array(starts), times, point.market.price)
        apart = np.linalg.norm(high - low, axis=1) / length
        far = np.flatnonzero(apart > ARRIVED)
        if len(far) == 0 or far[-1] + 1 < POINTS:
            first = int(far[-1]) + 1 if len(far) else 0
            lower, upper = (_shown(times, fluid.by_class(path)) for path in (low, high))
            return proved._replace(lower=lower, upper=upper, meet=float(times[first]))
        span *= 2.0
    return proved


def _shown(times: FloatArray, jobs: FloatArray) -> Bound:
    kept = slice(None, None, (POINTS - 1) // (SHOWN - 1))
    return Bound(times[kept].tolist(), jobs[kept].tolist())


def _pair(fluid: Fluid, starts: FloatArray, times: FloatArray, price: float) -> list[FloatArray]:
    """Two trajectories at these times, by the method for many, which demands that jump do not hold up.

    Steps are no longer than the times are apart, so straight lines between them are near enough.
    """
    swarm = Swarm(fluid, starts, price, ACCURACY, FEW_JOBS * float(fluid.work.sum()))
    now, end, most = np.zeros(2), float(times[-1]), float(times[1])
    passed = [(now, starts)]
    for _ in range(MOST_STEPS):
        # One that is there waits for the other.
        now = now + swarm.advance(np.clip(end - now, CLOSE * end, most))
        passed.append((now, np.maximum(swarm.states, 0.0)))
        if (now >= end * (1.0 - CLOSE)).all():
            break
    else:
        return [np.maximum(_integrate(fluid, start, times), 0.0) for start in starts]
    t, z = (np.array(column) for column in zip(*passed, strict=True))
    return [
        np.column_stack([np.interp(times, t[:, row], z[:, row, phase]) for phase in range(z.shape[2])])
        for row in range(2)
    ]


def _followed(
    fluid: Fluid, starts: FloatArray, point: FixedPoint, span: float
) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Where trajectories are after a time, and whether they passed through states with too many jobs."""
    if not fluid.by_price:
        return _followed_alone(fluid, starts, span)
    ends, outside = starts.copy(), fluid.overload(starts) > 1.0 + OVER
    few = FEW_JOBS * float(fluid.work.sum())
    swarm = Swarm(fluid, starts, point.market.price, ACCURACY, few)
    rows, ahead = np.arange(len(starts)), np.full(len(starts), span)
    for _ in range(MOST_STEPS):
        ahead -= swarm.advance(ahead)
        outside[rows] |= fluid.overload(swarm.states) > 1.0 + OVER
        going = ahead > CLOSE * span
        if not going.all():
            ends[rows[~going]] = swarm.states[~going]
            rows, ahead = rows[going], ahead[going]
            swarm.keep(going)
        if not len(rows):
            break
    for row, state, rest in zip(rows, swarm.states, ahead, strict=True):
        path = _integrate(fluid, np.maximum(state, 0.0), np.linspace(0.0, rest, 33))
        ends[row], outside[row] = path[-1], outside[row] or _leaves(fluid, path)
    return np.maximum(ends, 0.0), outside


def _followed_alone(fluid: Fluid, starts: FloatArray, span: float) -> tuple[FloatArray, NDArray[np.bool_]]:
    """The same one after the other, for rules that have to be asked at every state."""
    paths = [_integrate(fluid, start, np.linspace(0.0, span, 33)) for start in starts]
    return np.maximum([path[-1] for path in paths], 0.0), np.array([_leaves(fluid, path) for path in paths])


def _starts(fluid: Fluid, target: FloatArray, count: int, seed: int) -> Iterator[FloatArray]:
    """The empty system, the full one, all jobs in one phase, and random mixtures, none beyond the cores."""
    rng = np.random.default_rng(seed)
    phases = len(target)
    # Jobs of one phase alone that fill the cores.
    full = fluid.cores / fluid.floor[fluid.owner]
    special = [np.zeros(phases), target / float(fluid.overload(target))]
    corners = rng.permutation(phases)[: max(0, (count - 2) // 2)]
    for i in range(count):
        mixture = rng.dirichlet(np.full(phases, 0.5)) * full
        fill = 1.0 - 1e-3 * rng.random() if i % 4 == 0 else rng.random()
        if i < len(special):
            yield special[i]
        elif i - len(special) < len(corners):
            yield np.where(np.arange(phases) == corners[i - len(special)], full, 0.0)
        else:
            yield mixture * fill
