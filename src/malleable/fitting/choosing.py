"""Which family? The one that best predicts a width that it has not seen.

Leave-one-width-out cross-validation: each width but the narrowest is left out in turn, the family is fitted
to the others, and the score is the root mean square of the errors of the log rate there, a relative error.
The narrowest stays, because all speedups are relative to it.

Why not a criterion such as AICc? It needs a number of parameters, and the hull has none that is known; it
also needs errors that are independent from width to width, and the misfit of a formula is not. Prediction
asks every family the same question, and leaving out the widest width asks it beyond the data as well, where
a hull is flat.

Scores rest on a few widths: one within a tenth of the best, or within 0.1 %, is a tie. Ties are decided for
fewer parameters, then in the order of `NAMES`, so that a family does not lose to one that contains it.
A family needs at least as many of the other widths as it has parameters. Two widths cannot be
cross-validated at all: then the hull, which claims nothing beyond what was measured.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from malleable.errors import ParameterError, did_you_mean
from malleable.fitting import curves, parametric

if TYPE_CHECKING:
    from malleable.fitting.curves import Curve
    from malleable.fitting.measurements import Points

CRITERION = "leave-one-width-out error"
ASKED = "asked for"
TOO_FEW = "too few widths to choose"
TIE, CLOSE = 1e-3, 1.1
"""Scores up to this much, absolutely and as a factor, above the best are as good."""
FREE = {"concave": curves.concave, "hull": curves.hull}
NAMES = (*parametric.FAMILIES, *FREE)
AUTO = "auto"


class Score(NamedTuple):
    """How well a family predicts widths that it has not seen."""

    family: str
    parameters: int
    error: float | None
    """Root mean square of the relative errors; None where there are too few widths to tell."""


def check(family: str) -> str:
    """The family, if there is one of that name; - and _ are the same."""
    name = family.replace("-", "_")
    if name not in {AUTO, *NAMES}:
        raise ParameterError(f"there is no family {family!r} to fit", did_you_mean(name, [AUTO, *NAMES]))
    return name


def fit_family(family: str, points: Points) -> Curve:
    """The curve of one family nearest to the points."""
    return FREE[family](points) if family in FREE else parametric.FAMILIES[family].fit(points)


def score(family: str, points: Points) -> Score:
    """The error of a family at widths left out."""
    count = len(points.widths)
    # What a curve without a formula says depends on all its points; two of them are a straight line.
    needed = 2 if family in FREE else parametric.FAMILIES[family].parameters
    if count - 1 < needed:
        return Score(family, needed, None)
    errors = []
    for i in range(1, count):
        curve = fit_family(family, points.without(i))
        errors.append(float(curve.log_rates(points.widths[i : i + 1])[0] - points.log_rates[i]))
    parameters = count if family in FREE else needed
    return Score(family, parameters, float(np.sqrt(np.mean(np.square(errors)))))


def choose(points: Points) -> tuple[str, str, tuple[Score, ...]]:
    """The family that predicts best, by what criterion, and the scores of all."""
    scores = tuple(score(family, points) for family in NAMES)
    known = [one for one in scores if one.error is not None]
    if not known:
        return "hull", TOO_FEW, scores
    best = min(one.error for one in known if one.error is not None)
    close = [one for one in known if one.error is not None and one.error <= CLOSE * best + TIE]
    return min(close, key=lambda one: one.parameters).family, CRITERION, scores
