"""The families of things that are chosen by name. Imports nothing, so that `--help` can name them at once."""

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
