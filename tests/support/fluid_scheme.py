"""Random fluid systems side by side, in steps of constant speeds: an oracle apart from the library.

In a step of length h every class keeps the speed v that its rule gives at the counts before it, and its jobs
flow exactly: z' = z e^{Qvh} + λp ∫_0^h e^{Qvu} du. Sizes have two phases (rates a and b; the first ends or
goes on with probability q), which takes in exponential, hyperexponential, Erlang and Coxian laws. Speedups
are powers and Amdahl's law. Arrays have one row per system and one column per class.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

HALVINGS = 60


class Systems(NamedTuple):
    """What the systems are, on one core."""

    rate: Any
    first: Any
    """The probability to start in the first phase."""
    a: Any
    b: Any
    q: Any
    cost: Any
    power: Any
    """Whether the speedup is k^x; otherwise it is Amdahl's with the sequential part x."""
    x: Any
    rule: Any
    """0 for WHAM, 1 for GREEDY, 2 for EQUI."""

    @property
    def work(self):
        """The mean of the remaining work of a job by phase, times its arrivals: load is the sum of phases."""
        second = (1.0 - self.first + self.first * self.q) / self.b
        return np.stack([self.rate * self.first / self.a, self.rate * second], axis=-1)


def random_systems(rng: np.random.Generator, count: int, classes: int = 4) -> Systems:
    """One to four classes, all laws and rules, and loads from .1 to .97."""
    shape = (count, classes)
    law = rng.integers(0, 4, shape)
    a = np.exp(rng.uniform(-1.5, 1.5, shape))
    b = np.select([law == 2], [a * 1.001], np.exp(rng.uniform(-1.5, 1.5, shape)))
    made = Systems(
        rate=np.exp(rng.uniform(-2.0, 1.0, shape)),
        first=np.select([law == 1], [rng.uniform(0.05, 0.95, shape)], 1.0),
        a=a,
        b=np.where(np.abs(a - b) < 1e-3 * a, 1.001 * a, b),
        q=np.select([law == 2, law == 3], [1.0, rng.uniform(0.1, 0.9, shape)], 0.0),
        cost=np.exp(rng.uniform(-1.5, 1.5, shape)),
        power=rng.random(shape) < 0.5,
        x=rng.uniform(0.05, 0.95, shape),
        rule=rng.integers(0, 3, (count, 1)),
    )
    there = np.arange(classes) < rng.integers(1, classes + 1, (count, 1))
    load = (made.work.sum(axis=2) * there).sum(axis=1, keepdims=True)
    scale = np.where(there, rng.uniform(0.1, 0.97, (count, 1)) / load, 1e-12)
    return made._replace(rate=made.rate * scale)


def widths(made: Systems, log_price: Any) -> Any:
    """What a job of each class buys."""
    l = np.exp(log_price)
    x = made.x
    with np.errstate(over="ignore"):
        wham = np.where(made.power, made.cost * x / ((1 - x) * l), np.sqrt(made.cost * (1 - x) / (x * l)))
        greedy = np.where(made.power, (x / l) ** (1 / (1 - x)), (np.sqrt(x * (1 - x) / l) - (1 - x)) / x)
    return np.select(
        [made.rule == 0, made.rule == 1], [np.maximum(wham, 1.0), np.maximum(greedy, 1.0)], 1.0 / l
    )


def speeds(made: Systems, jobs: Any) -> Any:
    """The speed of a job of each class on one core; jobs that outnumber it time-share."""
    total = jobs.sum(axis=1, keepdims=True)
    low, high = np.full(total.shape, -80.0), np.full(total.shape, 80.0)
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        much = (jobs * np.minimum(widths(made, middle), 1e30)).sum(axis=1, keepdims=True) > 1.0
        low, high = np.where(much, middle, low), np.where(much, high, middle)
    k = np.maximum(widths(made, high), 1.0)
    fast = np.where(made.power, k**made.x, 1.0 / (made.x + (1.0 - made.x) / k))
    return np.where(total >= 1.0, 1.0 / np.maximum(total, 1.0), fast)


def step(made: Systems, z: Any, v: Any, h: float) -> Any:
    """The state after the time h at the speeds v."""
    t, a, b = v * h, made.a, made.b
    ea, eb = np.exp(-a * t), np.exp(-b * t)
    mixed = made.q * a * (ea - eb) / (b - a)
    ga, gb = -np.expm1(-a * t) / (a * v), -np.expm1(-b * t) / (b * v)
    between = made.q * a * (ga - gb) / (b - a)
    first, second = made.rate * made.first, made.rate * (1.0 - made.first)
    return np.stack(
        [z[..., 0] * ea + first * ga, z[..., 0] * mixed + z[..., 1] * eb + first * between + second * gb],
        axis=-1,
    )


def upper_state(made: Systems, crowd: float) -> Any:
    """As if all speeds had been so low for ever that there are `crowd` times as many jobs as cores."""
    load = made.work.sum(axis=(1, 2), keepdims=True)
    return made.work * (crowd / load)
