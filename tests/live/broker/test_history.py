"""The history: bounded, and true on average however old it is."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from malleable.live.broker.history import MOST_ENDED, MOST_JOBS, MOST_STEPS, History, Track
from support.examples import examples


def document(cores, jobs, *, price=None, cost=None):
    """A status document with what a history reads of it: (id, class, granted) of each job."""
    rows = [{"id": i, "class": c, "granted": g, "progress": None} for i, c, g in jobs]
    return {
        "cores": cores, "price": price, "jobs": rows, "cost": {"so_far": cost, "bound": None},
        "present": len(rows), "waiting": sum(row["granted"] == 0 for row in rows),
    }  # fmt: skip


def area(times, values, end):
    return float(np.dot(np.diff([*times, end]), [value or 0.0 for value in values]))


def test_what_was_recorded():
    """A few samples come back as they are, as columns, unknown numbers as None."""
    history = History()
    history.record(1.0, document(4, [("a", "x", 4)], cost=0.5))
    history.record(2.0, document(4, [("a", "x", 2), ("b", "y", 2)], price=0.1, cost=0.6))
    history.record(3.0, document(8, [("b", "y", 0)], price=0.2, cost=0.7))
    found = history.document()
    assert found["machine"]["time"] == [1.0, 2.0, 3.0]
    assert found["machine"]["cores"] == [4, 4, 8]
    assert found["machine"]["price"] == [None, 0.1, 0.2]
    assert found["machine"]["waiting"] == [0, 0, 1]
    assert found["machine"]["bound"] == [None] * 3
    assert found["classes"]["granted"] == {"x": [4, 2, 0], "y": [0, 2, 0]}
    assert found["jobs"]["a"] == {
        "class": "x", "ended": 3.0, "time": [1.0, 2.0], "granted": [4, 2], "progress": [None, None],
    }  # fmt: skip
    assert found["jobs"]["b"]["ended"] is None
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_what_does_not_change_takes_no_room():
    """The same again is no new sample."""
    history = History()
    for now in range(1000):
        history.record(float(now), document(4, [("a", "x", 4)], cost=1.0))
    found = history.document()
    assert found["machine"]["time"] == found["classes"]["time"] == found["jobs"]["a"]["time"] == [0.0]


@settings(max_examples=examples(20))
@given(st.lists(st.tuples(st.floats(0.01, 10.0), st.integers(0, 9), st.booleans()), min_size=1, max_size=400))
def test_areas_stay(steps):
    """However often samples were merged, the core-time of each class up to the last sample is exact."""
    track, now, exact = Track(16, absent=0.0), 0.0, {"x": 0.0, "y": 0.0}
    last, since = {}, 0.0
    for gap, cores, other in steps:
        now += gap
        for name, value in last.items():
            exact[name] += value * (now - since)
        last, since = {"x": float(cores), "y": 1.0} if other else {"x": float(cores)}, now
        track.add(now, last)
        assert len(track.times) <= 16
        assert track.times == sorted(track.times)
    columns = track.columns(("x", "y"))
    for name, expected in exact.items():
        assert area(track.times, columns[name], since) == pytest.approx(expected, abs=1e-6)


def test_unknown_numbers_are_not_zero():
    """A price that was not known for a while does not lower the average of the time when it was."""
    track = Track(8)
    for now in range(100):
        track.add(float(now), {"n": float(now)} | ({"price": 3.0} if now % 2 else {}))
    prices = [values.get("price") for values in track.values]
    assert set(prices) <= {3.0, None}
    assert prices[0] == 3.0


def test_the_past_grows_coarser():
    """Of a long time the recent part is kept sample by sample, and the oldest in ever longer steps."""
    track = Track(64, absent=0.0)
    for now in range(5000):
        track.add(float(now), {"x": float(now % 7)})
    gaps = np.diff(track.times)
    assert track.times[0] == 0.0
    assert list(gaps[-20:]) == [1.0] * 20
    assert gaps[0] > 100.0
    assert (np.diff(gaps) <= 0.0).mean() > 0.9


def test_memory_is_bounded():
    """Many jobs over a long time: a bounded number of samples, of jobs, and of jobs that are gone."""
    history, rng = History(), random.Random(1)
    for now in range(1500):
        jobs = []
        if now % 50 == 0:  # many at a time, now and then
            jobs = [(f"j{now + k}", f"c{k % 5}", rng.randint(0, 9)) for k in range(MOST_JOBS + 100)]
        history.record(float(now), document(64, jobs, price=rng.random(), cost=rng.random()))
    found = history.document()
    assert len(found["machine"]["time"]) <= 720
    assert len(found["classes"]["time"]) <= 720
    assert len(found["jobs"]) <= MOST_JOBS + MOST_ENDED
    assert max(len(job["time"]) for job in found["jobs"].values()) <= MOST_STEPS


def test_the_log_has_a_line_for_each_job():
    """Arrival, first cores, end and core-seconds; a job that is only not listed is not taken for gone."""
    history = History()
    history.record(1.0, document(4, [("a", "x", 0)]))
    history.record(3.0, document(4, [("a", "x", 4), ("b", "y", 0)]))
    history.record(5.0, document(4, [("a", "x", 1), ("b", "y", 3)]))
    history.record(6.0, {**document(4, [("b", "y", 4)]), "present": 2})
    history.record(7.0, document(4, [("b", "y", 4)]))
    found = history.log()
    assert found["id"] == ["a", "b"]
    assert (found["came"], found["began"], found["went"]) == ([1.0, 3.0], [3.0, 5.0], [7.0, None])
    assert found["core_seconds"] == [4 * 2.0 + 1 * 2.0, 3 * 1.0 + 4 * 1.0]
    assert json.loads(json.dumps(found, allow_nan=False)) == found
