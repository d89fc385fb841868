"""Short runs for the tests of `malleable simulate` and `malleable compare`."""

from __future__ import annotations

MODERATE = ("paper", "--cores", "16", "--load", "0.25", "--jobs", "4000")


def steady(document):
    """The document without what depends on the machine and the moment."""
    return {key: value for key, value in document.items() if key not in {"seconds", "events_per_second"}}
