"""The exact stationary law of a class rule: Poisson arrivals, phase-type sizes, a truncated Markov chain.

Under a *class rule* (WHAM, EQUI, GREEDY) the speed of a job depends on the class counts alone, so with
Poisson arrivals of rate λ_i and phase-type sizes (p_i, Q_i) the numbers z_iu of class-i jobs in phase u are a
Markov chain. With Z_i = Σ_u z_iu, q_i = −Q_i 1 and s_i(Z) the speed of a class-i job,

    z → z + e_iu             at rate  λ_i p_iu                      an arrival
    z → z − e_iu + e_iv      at rate  z_iu Q_i(u,v) s_i(Z)          a change of phase
    z → z − e_iu             at rate  z_iu q_iu s_i(Z)              a departure

Cost by Little's law: (1/λ) Σ λ_i c_i E[T_i] = (1/λ) Σ c_i E[Z_i]. Arrivals that find `limit` jobs are lost.

The stationary vector π solves A π = 0 with A = D − Oᵀ, O the rates and D their row sums. Sparse LU fills in
hopelessly (a level N = Σ z of four phases holds some N³/6 states), so we iterate, level by level:

- symmetric Gauss–Seidel sweeps, which keep π non-negative;
- aggregation (Takahashi 1975; Koury, McAllister & Stewart 1984): between levels the chain is a birth–death
  process with birth rate λ, so the level probabilities are solved exactly, given the law within a level;
- GMRES, preconditioned by the same sweeps, for the correction that is left (Saad 2003, §9.3, §10.2).

Some 300 000 states take a few seconds (W. J. Stewart, *Introduction to the Numerical Solution of Markov
Chains*, 1994, is the background).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import linalg
from scipy.special import gammaln, xlogy

from malleable.contracts import FloatArray
from malleable.errors import ParameterError, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

IntArray = NDArray[np.int64]
PhaseType = tuple[FloatArray, FloatArray]

_NEGLIGIBLE = 1e-9
"""Mass at the truncation limit below which the truncation changes no printed digit."""


class Lattice:
    """All vectors of `parts` counts with total at most `limit`, level by level (level = total).

    The index of z is Σ_r C(t_r + r − 1, r) with t_r the sum of its last r counts: the number of vectors that
    come before it (the combinatorial number system). Levels are contiguous and nothing has to be searched.
    """

    def __init__(self, parts: int, limit: int, max_states: int = 2_000_000) -> None:
        if (size := comb(limit + parts, parts)) > max_states:
            raise UnsupportedError(
                f"{parts} phases and up to {limit} jobs make {size} states, more than {max_states}",
                "lower the limit or the number of phases, raise max_states, or simulate it",
            )
        self.limit = limit
        levels = np.arange(limit + 1)
        self._before = [levels]
        self.states: IntArray = np.zeros((1, 0), dtype=np.int64)
        for _ in range(parts):
            totals = self.states.sum(axis=1)
            sizes = np.searchsorted(totals, levels, side="right")
            rest = np.concatenate([np.arange(size) for size in sizes])
            self.states = np.column_stack([np.repeat(levels, sizes) - totals[rest], self.states[rest]])
            self._before.append(np.cumsum(self._before[-1]))
        self.totals: IntArray = self.states.sum(axis=1)
        self.starts: IntArray = np.searchsorted(self.totals, np.arange(limit + 2))

    def index(self, states: IntArray) -> IntArray:
        """Where each of the given count vectors stands."""
        tail = np.zeros(len(states), dtype=np.int64)
        index = np.zeros(len(states), dtype=np.int64)
        for column, before in zip(reversed(states.T), self._before, strict=False):
            tail += column
            index += before[tail]
        return index

    def level(self, total: int) -> slice:
        """The states with that many jobs."""
        return slice(self.starts[total], self.starts[total + 1])

    def by_level(self, values: FloatArray) -> FloatArray:
        """Sums over each level."""
        return np.add.reduceat(values, self.starts[:-1])


@dataclass(frozen=True, eq=False)
class ExactChain:
    """The stationary law of a truncated chain, summed up."""

    arrival_rates: FloatArray
    jobs: FloatArray
    """E[N_i]: the mean number of jobs of each class."""
    levels: FloatArray
    """P(N = j) for j = 0 … limit."""
    residual: float
    """Probability flow out of balance, Σ|πQ|, as a fraction of all flow."""
    tolerance: float
    """The residual that was asked for."""

    @property
    def limit(self) -> int:
        """The number of jobs at which arrivals are lost."""
        return len(self.levels) - 1

    @property
    def truncation(self) -> float:
        """P(N = limit): the share of arrivals that the truncation loses."""
        return float(self.levels[-1])

    @property
    def warning(self) -> str:
        """Why these numbers should not be trusted to all digits, and what to do; empty if they may be."""
        if self.residual > self.tolerance:
            return f"not converged: residual {self.residual:.1e}; allow more rounds"
        if self.truncation > _NEGLIGIBLE:
            return f"truncated: {self.truncation:.1e} of the arrivals find {self.limit} jobs; enlarge limit"
        return ""

    @property
    def response_times(self) -> FloatArray:
        """E[T_i] of the jobs let in, by Little's law; NaN for a class that never arrives."""
        accepted = self.arrival_rates * (1.0 - self.truncation)
        return np.divide(self.jobs, accepted, out=np.full_like(self.jobs, np.nan), where=accepted > 0.0)

    def cost(self, holding_costs: Sequence[float] | FloatArray) -> float:
        """(1/λ) Σ c_i E[N_i], the mean of c·T over jobs."""
        return float(np.dot(holding_costs, self.jobs) / self.arrival_rates.sum())

    def exceeds(self, number: float) -> float:
        """P(N > number)."""
        return float(self.levels[np.arange(self.limit + 1) > number].sum())


def solve(
    arrival_rates: Sequence[float] | FloatArray,
    phases: Sequence[PhaseType],
    speeds: Callable[[FloatArray], FloatArray],
    limit: int,
    *,
    tolerance: float = 1e-12,
    max_rounds: int = 100,
    max_states: int = 2_000_000,
) -> ExactChain:
    """The stationary law under a class rule, with at most `limit` jobs present.

    `phases` holds (p_i, Q_i) of each class's size. `speeds` is called once, with all vectors of class counts
    (shape: vectors × classes), and returns the speed s_i(k_i) of each single job, in the same shape; what it
    returns for a class without jobs does not matter.
    """
    rates = np.asarray(arrival_rates, dtype=float)
    sizes = [len(p) for p, _ in phases]
    if limit < 1 or rates.shape != (len(sizes),) or not (rates >= 0.0).all() or not rates.sum() > 0.0:
        raise ParameterError(
            f"cannot solve for {len(sizes)} classes with arrival rates {rates} and limit {limit}",
            "give one rate per class, none negative and not all zero, and room for at least one job",
        )
    lattice = Lattice(sum(sizes), limit, max_states)
    first = np.cumsum([0, *sizes[:-1]])
    counts = np.add.reduceat(lattice.states, first, axis=1)
    flow = transition_rates(lattice, rates, phases, _speeds_in(counts, speeds, limit))
    loads = np.concatenate([rate * _time_in_phases(p, Q) for rate, (p, Q) in zip(rates, phases, strict=True)])
    law, residual = _stationary(lattice, flow, float(rates.sum()), loads, tolerance, max_rounds)
    return ExactChain(rates, law @ counts, lattice.by_level(law), residual, tolerance)


def transition_rates(
    lattice: Lattice, arrival_rates: FloatArray, phases: Sequence[PhaseType], speeds: FloatArray
) -> Any:
    """The rates from state to state as a sparse matrix, diagonal left out."""
    rows, columns, values = [], [], []
    for step, rate in _moves(lattice, arrival_rates, phases, speeds):
        row = np.flatnonzero(rate)
        rows.append(row)
        columns.append(lattice.index(lattice.states[row] + step))
        values.append(rate[row])
    where = np.concatenate(rows), np.concatenate(columns)
    return sparse.coo_array((np.concatenate(values), where), shape=(len(speeds),) * 2).tocsr()


def _moves(
    lattice: Lattice, arrival_rates: FloatArray, phases: Sequence[PhaseType], speeds: FloatArray
) -> Iterator[tuple[IntArray, FloatArray]]:
    """Every kind of move: the change of state, and its rate in each state."""
    unit = np.eye(lattice.states.shape[1], dtype=np.int64)
    room = lattice.totals < lattice.limit
    first = 0
    for i, (p, Q) in enumerate(phases):
        exits = -Q.sum(axis=1)
        for u in range(len(p)):
            here = unit[first + u]
            service = lattice.states[:, first + u] * speeds[:, i]
            yield here, arrival_rates[i] * p[u] * room
            yield -here, exits[u] * service
            for v in range(len(p)):
                if v != u and Q[u, v] > 0.0:
                    yield unit[first + v] - here, Q[u, v] * service
        first += len(p)


def _speeds_in(counts: IntArray, speeds: Callable[[FloatArray], FloatArray], limit: int) -> FloatArray:
    """The speed of each class's jobs in each state, asked for once per class-count vector."""
    vectors = Lattice(counts.shape[1], limit, max_states=len(counts))
    table = np.asarray(speeds(vectors.states.astype(float)), dtype=float)
    if table.shape != vectors.states.shape:
        wanted = vectors.states.shape
        raise ParameterError(f"speeds must be shaped {wanted}, one per class, got {table.shape}")
    table = np.where(vectors.states > 0, table, 0.0)
    idle = ~(table.sum(axis=1) > 0.0) & (vectors.totals > 0)
    wrong = idle | ~(np.isfinite(table) & (table >= 0.0)).all(axis=1)
    if wrong.any():
        which = int(np.argmax(wrong))
        raise ParameterError(
            f"the rule gives speeds {table[which]} to class counts {vectors.states[which]}",
            "speeds must be finite and not negative, and some job present must be served",
        )
    return table[vectors.index(counts)]


def _time_in_phases(p: FloatArray, Q: FloatArray) -> FloatArray:
    """Mean work done in each phase, p (−Q)⁻¹."""
    return np.asarray(np.linalg.solve(-Q.T, p), dtype=float)


def _stationary(
    lattice: Lattice, flow: Any, birth: float, loads: FloatArray, tolerance: float, max_rounds: int
) -> tuple[FloatArray, float]:
    """π and its residual; rounds of sweep, aggregate, GMRES until the residual is met."""
    total = flow.sum(axis=1)
    balance = (sparse.diags_array(total) - flow.T).tocsc()
    forward, backward = _triangular(sparse.tril(balance)), _triangular(sparse.triu(balance))
    below, above = sparse.tril(balance, -1).tocsr(), sparse.triu(balance, 1).tocsr()
    death = _death_rates(lattice, flow)

    def polished(law: FloatArray) -> FloatArray:
        # Upward information travels through all levels in one sweep, downward in the other.
        for _ in range(3):
            law = backward.solve(-(below @ law))
            law = _aggregated(lattice, np.maximum(forward.solve(-(above @ law)), 0.0), birth, death)
        return law

    def residual(law: FloatArray) -> float:
        return float(np.abs(balance @ law).sum() / (total @ law))

    sweep = linalg.LinearOperator(balance.shape, lambda b: forward.solve(total * backward.solve(b)))
    # Exact where speeds are linear and shared equally (processor sharing is insensitive); near it elsewhere.
    guess = (xlogy(lattice.states, loads) - gammaln(lattice.states + 1.0)).sum(axis=1)
    guess = np.exp(guess - np.maximum.reduceat(guess, lattice.starts[:-1])[lattice.totals])
    law = polished(_aggregated(lattice, guess, birth, death))
    best = residual(law)
    for _ in range(max_rounds):
        if best <= tolerance:
            break
        aim = max(0.1 * tolerance / best, 1e-12)
        correction, _ = linalg.gmres(balance, -(balance @ law), M=sweep, rtol=aim, restart=30, maxiter=2)
        corrected = polished(np.maximum(law + correction, 0.0))
        # A correction that does not help is dropped: the sweeps alone converge, only more slowly.
        law = corrected if residual(corrected) < best else polished(law)
        best = residual(law)
    return law, best


def _triangular(matrix: Any) -> Any:
    """A triangular matrix ready to be solved: SuperLU in the given order finds nothing to fill in."""
    return linalg.splu(matrix.tocsc(), permc_spec="NATURAL", diag_pivot_thresh=0.0)


def _death_rates(lattice: Lattice, flow: Any) -> FloatArray:
    """Total rate of departures in each state."""
    rates = flow.tocoo()
    down = lattice.totals[rates.col] < lattice.totals[rates.row]
    deaths = np.bincount(rates.row[down], rates.data[down], minlength=len(lattice.totals))
    return deaths.astype(float)


def _aggregated(lattice: Lattice, law: FloatArray, birth: float, death: FloatArray) -> FloatArray:
    """The same law within each level, and the levels in exact balance: P(N+1) d(N+1) = P(N) λ."""
    mass, deaths = lattice.by_level(law), lattice.by_level(law * death)
    # A level that has underflowed, and all above it, keeps probability zero.
    with np.errstate(divide="ignore"):
        steps = np.log(birth) + np.log(mass[1:]) - np.log(np.maximum(deaths[1:], np.finfo(float).tiny))
    log_level = np.concatenate([[0.0], np.cumsum(steps)])
    level = np.exp(log_level - log_level.max())
    share: FloatArray = np.divide(level / level.sum(), mass, out=np.zeros_like(mass), where=mass > 0.0)
    return law * share[lattice.totals]
