"""Wrong parameters of laws are named."""

from __future__ import annotations

import math
from math import inf

import pytest
from scipy import stats

from malleable.contracts import Distribution
from malleable.errors import MalleableError, ParameterError
from support.size_laws import EXAMPLES, KINDS, law_of

# Wrong input ---------------------------------------------------------------------------------------------

NUMBERS = (0.0, -1.0, inf, math.nan, "1", None, True)
WRONG = [
    *(("exponential", "rate", {"rate": x}) for x in NUMBERS),
    *(("exponential", "mean", {"mean": x}) for x in NUMBERS),
    ("exponential", "rate", {}),
    ("exponential", "mean", {"rate": 1.0, "mean": 1.0}),
    *(("hyperexponential", "rates", {"probabilities": [0.5, 0.5], "rates": [1.0, x]}) for x in NUMBERS),
    ("hyperexponential", "rates", {"probabilities": [0.5, 0.5], "rates": [1.0]}),
    ("hyperexponential", "rates", {"probabilities": [0.5, 0.5], "rates": 1.0}),
    ("hyperexponential", "rates", {"probabilities": [0.5, 0.5]}),
    ("hyperexponential", "probabilities", {"probabilities": [0.5, 0.6], "rates": [1.0, 2.0]}),
    ("hyperexponential", "probabilities", {"probabilities": [0.5, 0.5 - 2e-9], "rates": [1.0, 2.0]}),
    ("hyperexponential", "probabilities", {"probabilities": [1.5, -0.5], "rates": [1.0, 2.0]}),
    ("hyperexponential", "probabilities", {"probabilities": [], "rates": []}),
    *(("erlang", "stages", {"stages": x, "mean": 1.0}) for x in (0, -2, 1.5, "2", None)),
    *(("erlang", "mean", {"stages": 2, "mean": x}) for x in NUMBERS),
    ("erlang", "stages", {"mean": 1.0}),
    ("erlang", "rate", {"stages": 2}),
    ("phase_type", "initial", {"initial": [0.5, 0.4], "generator": [[-1.0, 0.0], [0.0, -1.0]]}),
    ("phase_type", "initial", {"initial": [], "generator": []}),
    ("phase_type", "generator", {"initial": [1.0], "generator": [[-1.0, 0.0], [0.0, -1.0]]}),
    ("phase_type", "generator[1]", {"initial": [1.0, 0.0], "generator": [[-1.0, 0.0], [0.0]]}),
    ("phase_type", "generator[0][1]", {"initial": [1.0, 0.0], "generator": [[-1.0, -0.1], [0.0, -1.0]]}),
    ("phase_type", "generator[1][1]", {"initial": [1.0, 0.0], "generator": [[-1.0, 0.1], [0.0, 0.0]]}),
    ("phase_type", "generator[0]", {"initial": [1.0, 0.0], "generator": [[-1.0, 1.1], [0.0, -1.0]]}),
    ("phase_type", "generator", {"initial": [1.0, 0.0], "generator": [[-1.0, 1.0], [1.0, -1.0]]}),
    ("phase_type", "generator", {"initial": [1.0, 0, 0], "generator": [[-1, 0, 0], [0, -1, 1], [0, 1, -1]]}),
    ("phase_type", "generator[0][0]", {"initial": [1.0], "generator": [[math.nan]]}),
    ("phase_type", "generator[0][0]", {"initial": [1.0], "generator": [[-inf]]}),
    ("phase_type", "generator", {"initial": [1.0]}),
    ("coxian", "probabilities", {"rates": [1.0, 2.0], "probabilities": [0.5, 0.5]}),
    ("coxian", "probabilities", {"rates": [1.0, 2.0], "probabilities": [1.5]}),
    ("coxian", "rates", {"rates": [1.0, 0.0], "probabilities": [0.5]}),
    ("coxian", "rates", {"rates": [], "probabilities": []}),
    *(("lognormal", "mean", {"mean": x, "sigma": 1.0}) for x in NUMBERS),
    *(("lognormal", "sigma", {"mean": 1.0, "sigma": x}) for x in NUMBERS),
    ("lognormal", "mean", {"sigma": 1.0}),
    *(("weibull", "shape", {"shape": x, "mean": 1.0}) for x in NUMBERS),
    *(("weibull", "mean", {"shape": 1.0, "mean": x}) for x in NUMBERS),
    *(("pareto", "shape", {"shape": x, "mean": 1.0}) for x in (*NUMBERS, 1.0, 0.5)),
    *(("pareto", "mean", {"shape": 2.0, "mean": x}) for x in NUMBERS),
    *(("bounded_pareto", "shape", {"shape": x, "low": 1.0, "high": 2.0}) for x in NUMBERS),
    *(("bounded_pareto", "low", {"shape": 1.0, "low": x, "high": 2.0}) for x in NUMBERS),
    *(("bounded_pareto", "high", {"shape": 1.0, "low": 1.0, "high": x}) for x in (*NUMBERS, 1.0, 0.5)),
    *(("gamma", "shape", {"shape": x, "mean": 1.0}) for x in NUMBERS),
    *(("gamma", "mean", {"shape": 1.0, "mean": x}) for x in NUMBERS),
    *(("uniform", "low", {"low": x, "high": 2.0}) for x in NUMBERS[1:]),
    *(("uniform", "high", {"low": 1.0, "high": x}) for x in (*NUMBERS, 1.0, 0.5)),
    *(("deterministic", "value", {"value": x}) for x in NUMBERS),
    *(("empirical", "values[1]", {"values": [1.0, x]}) for x in NUMBERS),
    ("empirical", "values", {"values": []}),
    ("empirical", "values", {}),
    ("empirical", "file", {"file": "no/such/file.txt"}),
    ("empirical", "file", {"file": "."}),
    ("empirical", "file", {"file": 3}),
    ("empirical", "file", {"file": "sizes.csv", "values": [1.0]}),
    ("scipy", "law", {"law": "norm"}),
    ("scipy", "law", {"law": "expon", "parameters": {"loc": -1.0}}),
    ("scipy", "law", {"law": "poisson", "parameters": {"mu": 1.0}}),
    ("scipy", "law", {"law": "halfcauchy"}),
    ("scipy", "law", {"law": "invgaus", "parameters": {"mu": 1.0}}),
    ("scipy", "law", {"law": 3}),
    ("scipy", "law", {"parameters": {}}),
    ("scipy", "parameters", {"law": "invgauss"}),
    ("scipy", "parameters", {"law": "invgauss", "parameters": {"nu": 1.0}}),
    ("scipy", "parameters", {"law": "invgauss", "parameters": {"mu": -1.0}}),
    ("scipy", "parameters.mu", {"law": "invgauss", "parameters": {"mu": "1"}}),
    ("scipy", "parameters", {"law": "invgauss", "parameters": [1.0]}),
    ("scipy", "factor", {"law": "expon", "factor": 0.0}),
]


@pytest.mark.parametrize(("kind", "key", "keys"), WRONG)
def test_wrong_parameters_are_named(kind, key, keys):
    """Every wrong parameter is a `ParameterError` of one sentence that names its key."""
    with pytest.raises(ParameterError) as caught:
        law_of(kind, keys)
    sentence = caught.value.sentence
    assert sentence.startswith((f"{key}: ", f"{key}[")) or repr(key) in sentence
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", KINDS)
def test_unknown_keys_are_named(kind):
    """A key that the kind does not have is named."""
    with pytest.raises(MalleableError, match="has no key 'colour'"):
        law_of(kind, {**EXAMPLES[kind][0], "colour": 1.0})


def test_negative_frozen_laws_are_refused():
    """A law with negative values is refused with the reason and a way out."""
    with pytest.raises(ParameterError, match=r"norm takes negative values .* loc"):
        Distribution.of(stats.norm(10.0, 1.0))


def test_frozen_laws_of_many_variables_are_refused():
    """Array-valued arguments make many laws at once, and one is wanted."""
    with pytest.raises(ParameterError, match="scale"):
        Distribution.of(stats.expon(scale=[1.0, 2.0]))
