"""Records of groups of replications of which only the numbers of jobs present were kept."""

from __future__ import annotations

from typing import Any

import numpy as np

from malleable.engine.gpu.layout import (
    AREA,
    ARRIVALS,
    CLASS_SUMS,
    DEPARTURES,
    DURATION,
    OVERLOAD,
    USED_AREA,
)
from malleable.engine.records import Records


def lean_records(rows: Any, classes: int) -> tuple[Records, ...]:
    """Records of each group from rows (records, fields, groups), without bins for percentiles.

    The area under the number of jobs stands for the sum of response times, which it is but for the jobs at
    both ends of a record.
    """
    none = np.zeros((1, classes, 0))
    made = []
    for group in range(rows.shape[2]):
        mine = rows[:, :, group]
        by_class = mine[:, : CLASS_SUMS * classes].reshape(-1, classes, CLASS_SUMS)
        machine = mine[:, CLASS_SUMS * classes :]
        unknown = np.full(by_class.shape[:2], np.nan)
        made.append(
            Records(
                departures=by_class[:, :, DEPARTURES],
                response=by_class[:, :, AREA],
                slowdown=unknown,
                arrivals=by_class[:, :, ARRIVALS],
                work=unknown,
                area=by_class[:, :, AREA],
                present=mine[:, -classes:],
                duration=machine[:, DURATION],
                used=machine[:, USED_AREA],
                overload=machine[:, OVERLOAD],
                segment=np.zeros(len(mine)),
                response_histogram=none,
                slowdown_histogram=none,
                width_histogram=none[0],
            )
        )
    return tuple(made)
