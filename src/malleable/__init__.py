"""malleable decides how many cores each running job should get.

The names below are the public surface. They are imported on first use, so that `import malleable` and
`malleable --help` stay instant.
"""

from __future__ import annotations

import importlib

TYPE_CHECKING = False  # that of `typing`, which takes as long to import as all the rest of this
if TYPE_CHECKING:
    from typing import Any

    from malleable.api import allocate as allocate
    from malleable.api import bound as bound
    from malleable.api import bound_for_jobs as bound_for_jobs
    from malleable.api import compare as compare
    from malleable.api import explain as explain
    from malleable.api import fit_sizes as fit_sizes
    from malleable.api import fit_speedup as fit_speedup
    from malleable.api import malleabilise as malleabilise
    from malleable.api import mean_field as mean_field
    from malleable.api import plan as plan
    from malleable.api import read_trace as read_trace
    from malleable.api import replay as replay
    from malleable.api import simulate as simulate
    from malleable.api import sweep as sweep
    from malleable.errors import MalleableError as MalleableError
    from malleable.model import JobClass as JobClass
    from malleable.model import Workload as Workload
    from malleable.model import load_workload as load_workload
    from malleable.model import paper_workload as paper_workload
    from malleable.model.jobs import Jobs as Jobs
    from malleable.results import Comparison as Comparison
    from malleable.results import Result as Result

__version__ = "0.1.0"

_HOMES = {
    "Comparison": "results",
    "JobClass": "model",
    "Jobs": "model.jobs",
    "MalleableError": "errors",
    "Result": "results",
    "Workload": "model",
    "allocate": "api",
    "bound": "api",
    "bound_for_jobs": "api",
    "compare": "api",
    "explain": "api",
    "fit_sizes": "api",
    "fit_speedup": "api",
    "load_workload": "model",
    "malleabilise": "api",
    "mean_field": "api",
    "paper_workload": "model",
    "plan": "api",
    "read_trace": "api",
    "replay": "api",
    "simulate": "api",
    "sweep": "api",
}
__all__ = sorted(_HOMES)  # noqa: PLE0605 - sorted() returns a list


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'malleable' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"malleable.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
