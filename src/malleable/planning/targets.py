"""Targets such as "cost < 3", "p95(train) < 2h", "slowdown < 5": what is to be below what, of which class.

    METRIC < NUMBER[UNIT]          METRIC(CLASS) < NUMBER[UNIT]

| metric | |
|---|---|
| `cost` | mean holding cost per job; of a class, of its jobs |
| `response` | mean response time |
| `p50`, `p95`, `p99` | percentiles of the response time |
| `slowdown` | mean of response time / size; in a log bounded below by 1, with a size of at least 10 s |
| `wait` | mean wait before the start; in a log only |

Times may have a unit: ms, s, min, h, d. The unit of time of a workload with such a target is the second.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from malleable.errors import ParameterError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Sequence

SAVING = "saving"
"""What one more core saves per hour: the metric of a plan by prices."""
MONEY = "money"
"""What cores and jobs cost per hour: the same for given jobs."""
UNITS = {
    "ms": 1e-3,
    "s": 1.0,
    "sec": 1.0,
    "min": 60.0,
    "m": 60.0,
    "h": 3600.0,
    "hours": 3600.0,
    "d": 86400.0,
    "days": 86400.0,
    "minutes": 60.0,
    "seconds": 1.0,
    "hour": 3600.0,
    "day": 86400.0,
}
TIMES = ("response", "p50", "p95", "p99", "wait")
METRICS = ("cost", *TIMES[:-1], "slowdown", "wait")
EXAMPLE = 'for example "cost < 3", "response < 90s", "p95(train) < 2h" or "slowdown < 5"'
FORM = re.compile(r"\s*(?P<metric>[^\s(<≤=>]+)\s*(?:\((?P<job_class>.*)\))?\s*(?:<=?|≤)\s*(?P<limit>.*)")
NUMBER = re.compile(
    r"(?P<number>[-+]?(?:(?:\d[\d_]*\.?\d*|\.\d+)(?:e[-+]?\d+)?|nan|inf(?:inity)?))\s*(?P<unit>.*)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Target:
    """What is to be below what."""

    metric: str
    limit: float
    job_class: str | None = None
    text: str = ""

    @property
    def name(self) -> str:
        """The metric and its class, as they are written."""
        return self.metric if self.job_class is None else f"{self.metric}({self.job_class})"

    @property
    def level(self) -> float | None:
        """Of a percentile, the share of jobs that are to be below the limit."""
        return float(self.metric[1:]) / 100.0 if self.metric.startswith("p") else None

    def __str__(self) -> str:
        return self.text or f"{self.name} < {self.limit:g}"


def read_target(text: Target | str, classes: Sequence[str] = ()) -> Target:
    """Read a target; `classes` are the names that it may be about."""
    if isinstance(text, Target):
        return text
    found = FORM.fullmatch(str(text))
    if found is None:
        raise ParameterError(f"not a target: {text!r:.60}", EXAMPLE)
    metric, name = found["metric"].lower(), found["job_class"]
    if metric not in METRICS:
        raise ParameterError(f"there is no metric {found['metric']!r:.40}", did_you_mean(metric, METRICS))
    name = None if name is None else name.strip()
    if name is not None and name not in classes:
        raise ParameterError(f"no class is called {name!r:.60}", did_you_mean(name, classes))
    return Target(metric, _limit(metric, found["limit"].strip()), name, " ".join(str(text).split()))


def _limit(metric: str, text: str) -> float:
    if not text:
        raise ParameterError(f"the target says {metric} < and no number", EXAMPLE)
    found = NUMBER.fullmatch(text)
    if found is None:
        raise ParameterError(f"{text!r:.40} is not a number", EXAMPLE)
    number, unit = float(found["number"]), found["unit"].strip()
    if unit and metric not in TIMES:
        raise ParameterError(f"{metric} has no unit, got {text!r:.40}", f"write {metric} < {found['number']}")
    if unit and unit not in UNITS:
        raise ParameterError(f"there is no unit {unit!r:.40}", "use ms, s, min, h or d")
    limit = number * UNITS.get(unit, 1.0)
    if not 0.0 < limit < math.inf:
        raise ParameterError(f"the limit of {metric} must be positive and finite, got {text!r:.40}", EXAMPLE)
    return limit


def read_share(text: float | str, what: str) -> float:
    """A share such as 20%, 0.2 or 0.2."""
    word = str(text).strip()
    try:
        share = float(word[:-1]) / 100.0 if word.endswith("%") else float(word)
    except ValueError:
        share = math.nan
    if not -1.0 < share < math.inf or share == 0.0:
        raise ParameterError(
            f"{what} must be a share such as 20%, got {word!r:.40}", "20% more is 20% or 0.2"
        )
    return share
