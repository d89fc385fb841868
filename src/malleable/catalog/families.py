"""The families of things that are chosen by name, and what is of this package.

It imports nothing, so that `--help` can name them at once.
"""

from __future__ import annotations

OWN = __name__.partition(".")[0]

FAMILIES = ("speedups", "distributions", "arrivals", "capacities", "policies", "traces")
"""Those whose kinds are modules of a folder, or of other packages."""
LISTED = (
    "policies",
    "speedups",
    "distributions",
    "arrivals",
    "capacities",
    "workloads",
    "traces",
    "backends",
)
"""What one may ask to have listed; some of it is still to come."""


def there_are() -> tuple[str, ...]:
    """Those that have something to list."""
    return tuple(family for family in LISTED if family == "workloads" or family in FAMILIES)


def is_ours(thing: object) -> bool:
    """Whether a function or a class is of this package, and not of a user."""
    return str(getattr(thing, "__module__", "")).partition(".")[0] == OWN
