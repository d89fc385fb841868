"""The Markov decision process of malleable jobs: states, moves, costs, and what a given policy costs.

Poisson arrivals, phase-type sizes (p_i, Q_i). A *part* is a class in a phase (just a class, if sizes are
exponential), and a state holds the number z_p of jobs of each. When part p works at total speed R_p,

    z → z + e_p            at rate  λ_i p_iu                 an arrival
    z → z − e_p            at rate  q_iu R_p                 a departure
    z → z − e_p + e_q      at rate  Q_i(u,v) R_p             a change of phase

so the generator of a policy is A + Σ_p diag(R_p) S_p with fixed sparse matrices A and S_p. Its cost per unit
of time g and its relative values h solve c(z) − g + (A + Σ_p diag(R_p) S_p) h = 0 with h = 0 in the empty
state, a sparse linear system; a few 10⁴ states take a second.

**Truncation.** At most `limit` jobs are let in; what of those that come later? If they are lost for nothing,
a clever policy keeps the system full, so that it is spared arrivals: with short and long jobs at load 0.9 on
two cores and a limit of 80, where WHAM loses 5·10⁻⁸ of its arrivals, the "optimum" is 1.7 % too low. So a job
that is lost is *charged* what it would have cost to let it in. With that many jobs, all n cores have a job
each and work leaves at rate n. If classes are served in the order of θ_i = c_i/E[X_i], the work S_k of the
first k is that of an M/G/1 queue of speed n, of relative value S_k²/(2(n − σ_k)) with σ_k = Σ_{j≤k} load_j:

    h(z) ≈ Σ_k (θ_k − θ_{k+1}) E[S_k²]/(2(n − σ_k)),        charge_p(z) = h(z + e_p) − h(z).

On one core with exponential sizes this is exact, at any limit; else the relative error is some P(N = limit).
`lost="free"` charges nothing: the chain of `theory.markov_chain`, and, since a policy could treat the jobs
it lost as if they were there, an optimum that is never above that of the unlimited system.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse import linalg

from malleable.errors import ParameterError, UnsupportedError
from malleable.theory.any_width import check_any_width
from malleable.theory.markov_chain import IntArray, Lattice, PhaseType
from malleable.theory.size_phases import size_phases

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from malleable.contracts import FloatArray
    from malleable.model import JobClass, Workload

Lost = Literal["charged", "free"]

PIVOTING = 0.01
"""How much smaller than the largest entry a pivot on the diagonal may be; far less fill-in than with 1."""
REFINEMENTS = 2


class Evaluation(NamedTuple):
    """What a policy costs on the truncated chain."""

    cost: float
    """Mean holding cost per job, (1/λ) Σ c_i E[Z_i], with the charge for lost jobs if there is one."""
    jobs: FloatArray
    """E[Z_i] of each class."""
    mass_at_limit: float
    """P(N = limit): the share of arrivals that are lost."""


class Process:
    """The decision process of a workload on `cores` cores with at most `limit` jobs."""

    def __init__(
        self, workload: Workload, cores: float, limit: int, lost: Lost = "charged", max_states: int = 100_000
    ) -> None:
        if limit < 1 or lost not in {"charged", "free"}:
            raise ParameterError(f"cannot truncate at {limit!r:.60} jobs with lost={lost!r:.60}")
        check_any_width(workload, "decision process")
        laws = [phases(job_class) for job_class in workload.classes]
        self.workload, self.lost = workload, lost
        self.owner = np.repeat(np.arange(len(laws)), [len(p) for p, _ in laws])
        """The class of each part."""
        self.lattice = Lattice(len(self.owner), limit, max_states)
        states, room = self.lattice.states, self.lattice.totals < limit
        rates = np.concatenate([rate * p for rate, (p, _) in zip(workload.rates, laws, strict=True)])
        self.costs: FloatArray = states @ workload.holding_costs[self.owner]
        if lost == "charged":
            self.costs[~room] += charges(workload, laws, cores, states[~room]) @ rates
        unit = np.eye(len(self.owner), dtype=np.int64)
        self.arrivals = self._generator([(step, rate * room) for step, rate in zip(unit, rates, strict=True)])
        self.services = []
        for part, (u, Q) in enumerate((u, Q) for p, Q in laws for u in range(len(p))):
            busy = (states[:, part] > 0).astype(float)
            moves = [(-unit[part], -Q[u].sum() * busy)]
            moves += [(unit[part - u + v] - unit[part], Q[u, v] * busy) for v in range(len(Q)) if v != u]
            self.services.append(self._generator(moves))

    def _generator(self, moves: Sequence[tuple[IntArray, FloatArray]]) -> Any:
        """Moves with their rates in each state as a sparse generator."""
        size = len(self.lattice.states)
        total = sparse.csr_array((size, size))
        for step, rate in moves:
            rows = np.flatnonzero(rate)
            columns = self.lattice.index(self.lattice.states[rows] + step)
            values = np.concatenate([rate[rows], -rate[rows]])
            where = np.concatenate([rows, rows]), np.concatenate([columns, rows])
            total = total + sparse.coo_array((values, where), shape=(size, size)).tocsr()
        return total

    def gains(self, values: FloatArray) -> FloatArray:
        """What a unit of speed is worth to each part: the rate at which it lowers the value."""
        return np.column_stack([-(service @ values) for service in self.services])

    def values(self, speeds: FloatArray) -> FloatArray:
        """The relative values of a policy that gives the parts these total speeds."""
        values = _solved(self._bordered(speeds), -self.costs)
        values[0] = 0.0  # its place was taken by g
        return values

    def evaluation(self, speeds: FloatArray) -> Evaluation:
        """The cost of a policy from its stationary law: π Q = 0, Σ π = 1."""
        total = np.zeros(len(self.costs))
        total[0] = -1.0
        law = _solved(self._bordered(speeds).T.tocsc(), total)
        return Evaluation(
            cost=float(law @ self.costs) / self.workload.total_rate,
            jobs=np.bincount(self.owner, law @ self.lattice.states).astype(float),
            mass_at_limit=max(0.0, float(law[self.lattice.level(self.lattice.limit)].sum())),
        )

    def _bordered(self, speeds: FloatArray) -> Any:
        """The generator of a policy, with the column of the empty state replaced by −1: the unknown g."""
        generator = self.arrivals
        for service, speed in zip(self.services, speeds.T, strict=True):
            generator = generator + sparse.diags_array(speed) @ service
        border = sparse.csc_array(np.full((len(speeds), 1), -1.0))
        return sparse.hstack([border, generator.tocsc()[:, 1:]], format="csc")


def _solved(matrix: Any, right: FloatArray) -> FloatArray:
    """The solution by LU, made good by refinement where loose pivoting cost digits."""
    factors = linalg.splu(matrix, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=PIVOTING)
    solution = factors.solve(right)
    for _ in range(REFINEMENTS):
        solution += factors.solve(right - matrix @ solution)
    return np.asarray(solution)


def evaluate(
    workload: Workload,
    cores: float,
    speeds: Callable[[FloatArray], FloatArray],
    limit: int,
    *,
    lost: Lost = "charged",
    max_states: int = 100_000,
) -> Evaluation:
    """The cost of a class rule; `speeds` is the speed of each job by class counts (see `class_speeds`)."""
    process = Process(workload, cores, limit, lost, max_states)
    states = process.lattice.states
    counts = np.zeros((len(states), len(workload.classes)))
    for part, i in enumerate(process.owner):
        counts[:, i] += states[:, part]
    each = np.where(counts > 0.0, speeds(counts), 0.0)
    return process.evaluation(np.asarray(states * each[:, process.owner], dtype=float))


def charges(workload: Workload, laws: Sequence[PhaseType], cores: float, states: IntArray) -> FloatArray:
    """What one more job of each part (columns) would cost in the given states, all of them overloaded."""
    load = workload.load(cores)
    if load >= 1.0:
        raise ParameterError(
            f"the load is {load:.4g}: letting a job in costs no finite sum", 'use lost="free"'
        )
    lengths = [len(p) for p, _ in laws]
    owner = np.repeat(np.arange(len(laws)), lengths)
    work = np.concatenate([np.linalg.solve(-Q, np.ones(len(Q))) for _, Q in laws])
    second = np.concatenate([2.0 * np.linalg.solve(Q @ Q, np.ones(len(Q))) for _, Q in laws])
    theta = workload.holding_costs / workload.mean_sizes
    order = np.argsort(-theta, kind="stable")
    falls = theta[order] - np.append(theta[order][1:], 0.0)
    slack = cores - np.cumsum(workload.loads[order])
    total = np.zeros(states.shape)
    for k in range(len(order)):
        first = np.isin(owner, order[: k + 1])
        backlog = states @ (work * first)
        # E[(S + X)²] − E[S²] for a job of mean work E[X] and second moment E[X²].
        total += falls[k] / (2.0 * slack[k]) * first * (2.0 * np.outer(backlog, work) + second)
    return total


def phases(job_class: JobClass) -> PhaseType:
    """The phases of a class's sizes; arrivals must be Poisson."""
    if not job_class.arrivals.poisson:
        raise UnsupportedError(
            f"class {job_class.name!r}: {job_class.arrivals.kind} arrivals are no Markov chain",
            "use poisson arrivals, or simulate",
        )
    return size_phases(job_class, "Markov chain")
