"""Examples of every kind of law; a kind without one fails its conformance tests."""

from __future__ import annotations

from malleable import catalog
from malleable.contracts import Distribution

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


def law_of(kind, keys):
    return Distribution.of({"kind": kind, **keys})
