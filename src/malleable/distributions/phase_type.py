"""The phase-type law: time to absorption of a finite Markov chain, dense in all positive laws.

The chain starts in phase i with probability pᵢ, moves from i to j at rate Qᵢⱼ and is absorbed from i at rate
−Σⱼ Qᵢⱼ. E[X^r] = r! p (−Q)^(−r) 1. Q is invertible if and only if absorption is certain from every phase
(Neuts, *Matrix-Geometric Solutions in Stochastic Models*, 1981, Lemma 2.2.1), which is checked on the graph
of the chain, where no rounding can hide it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated

import numpy as np
from annotated_types import Gt, Lt

from malleable.catalog.spec import INFINITY, Probability
from malleable.contracts import Distribution
from malleable.distributions.base import phases
from malleable.errors import ParameterError

if TYPE_CHECKING:
    from malleable.contracts import FloatArray

Finite = Annotated[float, Gt(-INFINITY), Lt(INFINITY)]


@dataclass(frozen=True)
class PhaseType(Distribution):
    """Time to absorption: initial probabilities of the phases, and the sub-generator of their rates."""

    initial: tuple[Probability, ...]
    generator: tuple[tuple[Finite, ...], ...]

    def check(self) -> None:
        phases.check_total(self.initial, "initial")
        count = len(self.initial)
        if len(self.generator) != count:
            raise ParameterError(
                f"must have one row for each phase, got {len(self.generator)} for {count}",
                "the generator is a square matrix",
                ("generator",),
            )
        for i, row in enumerate(self.generator):
            if len(row) != count:
                raise ParameterError(
                    f"must have {count} entries, got {len(row)}",
                    "the generator is a square matrix",
                    ("generator", i),
                )
            _check_row(row, i)
        trapped = np.flatnonzero(~_absorbed(np.array(self.generator), self._exits))
        if trapped.size:
            raise ParameterError(
                f"never ends once it is in phase {trapped[0]}",
                "let some row that this phase leads to have a negative sum, its rate of absorption",
                ("generator",),
            )

    @cached_property
    def _exits(self) -> FloatArray:
        """Rates of absorption, zero where a row sums to zero up to rounding."""
        Q = np.array(self.generator)
        exits: FloatArray = -Q.sum(axis=1)
        return np.where(exits > phases.TOLERANCE * -np.diag(Q), exits, 0.0)

    @cached_property
    def _jumps(self) -> FloatArray:
        """Row i: cumulated probabilities of the next phase, the last one standing for absorption; plus i.

        With i added, the rows make one increasing sequence, so that jobs in different phases are moved by a
        single binary search.
        """
        flows = np.column_stack([np.array(self.generator), self._exits])
        np.fill_diagonal(flows, 0.0)
        cumulated = np.cumsum(flows, axis=1)
        jumps: FloatArray = cumulated / cumulated[:, -1:] + np.arange(len(flows))[:, None]
        return jumps.ravel()

    def moment(self, order: int) -> float:
        return phases.moment(*self.phase_type(), order)

    def sample(self, rng: np.random.Generator, size: int) -> FloatArray:
        absorbing = len(self.initial)
        sojourn = -1.0 / np.diag(self.generator)
        total = np.zeros(size)
        present = np.arange(size)
        phase = phases.draw(rng, np.array(self.initial), size)
        while present.size:
            total[present] += sojourn[phase] * rng.standard_exponential(present.size)
            found = np.searchsorted(self._jumps, phase + rng.random(present.size), side="right")
            # phase + u may round up to phase + 1, hence the bound.
            following = np.minimum(found - phase * (absorbing + 1), absorbing)
            stays = following < absorbing
            present, phase = present[stays], following[stays]
        return total

    def survival(self, x: FloatArray) -> FloatArray:
        return phases.survival(*self.phase_type(), np.asarray(x, dtype=float))

    def mean_remaining(self, done: FloatArray) -> FloatArray:
        return phases.mean_remaining(*self.phase_type(), np.asarray(done, dtype=float))

    def scaled(self, factor: float) -> PhaseType:
        return PhaseType(self.initial, tuple(tuple(rate / factor for rate in row) for row in self.generator))

    def phase_type(self) -> tuple[FloatArray, FloatArray]:
        return np.array(self.initial), np.array(self.generator)


def _check_row(row: tuple[float, ...], i: int) -> None:
    """Require row i of a sub-generator: a negative diagonal, no other negative rate, a sum of at most 0."""
    if row[i] >= 0.0:
        raise ParameterError(
            f"must be negative, got {row[i]:g}",
            "the diagonal holds minus the rate of leaving",
            ("generator", i, i),
        )
    for j, rate in enumerate(row):
        if j != i and rate < 0.0:
            raise ParameterError(
                f"must be at least 0, got {rate:g}", "only the diagonal is negative", ("generator", i, j)
            )
    if sum(row) > phases.TOLERANCE * -row[i]:
        raise ParameterError(
            f"must sum to at most 0, got {sum(row):g}",
            "minus the diagonal is the total rate of leaving, absorption included",
            ("generator", i),
        )


def _absorbed(Q: FloatArray, exits: FloatArray) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Whether absorption can be reached from each phase."""
    leads = Q > 0.0
    reached = exits > 0.0
    for _ in range(len(Q)):
        reached = reached | (leads & reached).any(axis=1)
    return reached
