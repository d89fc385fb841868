"""`fit_sizes`: a law of sizes from samples, of the phase type that theory needs.

Families that are fitted by moments keep the mean and the variation, which queues mostly depend on; the
general phase-type law is fitted by EM and follows the whole shape. Automatic choice takes the lowest Bayesian
information criterion, −2 log L + p·log N: samples of sizes are many and independent, so that, unlike for
speedups, the likelihood is known and a penalty for parameters is enough.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from malleable.catalog.spec import whole_number
from malleable.contracts import Distribution, FloatArray
from malleable.distributions.empirical import Empirical, read_lines
from malleable.distributions.erlang import Erlang
from malleable.distributions.hyperexponential import Hyperexponential
from malleable.distributions.phase_type import PhaseType
from malleable.errors import MalleableError, MeasurementError, ParameterError, did_you_mean
from malleable.fitting import moments
from malleable.fitting.curves import rounded
from malleable.fitting.erlang_mixtures import Mixture, fit_mixture
from malleable.fitting.fit import inline
from malleable.model.standard_input import standard_input

AUTO, CRITERION, ASKED = "auto", "BIC", "asked for"
PARAMETERS = {"exponential": 1, "erlang": 2, "hyperexponential": 3, "coxian": 3}
"""Numbers that each family has; a mixture of Erlang laws has two per part, and its stages."""
NAMES = (*PARAMETERS, "phase_type")
MOST_PHASES = 8
"""With more the ways to spread them over parts are too many."""


class SizeScore(NamedTuple):
    """How well a family describes the samples."""

    family: str
    parameters: int
    bic: float | None
    """Lower is better; None where no law of the family has these moments."""


@dataclass(frozen=True)
class SizeFit:
    """A law of sizes fitted to samples."""

    size: Distribution
    family: str
    criterion: str
    scores: tuple[SizeScore, ...]
    mixture: Mixture
    samples: FloatArray
    """Sorted."""

    @property
    def distance(self) -> float:
        """The largest distance between the fitted and the empirical distribution function."""
        count = len(self.samples)
        fitted = 1.0 - self.mixture.survival(self.samples)
        steps = np.arange(count + 1) / count
        return float(max(np.max(fitted - steps[:-1]), np.max(steps[1:] - fitted)))

    @property
    def line(self) -> str:
        """The line for a workload file."""
        return f"size = {inline(self.size)}"

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain numbers and texts."""
        quantiles = np.quantile(self.samples, SHOWN)
        return {
            "size": self.size.to_dict(),
            "family": self.family,
            "criterion": self.criterion,
            "scores": [score._asdict() for score in self.scores],
            "samples": len(self.samples),
            "mean": {"samples": float(np.mean(self.samples)), "fitted": self.size.mean},
            "scv": {"samples": _scv(self.samples), "fitted": self.size.scv},
            "distance": self.distance,
            "points": [
                {"size": float(x), "survival": 1.0 - p, "fitted": float(s)}
                for x, p, s in zip(quantiles, SHOWN, self.mixture.survival(quantiles), strict=True)
            ],
            "line": self.line,
        }


SHOWN = (0.1, 0.25, 0.5, 0.75, 0.9, 0.99)
"""Levels of the quantiles at which the fit is shown beside the samples."""


def _scv(x: FloatArray) -> float:
    return float(np.var(x / np.mean(x)))


def fit_sizes(source: Any, family: str = AUTO, *, phases: int = 4) -> SizeFit:
    """Fit a law to samples of sizes: a file with one number per line, or the numbers."""
    name = family.replace("-", "_")
    if name not in {AUTO, *NAMES}:
        raise ParameterError(f"there is no family {family!r} to fit", did_you_mean(name, [AUTO, *NAMES]))
    if not 1 <= whole_number("phases", phases, 1) <= MOST_PHASES:
        raise ParameterError(f"phases must be at most {MOST_PHASES}, got {phases}", "for example 4")
    x = _samples(source)
    if name != AUTO:
        law, mixture = _fitted(name, x, phases)
        return SizeFit(law, name, ASKED, (), mixture, x)
    found = {one: _tried(one, x, phases) for one in NAMES}
    scores = tuple(_score(one, made, x) for one, made in found.items())
    best = min((s for s in scores if s.bic is not None), key=lambda s: (s.bic, s.parameters)).family
    chosen = found[best]
    assert chosen is not None  # noqa: S101 - it has a score
    return SizeFit(chosen[0], best, CRITERION, scores, chosen[1], x)


def _samples(source: Any) -> FloatArray:
    """The numbers, sorted; read as the empirical law reads them."""
    try:
        values = _values(source)
    except MalleableError as error:
        raise MeasurementError(error.problem, error.hint) from None
    except (TypeError, ValueError):
        raise MeasurementError(f"cannot read sizes from {source!r:.60}", "give numbers, or a file") from None
    if len(set(values)) < 2:
        problem = f"sizes are all equal to {values[0]:g}" if len(values) > 1 else "there is only one size"
        hint = f'use size = {{ kind = "deterministic", value = {values[0]:g} }}, or give more samples'
        raise MeasurementError(problem, hint)
    return np.sort(np.array(values))


def _values(source: Any) -> tuple[float, ...]:
    if isinstance(source, str | Path):
        if str(source) == "-":
            return read_lines(standard_input(), "the input")
        return Empirical.from_parameters({"file": source}).values
    return Empirical(tuple(map(float, source))).values


def _tried(family: str, x: FloatArray, phases: int) -> moments.Found | None:
    try:
        return _fitted(family, x, phases)
    except MeasurementError:
        return None


def _fitted(family: str, x: FloatArray, phases: int) -> moments.Found:
    """The law of a family nearest to the samples."""
    mean, scv = float(np.mean(x)), _scv(x)
    if family == "exponential":
        return moments.exponential(mean)
    if family == "erlang":
        return moments.erlang(mean, scv)
    if family == "hyperexponential":
        return moments.hyperexponential(mean, scv, float(np.mean((x / mean) ** 3)) * mean**3)
    if family == "coxian":
        return moments.coxian(mean, scv)
    mixture = fit_mixture(x, phases)
    return _written(mixture), mixture


def _written(mixture: Mixture) -> Distribution:
    """The mixture as the kind that is shortest to write."""
    rates = tuple(map(rounded, mixture.rates.tolist()))
    if len(rates) == 1:
        return Erlang(int(mixture.stages[0]), rates[0])
    if np.all(mixture.stages == 1.0):
        return Hyperexponential(moments.rounded_shares(mixture.weights.tolist()), rates)
    p, Q = mixture.phase_type()
    rows = tuple(tuple(rounded(rate) for rate in row) for row in Q.tolist())
    return PhaseType(moments.rounded_shares(p.tolist()), rows)


def _score(family: str, made: moments.Found | None, x: FloatArray) -> SizeScore:
    if made is None:
        return SizeScore(family, PARAMETERS[family], None)
    mixture = made[1]
    parameters = PARAMETERS.get(family, mixture.parameters)
    likelihood = float(np.sum(mixture.log_density(x)))
    return SizeScore(family, parameters, -2.0 * likelihood + parameters * log(len(x)))
