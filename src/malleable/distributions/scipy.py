"""Any law of `scipy.stats` whose values are positive, by name or as a frozen law.

A law that `scipy.stats` knows by name is kept as that name and its parameters, so that it compares, hashes
and is written to a document like every other kind:

    size = { kind = "scipy", law = "invgauss", parameters = { mu = 1.0, scale = 2.0 } }

A law of the caller's own (a subclass, a histogram) is kept as the object it is and has no document.
(This module's name shadows nothing: imports are absolute.)
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from math import inf, isclose, isfinite
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from annotated_types import Gt, Lt

from malleable.catalog.spec import INFINITY, Positive, validate
from malleable.contracts import Distribution
from malleable.distributions.base import scipy_tails, whole_numbers
from malleable.distributions.base.float_limits import power, product
from malleable.errors import MalleableError, ParameterError, UnsupportedError, did_you_mean
from malleable.numerics import residual_life

if TYPE_CHECKING:
    from malleable.contracts import FloatArray

Finite = Annotated[float, Gt(-INFINITY), Lt(INFINITY)]


def _arguments(given: Mapping[str, Any]) -> tuple[tuple[str, float], ...]:
    """The table of a document as sorted pairs, which hash and compare."""
    table = given["parameters"]
    if not isinstance(table, Mapping):
        hint = "write a table, such as { mu = 1.0, scale = 2.0 }"
        raise ParameterError(f"must be a table of numbers, got {table!r:.60}", hint)
    return tuple(sorted((str(name), _finite(str(name), value)) for name, value in table.items()))


def _finite(name: str, value: Any) -> float:
    try:
        return float(validate(Finite, value))
    except MalleableError as error:
        raise error.within(name) from None


@dataclass(frozen=True)
class Scipy(Distribution):
    """A law of `scipy.stats`: its name and parameters or the frozen law, times a factor.

    In a document the arguments of the law are the table `parameters`.
    """

    law: Any
    arguments: tuple[tuple[str, Finite], ...] = ()
    factor: Positive = 1.0

    alternatives: ClassVar = {"parameters": ("arguments", _arguments)}

    def check(self) -> None:
        if not isinstance(self.law, str):
            self._recognise()
        low, high = self._frozen.support()
        if not low <= high:
            raise ParameterError(
                f"{self._title} has no values at these parameters",
                "see the law's page in scipy.stats",
                ("parameters",),
            )
        if low < 0.0:
            raise ParameterError(
                f"{self._title} takes negative values (down to {low:g}), and times are positive",
                "choose a law on the positive numbers, or shift it with loc",
                ("law",),
            )
        if self._frozen.cdf(0.0) > 0.0:
            raise ParameterError(
                f"{self._title} is 0 with positive probability, and times are positive",
                "shift the law with loc",
                ("law",),
            )
        if not isfinite(self.mean):
            raise ParameterError(
                f"{self._title} has an infinite mean", "choose parameters for which the mean exists", ("law",)
            )

    @property
    def _title(self) -> str:
        return (
            self.law if isinstance(self.law, str) else str(getattr(self.law.dist, "name", None) or "the law")
        )

    def _recognise(self) -> None:
        """Replace a frozen law by its name and arguments, where these say the same."""
        if not all(hasattr(self.law, name) for name in ("dist", "args", "kwds", "support", "rvs")):
            raise ParameterError(
                f"must be the name of a law or a frozen law of scipy.stats, got {self.law!r:.60}",
                "write scipy.stats.invgauss(1.0), for example",
                ("law",),
            )
        if self.arguments:
            raise ParameterError(
                "a frozen law already has its parameters", "give the name of the law instead", ("law",)
            )
        dist = self.law.dist
        pairs = (*zip(_argument_names(dist), self.law.args, strict=False), *self.law.kwds.items())
        arguments = tuple(sorted((name, _finite(name, value)) for name, value in pairs))
        named: Any = _named_laws().get(dist.name)
        if type(named) is type(dist):
            object.__setattr__(self, "law", dist.name)
            object.__setattr__(self, "arguments", arguments)

    @cached_property
    def _frozen(self) -> Any:
        """The frozen law of `scipy.stats`, before the factor."""
        if not isinstance(self.law, str):
            return self.law
        laws = _named_laws()
        if self.law not in laws:
            raise ParameterError(
                f"scipy.stats has no law {self.law!r}",
                did_you_mean(self.law, laws),
                ("law",),
            )
        allowed = _argument_names(laws[self.law])
        for name, _ in self.arguments:
            if name not in allowed:
                raise ParameterError(
                    f"{self.law} has no parameter {name!r}", did_you_mean(name, allowed), ("parameters",)
                )
        given = dict(self.arguments)
        missing = [name for name in allowed if name not in given and name not in {"loc", "scale"}]
        if missing:
            raise ParameterError(
                f"{self.law} needs the parameter {missing[0]!r}",
                f"it takes {', '.join(allowed)}",
                ("parameters",),
            )
        return laws[self.law](**given)

    @cached_property
    def _tail_index(self) -> float:
        """α where P(X > x) falls like x^(−α), so that moments from α on are infinite; else infinite.

        scipy's own moments cannot be trusted there: for some laws it returns a negative number from an
        analytic continuation of the formula, or from an integral that diverges. On a log-log scale a power
        law is straight, so its slope is the same at two far places; that of a lighter tail keeps falling.
        """
        if not (isinstance(self.law, str) and hasattr(self._frozen.dist, "pdf")):
            return inf
        x = float(self._frozen.median()) * np.array([1e30, 1e32, 1e58, 1e60])
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tail = self._frozen.logsf(x)
            near, far = -(tail[1::2] - tail[::2]) / np.log(x[1::2] / x[::2])
        return float(far) if far > 0.0 and isclose(near, far, rel_tol=1e-6) else inf

    def moment(self, order: int) -> float:
        if order >= self._tail_index * (1.0 - 1e-9):
            return inf
        value = float(self._frozen.moment(order))
        # A positive law has every moment, if only an infinite one; to some of these scipy says nan.
        return inf if np.isnan(value) else product(power(self.factor, order), value)

    def sample(self, rng: np.random.Generator, size: int) -> FloatArray:
        return self.factor * np.asarray(self._frozen.rvs(size=size, random_state=rng), dtype=float)

    def survival(self, x: FloatArray) -> FloatArray:
        plain = np.asarray(x, dtype=float) / self.factor
        if self._whole_numbers is not None:
            return self._whole_numbers.survival(plain)
        return scipy_tails.survival(self._frozen, self._tail, plain)

    def mean_remaining(self, done: FloatArray) -> FloatArray:
        if self._whole_numbers is None:
            return super().mean_remaining(done)
        return self.factor * self._whole_numbers.mean_remaining(np.asarray(done, dtype=float) / self.factor)

    @cached_property
    def _whole_numbers(self) -> whole_numbers.WholeNumbers | None:
        """The table of a law that has no density."""
        if hasattr(self._frozen.dist, "pdf"):
            return None
        low, high = map(float, self._frozen.support())
        larger = float(self._frozen.sf(low + whole_numbers.MOST))
        return whole_numbers.tabulate(partial(scipy_tails.quiet, self._frozen.pmf), low, high, larger)

    @cached_property
    def _tail(self) -> scipy_tails.Tail | None:
        return scipy_tails.tail(self._frozen)

    @cached_property
    def _residual_life(self) -> residual_life.ResidualLife:
        low, high = (self.factor * float(end) for end in self._frozen.support())
        return residual_life.tabulate(self.survival, self.mean, low, high)

    def scaled(self, factor: float) -> Scipy:
        return Scipy(self.law, self.arguments, self.factor * factor)

    def parameters(self) -> dict[str, Any]:
        if not isinstance(self.law, str):
            raise UnsupportedError(
                f"{self._title} is not a named law of scipy.stats, so it cannot be written to a document",
                "describe it by samples, with the kind empirical",
            )
        plain: dict[str, Any] = {"law": self.law, "parameters": dict(self.arguments)}
        return plain if self.factor == 1.0 else {**plain, "factor": self.factor}


def _named_laws() -> dict[str, Any]:
    from scipy import stats  # noqa: PLC0415 - keeps `import malleable` light

    kinds = (stats.rv_continuous, stats.rv_discrete)
    return {name: law for name, law in vars(stats).items() if isinstance(law, kinds)}


def _argument_names(dist: Any) -> list[str]:
    """Shape parameters, then location, then the scale of a continuous law: scipy's positional order."""
    shapes = [name.strip() for name in (dist.shapes or "").split(",") if name.strip()]
    return [*shapes, "loc", *(["scale"] if hasattr(dist, "pdf") else [])]
