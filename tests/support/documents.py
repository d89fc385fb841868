"""A valid workload document, and changes to it."""

from __future__ import annotations


def row(**changes):
    """A good class; a key set to `...` is left out."""
    keys = {
        "name": "etl",
        "arrivals": {"kind": "poisson", "rate": 2.0},
        "size": {"kind": "exponential", "rate": 5.0},
        "speedup": {"kind": "power", "exponent": 0.3},
        "holding_cost": 3.0,
        **changes,
    }
    return {key: value for key, value in keys.items() if value is not ...}


def document(**changes):
    return {"name": "test", "classes": [row(**changes)]}
