"""The fluid equation of a class rule that is asked itself.

Such a rule is a user's, or looks at the counts in other ways than through one price.

As in the engine, a rule of the discipline SHARE is asked whatever the counts. Others are asked while all jobs
can have a core; beyond that all jobs share the cores in time, as in `theory.fluid`. Counts are real numbers,
and differences take the place of formulas. With h_i the speed of a class-i job and C = Cov(Z),

    ∂F_iu/∂z_jw = δ_ij h_i Q_i(w,u) + (∂h_i/∂Z_j) (z_i Q_i)_u
    D²F_iu : W  = 2 Σ_w (Σ_b W_wb ∂h_i/∂Z_b) Q_i(w,u) + (Σ_jk C_jk ∂²h_i/∂Z_j∂Z_k) (z_i Q_i)_u.

The fixed point is looked for around WHAM's, and if need be where a trajectory from there goes. An expansion
in 1/n needs a rule that does the same, in proportion, on twice the cores; one that is fitted to a number of
cores has the equation of this number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy import optimize

from malleable.contracts import called, not_a_class_rule
from malleable.engine.enforcement import refusal
from malleable.engine.rule_interface import (
    COUNTS,
    NEGATIVE,
    NOT_A_NUMBER,
    OVER_ALLOCATED,
    POOLS,
    SHARE,
    TOLERANCE,
    Program,
)
from malleable.errors import PolicyError, UnstableError, UnsupportedError
from malleable.theory.attractor import AbruptError, settling_time, trajectory
from malleable.theory.fluid import FixedPoint, Fluid, Response
from malleable.theory.market import Clearing
from malleable.theory.monotonicity import says_its_demand

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from malleable.contracts import FloatArray, Policy
    from malleable.model import Workload

STEP = 1e-5
"""Relative change of a count over which the reaction of the speeds is measured."""
BEND = 2e-3
"""The same for second differences."""
BALANCED = 1e-8
"""Relative difference of what comes and what leaves at a fixed point."""
PRECISE = 1e-12
"""What the search for it aims at."""
SOONER_OR_LATER = 8
"""How often the time is doubled in which a trajectory may come near a fixed point."""
FEWEST, MOST = 1e-12, 1e6
"""Jobs per core of a class at a fixed point."""
ALIKE = 1e-6
"""Relative difference of widths on twice the cores that is none."""
LINES, BENT = 32, 3.2
"""Points from the fixed point to one standard deviation, and how much larger second differences are at least
over twice the distance where there is no kink."""
FLAT, SMALL = 1e-7, 0.05
"""Second differences relative to the speed, and to the largest one, that say nothing."""
NEAREST = 0.2
"""The share of its jobs that a class keeps where kinks are looked for."""
CALLS, CALLS_PER_PHASE = 20_000, 500
"""How often a trajectory may ask the rule: some hundred times are usual, and many more where it jumps."""
SELDOM = 2.0
"""Standard deviations within which a class may at times have no jobs."""
FITTED = "the rule is fitted for this number of cores, so there is no expansion in 1/n"
OWN_SIZE = "the rule does something else on twice the cores, so there is no expansion in 1/n"


def fluid_of(workload: Workload, policy: Policy, cores: float) -> Fluid:
    """The fluid equation of a policy: through a price where that is enough, else by asking its rule."""
    acting = policy.in_effect(workload, cores)
    by_price = acting.by_price and says_its_demand(acting, workload)
    return Fluid(workload, acting, cores) if by_price else CountFluid(workload, acting, cores)


class CountFluid(Fluid):
    """The fluid equation of a class rule, as the rule itself answers."""

    by_price: ClassVar[bool] = False

    def __init__(self, workload: Workload, policy: Policy, cores: float) -> None:
        super().__init__(workload, policy, cores)
        self._fitted = says_its_demand(policy, workload)
        program = policy.program(workload, self.cores)
        if program is None or program.sees != COUNTS:
            raise self._no_rule()
        if program.discipline == POOLS:
            problem = f"{called(policy)} keeps a queue for each class, so it has no mean-field equation"
            raise UnsupportedError(
                problem, "simulate, or use wham, greedy, equi, or a class rule of your own"
            )
        self._rule = Asked(program, policy)
        self._always = program.discipline == SHARE
        self.patience = CALLS + CALLS_PER_PHASE * len(self.owner)

    def _no_rule(self) -> UnsupportedError:
        if not self._fitted:
            return not_a_class_rule(self.policy)
        return UnsupportedError(
            "with these speedups the policy looks at single jobs, so it has no mean-field equation",
            "use concave speedups that start at one core, or simulate",
        )

    @property
    def floor(self) -> FloatArray:
        return super().floor if self._fitted else np.ones(len(self.workload.classes))

    def market(self, jobs: FloatArray, previous: Clearing | None = None) -> Clearing:  # noqa: ARG002 - no search
        total = float(jobs.sum())
        if total >= self.cores and not self._always:
            widths = np.full(len(jobs), self.cores / total)
        else:
            widths = self._rule.widths(self.workload, jobs, self.cores)
        return Clearing(np.nan, widths, widths, 0.0)

    def response(self, market: Clearing) -> Response:
        """Cores and speeds; they do not react to a price."""
        none = np.zeros(len(market.low))
        speeds = np.asarray(self.buyers.speedups(market.low))
        return Response(np.array([market.low, none, none]), np.array([speeds, none, none]), tied=False)

    def speeds_at(self, jobs: FloatArray) -> FloatArray:
        """The speed of a job of each class."""
        return np.asarray(self.buyers.speedups(self.market(np.maximum(jobs, 0.0)).low))

    def slopes(self, jobs: FloatArray) -> FloatArray:
        """∂h_i/∂Z_j, class i in rows."""
        reaction = []
        for i in range(len(jobs)):
            step = np.zeros(len(jobs))
            step[i] = STEP * max(float(jobs[i]), 1e-3)
            reaction.append((self.speeds_at(jobs + step) - self.speeds_at(jobs - step)) / (2.0 * step[i]))
        return np.array(reaction).T

    def jacobian(self, state: FloatArray, market: Clearing | None = None) -> FloatArray:  # noqa: ARG002
        jobs = self.by_class(state)
        own = self.speeds_at(jobs)[self.owner, None] * self.generator.T
        return np.asarray(own + self.flow(state)[:, None] * self.slopes(jobs)[np.ix_(self.owner, self.owner)])

    def curvature(
        self,
        state: FloatArray,
        W: FloatArray,
        market: Clearing | None = None,  # noqa: ARG002 - the state says it
    ) -> FloatArray:
        jobs, phases = self.by_class(state), np.arange(len(self.owner))
        reacting = W @ self.slopes(jobs)[:, self.owner].T
        own = 2.0 * reacting[phases, self.owner] @ self.generator
        shared = np.zeros(len(jobs))
        for variance, way in principal(self.by_class(self.by_class(W).T)):
            shared += variance * self._bend(jobs, way)
        return np.asarray(own + shared[self.owner] * self.flow(state))

    def _bend(self, jobs: FloatArray, way: FloatArray) -> FloatArray:
        """The second derivative of the speeds in a direction, fourth order in the step (Richardson)."""
        moving = way != 0.0
        length = BEND * float(np.min(jobs[moving] / np.abs(way[moving])))

        def difference(step: float) -> FloatArray:
            both = self.speeds_at(jobs + step * way) + self.speeds_at(jobs - step * way)
            return np.asarray((both - 2.0 * self.speeds_at(jobs)) / step**2)

        return (4.0 * difference(length) - difference(2.0 * length)) / 3.0

    def fixed_point(self) -> FixedPoint:
        """Where the work that leaves is the work that comes."""
        wham = super().fixed_point()
        jobs = self._balanced(wham.jobs)
        if jobs is None:
            jobs = self._settled(wham.state)
        market = self.market(jobs)
        state = self.work / self.speeds_at(jobs)[self.owner]
        cost = float(self.workload.holding_costs @ jobs) / self.workload.total_rate
        return FixedPoint(state, jobs, market.low, wham.price if self._fitted else np.nan, cost, market)

    def _balanced(self, near: FloatArray) -> FloatArray | None:
        """Counts near these where as much work of every class leaves as comes; None where none were found."""
        low, high = np.log(FEWEST * self.cores), np.log(MOST * self.cores)

        def jobs_at(logarithms: FloatArray) -> FloatArray:
            return np.exp(np.clip(logarithms, low, high))

        start = np.clip(np.log(np.maximum(near, FEWEST * self.cores)), low, high)
        found = optimize.root(lambda x: self._surplus(jobs_at(x)), start, method="hybr", tol=PRECISE)
        jobs = jobs_at(found.x)
        return jobs if np.abs(self._surplus(jobs)).max() <= 1e2 * BALANCED else None

    def _surplus(self, jobs: FloatArray) -> FloatArray:
        """By how much the work that leaves exceeds what comes, relative to that."""
        return np.asarray(jobs * self.speeds_at(jobs) / self.workload.loads - 1.0)

    def _settled(self, state: FloatArray) -> FloatArray:
        """The same at the end of a trajectory, which is given more and more time."""
        span, jobs = settling_time(self), self.by_class(state)
        try:
            for _ in range(SOONER_OR_LATER):
                before = jobs
                state = np.maximum(trajectory(self, state, [0.0, span]).state[-1], 0.0)
                jobs, span = self.by_class(state), 2.0 * span
                found = self._balanced(jobs)
                if found is not None:
                    return found
        except AbruptError:
            raise self._unsettled("its answers jump wherever the numbers of jobs go") from None
        short = self._surplus(jobs)
        worst = int(np.argmin(short))
        if jobs[worst] > max(2.0 * before[worst], self.cores):
            name = self.workload.class_names[worst]
            raise UnstableError(
                f"{called(self.policy)} lets class {name!r} grow without bound: with {jobs[worst]:.4g} jobs "
                f"of it present, {1.0 + short[worst]:.0%} of its arriving work is done",
                "give the class more cores, or use more cores or a lower load",
            )
        raise self._unsettled("the numbers of jobs go on changing")

    def _unsettled(self, reason: str) -> UnsupportedError:
        problem = f"no fixed point of {called(self.policy)} was found: {reason}"
        return UnsupportedError(problem, "simulate, or use wham, greedy or equi")

    def no_expansion(self, point: FixedPoint) -> str:
        """The rule must give the same widths to twice the jobs on twice the cores."""
        if self._fitted:
            return FITTED
        double = self.workload.scaled(2.0)
        program = self.policy.program(double, 2.0 * self.cores)
        if program is None or program.sees != COUNTS:
            return OWN_SIZE
        twice = Asked(program, self.policy)
        rng = np.random.default_rng(0)
        for factors in (np.ones(len(point.jobs)), *rng.uniform(0.8, 1.1, (4, len(point.jobs)))):
            jobs = point.jobs * factors
            if not self._always and jobs.sum() >= self.cores:
                continue
            wanted = self.market(jobs).low
            if not np.allclose(twice.widths(double, 2.0 * jobs, 2.0 * self.cores), wanted, rtol=ALIKE):
                return OWN_SIZE
        return ""

    def kinks(self, point: FixedPoint, covariance: FloatArray) -> NDArray[np.bool_]:
        """Classes with a kink or a jump of the rule as far from the fixed point as the counts fluctuate."""
        found = self._jumps_without(point, np.sqrt(np.diag(covariance)))
        for variance, way in principal(covariance):
            steps = np.sqrt(max(variance, 0.0)) * np.linspace(-1.0, 1.0, 2 * LINES + 1)
            line = point.jobs + steps[:, None] * way
            line = line[(line >= NEAREST * point.jobs).all(axis=1)]
            if len(line) >= LINES // 2:
                found |= bends_abruptly(np.array([self.speeds_at(jobs) for jobs in line]))
        return found

    def _jumps_without(self, point: FixedPoint, spread: FloatArray) -> NDArray[np.bool_]:
        """Classes that are at times not there, where the others are then served in another way."""
        found = np.zeros(len(point.jobs), dtype=bool)
        for i in np.flatnonzero(point.jobs < SELDOM * spread):
            none, few = point.jobs.copy(), point.jobs.copy()
            none[i], few[i] = 0.0, STEP**2 * point.jobs[i]
            without, beside = (np.delete(self.speeds_at(jobs), i) for jobs in (none, few))
            found[i] = not np.allclose(without, beside, rtol=ALIKE)
        return found


def bends_abruptly(speeds: FloatArray) -> NDArray[np.bool_]:
    """Whether the columns, values at equal distances, have a kink or a jump.

    Over twice the distance, second differences of a smooth function are four times as large. Around a kink
    they are twice as large, or up to three times between two points; at a jump they are as large.
    """
    near = np.abs(speeds[1:-3] - 2.0 * speeds[2:-2] + speeds[3:-1])
    far = np.abs(speeds[:-4] - 2.0 * speeds[2:-2] + speeds[4:])
    counts = near > np.maximum(FLAT * speeds.max(axis=0), SMALL * near.max(axis=0))
    return np.asarray((counts & (far < BENT * near)).any(axis=0))


def principal(covariance: FloatArray) -> list[tuple[float, FloatArray]]:
    """Variances and directions that make up a covariance."""
    variances, directions = np.linalg.eigh(covariance)
    return list(zip(variances.tolist(), directions.T, strict=True))


class Asked:
    """A class rule, compiled if it can be, that is asked at real-valued counts; what it says is checked."""

    def __init__(self, program: Program, policy: Policy) -> None:
        # Loads numba, which most of the theory does without.
        from malleable.engine.compiling import (  # noqa: PLC0415
            CLASS_RULE,
            RAISED,
            can_compile,
            compile_rule,
            on_copies,
        )

        self._plain, self._table, self._raised = program.rule, program.table.copy(), RAISED
        self._rule: Any = on_copies(program.rule)
        self._compiled = False
        if can_compile():
            rule, self._compiled = compile_rule(program.rule, CLASS_RULE, called(policy))
            self._rule = rule if self._compiled else self._rule

    def widths(self, workload: Workload, jobs: FloatArray, cores: float) -> FloatArray:
        """Cores for a job of each class; none where there is no job."""
        counts, out = np.ascontiguousarray(jobs, dtype=float), np.zeros(len(jobs))
        self._rule(counts, cores, self._table, out)
        if self._compiled and (out == self._raised).any():
            self._plain(counts.copy(), cores, self._table, np.zeros(len(jobs)))
        widths = np.where(counts > 0.0, out, 0.0)
        if not ((widths >= 0.0).all() and float(counts @ widths) <= cores * (1.0 + TOLERANCE)):
            raise _refused(workload, counts, cores, widths)
        return widths


def _refused(workload: Workload, counts: FloatArray, cores: float, widths: FloatArray) -> PolicyError:
    """The error of the simulator, with real-valued counts."""
    status = NOT_A_NUMBER if np.isnan(widths).any() else NEGATIVE if (widths < 0.0).any() else OVER_ALLOCATED
    names = zip(workload.class_names, counts, strict=True)
    place = "with " + ", ".join(f"{count:.4g} of {name}" for name, count in names)
    return refusal(status, cores, place, "cores per job " + ", ".join(f"{k:g}" for k in widths))
