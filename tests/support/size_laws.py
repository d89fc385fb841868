"""Laws for the conformance tests: examples of every kind, independent references, and random parameters."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import strategies as st
from scipy import integrate, linalg, stats

from malleable import catalog
from malleable.contracts import Distribution
from malleable.distributions.bounded_pareto import BoundedPareto
from malleable.distributions.coxian import Coxian
from malleable.distributions.empirical import Empirical
from malleable.distributions.erlang import Erlang
from malleable.distributions.exponential import Exponential
from malleable.distributions.gamma import Gamma
from malleable.distributions.hyperexponential import Hyperexponential
from malleable.distributions.lognormal import Lognormal
from malleable.distributions.pareto import Pareto
from malleable.distributions.phase_type import PhaseType
from malleable.distributions.uniform import Uniform
from malleable.distributions.weibull import Weibull

KINDS = sorted(catalog.kinds("distributions"))

CYCLIC = [[-3.0, 2.0, 0.5], [1.0, -2.0, 0.0], [0.0, 4.0, -4.0]]

EXAMPLES = {
    "exponential": [{"rate": 5.0}, {"mean": 2}],
    "hyperexponential": [
        {"probabilities": [0.9, 0.1], "rates": [3.0, 0.2]},
        {"probabilities": [0.2, 0.3, 0.5], "rates": [1, 2, 30]},
    ],
    "erlang": [{"stages": 4, "mean": 2.0}, {"stages": 1, "rate": 0.5}],
    "phase_type": [
        {"initial": [0.2, 0.5, 0.3], "generator": CYCLIC},
        {"initial": [1.0], "generator": [[-2.0]]},
        {"initial": [0.0, 1.0], "generator": [[-1.0, 0.0], [0.3, -0.3]]},
    ],
    "coxian": [
        {"rates": [3.0, 1.0, 0.2], "probabilities": [0.7, 0.25]},
        {"rates": [3.0], "probabilities": []},
        {"rates": [3.0, 1.0], "probabilities": [0.0]},
    ],
    "lognormal": [{"mean": 1.5, "sigma": 0.6}],
    "weibull": [{"shape": 0.7, "mean": 2.0}, {"shape": 3, "mean": 0.1}],
    "pareto": [{"shape": 2.5, "mean": 1.0}, {"shape": 7.0, "mean": 3.0}, {"shape": 1.5, "mean": 3.0}],
    "bounded_pareto": [
        {"shape": 1.5, "low": 0.1, "high": 100.0},
        {"shape": 1, "low": 0.5, "high": 40.0},
        {"shape": 2.0, "low": 1.0, "high": 1.001},
        {"shape": 5.5, "low": 2.0, "high": 1e6},
    ],
    "gamma": [{"shape": 0.4, "mean": 2.0}, {"shape": 3, "mean": 0.5}],
    "uniform": [{"low": 0, "high": 3.0}, {"low": 2.0, "high": 2.5}],
    "deterministic": [{"value": 0.7}],
    "empirical": [{"values": [0.5, 1.0, 1, 4.25]}],
    "scipy": [
        {"law": "invgauss", "parameters": {"mu": 1.0, "scale": 2.0}},
        {"law": "fisk", "parameters": {"c": 3.5}, "factor": 2.0},
        {"law": "randint", "parameters": {"low": 1, "high": 7}},
    ],
}
CASES = [(kind, keys) for kind in KINDS for keys in EXAMPLES.get(kind, [])]
LAWS = [pytest.param(kind, keys, id=f"{kind}-{i}") for i, (kind, keys) in enumerate(CASES)]


def law_of(kind, keys):
    return Distribution.of({"kind": kind, **keys})


class Phases:
    """The phase-type law by way of the matrix exponential, which the library does not use."""

    def __init__(self, initial, generator):
        self.p, self.Q = np.array(initial, dtype=float), np.array(generator, dtype=float)

    def sf(self, x):
        return float((self.p @ linalg.expm(self.Q * x)).sum())

    def cdf(self, x):
        return np.array([1.0 - self.sf(v) for v in np.atleast_1d(x)])

    def moment(self, order):
        step = 1.0 / -np.diag(self.Q).max()  # the slowest phase

        def integrand(x):
            return order * x ** (order - 1) * self.sf(x)

        return sum(integrate.quad(integrand, 10 * i * step, 10 * (i + 1) * step)[0] for i in range(8))


class Values:
    """A law on finitely many values, each with equal probability."""

    def __init__(self, values):
        self.values = values

    def sf(self, x):
        return sum(v > x for v in self.values) / len(self.values)

    def cdf(self, x):
        return np.array([sum(v <= y for v in self.values) / len(self.values) for y in x])

    def moment(self, order):
        return math.fsum(v**order for v in self.values) / len(self.values)


def serial(rates, onward):
    Q = [[0.0] * len(rates) for _ in rates]
    for j, rate in enumerate(rates):
        Q[j][j] = -rate
        if j + 1 < len(rates):
            Q[j][j + 1] = rate * onward[j]
    return Phases([1.0] + [0.0] * (len(rates) - 1), Q)


REFERENCES = {
    "exponential": lambda k: stats.expon(scale=k.get("mean") or 1 / k["rate"]),
    "hyperexponential": lambda k: Phases(k["probabilities"], -np.diag(k["rates"])),
    "erlang": lambda k: stats.erlang(
        k["stages"], scale=k["mean"] / k["stages"] if "mean" in k else 1 / k["rate"]
    ),
    "phase_type": lambda k: Phases(k["initial"], k["generator"]),
    "coxian": lambda k: serial(k["rates"], k["probabilities"]),
    "lognormal": lambda k: stats.lognorm(k["sigma"], scale=k["mean"] * math.exp(-(k["sigma"] ** 2) / 2)),
    "weibull": lambda k: stats.weibull_min(k["shape"], scale=k["mean"] / math.gamma(1 + 1 / k["shape"])),
    "pareto": lambda k: stats.pareto(k["shape"], scale=k["mean"] * (k["shape"] - 1) / k["shape"]),
    "bounded_pareto": lambda k: stats.truncpareto(k["shape"], k["high"] / k["low"], scale=k["low"]),
    "gamma": lambda k: stats.gamma(k["shape"], scale=k["mean"] / k["shape"]),
    "uniform": lambda k: stats.uniform(k["low"], k["high"] - k["low"]),
    "deterministic": lambda k: Values([k["value"]]),
    "empirical": lambda k: Values(k["values"]),
}
REFERRED = [
    pytest.param(kind, keys, id=f"{kind}-{i}") for i, (kind, keys) in enumerate(CASES) if kind in REFERENCES
]


positive = st.floats(0.05, 20.0)
weights = st.lists(st.floats(0.01, 1.0), min_size=1, max_size=5)


def normalised(numbers):
    return [number / math.fsum(numbers) for number in numbers]


@st.composite
def hyperexponentials(draw):
    chances = normalised(draw(weights))
    return Hyperexponential(chances, [draw(positive) for _ in chances])


@st.composite
def coxians(draw):
    rates = draw(st.lists(positive, min_size=1, max_size=5))
    return Coxian(rates, [draw(st.floats(0.0, 1.0)) for _ in rates[1:]])


@st.composite
def phase_types(draw):
    chances = normalised(draw(weights))
    m = len(chances)
    flows = [[draw(st.floats(0.0, 5.0)) if i != j else 0.0 for j in range(m)] for i in range(m)]
    for i, row in enumerate(flows):
        row[i] = -math.fsum(row) - draw(positive)
    return PhaseType(chances, flows)


@st.composite
def bounded_paretos(draw):
    low = draw(positive)
    shape = draw(st.one_of(positive, st.sampled_from([1.0, 2.0, 3.0, math.nextafter(2.0, 3.0)])))
    return BoundedPareto(shape, low, low * draw(st.floats(1.0001, 1e6)))


@st.composite
def uniforms(draw):
    low = draw(st.floats(0.0, 10.0))
    return Uniform(low, low + draw(positive))


RANDOM = {
    "exponential": st.builds(Exponential, positive),
    "hyperexponential": hyperexponentials(),
    "erlang": st.builds(Erlang, st.integers(1, 30), positive),
    "phase_type": phase_types(),
    "coxian": coxians(),
    "lognormal": st.builds(Lognormal, positive, st.floats(0.01, 3.0)),
    "weibull": st.builds(Weibull, st.floats(0.1, 20.0), positive),
    "pareto": st.builds(Pareto, st.floats(1.01, 20.0), positive),
    "bounded_pareto": bounded_paretos(),
    "gamma": st.builds(Gamma, st.one_of(positive, st.integers(1, 20)), positive),
    "uniform": uniforms(),
    "empirical": st.builds(Empirical, st.lists(positive, min_size=1, max_size=10)),
}
