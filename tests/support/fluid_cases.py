"""Random workloads for the tests of the mean field: mixed speedups, phase-type sizes, any load."""

from __future__ import annotations

from hypothesis import strategies as st

from malleable.model import Workload


def _number(low, high):
    return st.floats(low, high, allow_nan=False).map(lambda x: float(f"{x:.4g}"))


SPEEDUPS = st.one_of(
    _number(0.1, 0.8).map(lambda p: {"kind": "power", "exponent": p}),
    _number(0.02, 0.8).map(lambda q: {"kind": "amdahl", "sequential": q}),
    st.builds(
        lambda a, b: {"kind": "usl", "contention": a, "coherency": b}, _number(0.01, 0.5), _number(1e-4, 0.01)
    ),
    st.builds(
        lambda k, p: {"kind": "linear_power", "cores": k, "exponent": p}, _number(1, 3), _number(0.1, 0.8)
    ),
)
SIZES = st.one_of(
    _number(0.2, 5).map(lambda r: {"kind": "exponential", "rate": r}),
    st.builds(lambda k, m: {"kind": "erlang", "stages": k, "mean": m}, st.integers(1, 4), _number(0.2, 3)),
    st.builds(
        lambda r, q: {"kind": "hyperexponential", "probabilities": [0.25, 0.75], "rates": [r, q]},
        _number(0.2, 2),
        _number(1, 9),
    ),
    _number(0.5, 3).map(
        lambda r: {
            "kind": "phase_type",
            "initial": [0.2, 0.5, 0.3],
            "generator": [[-3 * r, 2 * r, 0.5 * r], [r, -2 * r, 0.0], [0.0, 4 * r, -4 * r]],
        }
    ),
)
CLASSES = st.builds(
    lambda rate, size, speedup, cost: {
        "arrivals": {"kind": "poisson", "rate": rate},
        "size": size,
        "speedup": speedup,
        "holding_cost": cost,
    },
    _number(0.1, 5),
    SIZES,
    SPEEDUPS,
    _number(0.2, 5),
)


@st.composite
def situations(draw):
    """A workload scaled to a load, and the cores; GREEDY's widths at still lower loads pass all digits."""
    document = {"name": "random", "classes": draw(st.lists(CLASSES, min_size=1, max_size=4))}
    cores, load = draw(_number(2, 200)), draw(_number(0.1, 0.9))
    return Workload.from_dict(document).at(cores, load), cores
