"""The count kernel: the Markov chain of the class counts under a class rule, if sizes were exponential.

With Poisson arrivals (rates λ_i) and exponential sizes (rates μ_i) the counts jump up at rate λ_i and down at
rate x_i μ_i s_i. The kernel follows the jumps and writes down every state that it visits with the departure
rates there, so that what a state costs can be averaged exactly over what may happen next: a state counts for
its mean holding time, one over the total rate. Randomness comes in as uniform numbers, so equal numbers give
equal paths, compiled or not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from malleable.engine.speedup_table import most_efficient, speed

if TYPE_CHECKING:
    from collections.abc import Callable

    from malleable.contracts import FloatArray


LARGEST_KEY = 2.0**53
"""Numbers of states up to which a float tells them apart."""


class Visits(NamedTuple):
    """The states of a path, the rate of departures of each class there, and the mean time spent there."""

    counts: FloatArray
    departures: FloatArray
    times: FloatArray

    def merged(self) -> Visits:
        """Every state once, with all the time spent there."""
        most = self.counts.max(axis=0) + 1.0
        if float(np.prod(most)) > LARGEST_KEY:
            return self
        keys = (self.counts @ np.append(1.0, np.cumprod(most)[:-1])).astype(np.int64)
        _, first, which = np.unique(keys, return_index=True, return_inverse=True)
        times = np.bincount(which.ravel(), self.times).astype(float)
        return Visits(self.counts[first], self.departures[first], times)


def signature(rule: Any) -> Any:
    """The types of `count_kernel`'s arguments, for a rule of the given type."""
    from numba import float64, void  # noqa: PLC0415 - this module also runs without numba

    f1, f2 = float64[::1], float64[:, ::1]
    return void(rule, float64, f1, f1, f1, f1, f1, f1, f2, f2, f1)


def count_kernel(
    rule: Any,
    cores: float,
    table: Any,
    arrival_rates: Any,
    service_rates: Any,
    uniforms: Any,
    now: Any,
    width: Any,
    counts: Any,
    departures: Any,
    times: Any,
) -> None:
    """Follow as many jumps as there are uniform numbers, from the counts `now`."""
    m = now.shape[0]
    arriving = 0.0
    for i in range(m):
        arriving += arrival_rates[i]
    for event in range(uniforms.shape[0]):
        total = arriving
        rule(now, cores, table, width)
        for i in range(m):
            rate = 0.0
            if now[i] > 0.0 and width[i] > 0.0:
                # Below its most efficient width a job is on it for a part of the time.
                least = most_efficient(table, i)
                part = min(width[i] / least, 1.0)
                rate = now[i] * service_rates[i] * part * speed(table, i, max(width[i], least))
            counts[event, i], departures[event, i] = now[i], rate
            total += rate
        times[event] = 1.0 / total
        left = uniforms[event] * total
        moved = False
        for i in range(m):
            left -= arrival_rates[i]
            if not moved and left < 0.0:
                now[i] += 1.0
                moved = True
            left -= departures[event, i]
            if not moved and left < 0.0:
                now[i] -= 1.0
                moved = True


def follow(
    rule: Callable[..., None],
    table: FloatArray,
    cores: float,
    arrival_rates: FloatArray,
    service_rates: FloatArray,
    uniforms: FloatArray,
    start: FloatArray,
) -> Visits:
    """The path of the counts from a start, as long as the uniform numbers."""
    from malleable.engine.compiling import AS_ARGUMENT, CLASS_RULE, RuleAddress, can_compile, compiled  # noqa: PLC0415 - loads numba

    kernel: Any = count_kernel
    entry: Any = rule
    if can_compile():
        kernel = compiled(count_kernel, signature(AS_ARGUMENT[CLASS_RULE]))
        entry = RuleAddress(compiled(rule, CLASS_RULE), CLASS_RULE)
    m, events = len(arrival_rates), len(uniforms)
    found = Visits(np.empty((events, m)), np.empty((events, m)), np.empty(events))
    with np.errstate(all="ignore"):
        kernel(
            entry, float(cores), table.copy(), arrival_rates, service_rates, uniforms,
            np.array(start, dtype=float), np.zeros(m), *found,
        )  # fmt: skip
    return found
