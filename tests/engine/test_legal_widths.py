"""From proposals to allowed widths: against the enumeration of all that is allowed."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from malleable.engine.legal_widths import legalise, set_aside
from malleable.engine.rule_interface import CLASS, COLUMNS, HELD
from malleable.engine.width_table import encode_limits, is_allowed
from malleable.model import JobType
from support.examples import examples

CORES = 8
FORMS = st.one_of(
    st.sampled_from(["any", "whole", "powers-of-two"]),
    st.sets(st.integers(1, CORES), min_size=1, max_size=3).map(sorted),
    st.fixed_dictionaries({"min": st.integers(1, 4), "step": st.integers(1, 3)}),
)


@st.composite
def job_types(draw):
    """Malleable, moldable and rigid jobs of all sorts of widths."""
    shape = draw(st.sampled_from(["malleable", "malleable", "moldable", "rigid"]))
    own = {"width": draw(st.integers(1, CORES))} if shape == "rigid" else {"widths": draw(FORMS)}
    return JobType("a", {"kind": "power", "exponent": 0.5}, shape=shape, **own)


def widths_of(one, kept):
    """What a job may run on; None for any width."""
    if one.shape == "moldable" and kept > 0.0:
        return [kept]
    allowed = one.allowed_widths.allowed(CORES)
    return None if allowed is None else allowed.tolist()


@st.composite
def proposals(draw):
    """Up to five jobs that can move, what is proposed for them, and the widths that some have chosen."""
    count = draw(st.integers(1, 5))
    types = draw(st.lists(job_types(), min_size=count, max_size=count))
    kept = np.zeros(count)
    for j, one in enumerate(types):
        if one.shape == "moldable" and draw(st.booleans()):
            kept[j] = draw(st.sampled_from(widths_of(one, 0.0)))
    free = float(draw(st.integers(1, CORES)))
    wishes = draw(
        st.lists(
            st.one_of(st.integers(0, 4).map(float), st.floats(0.0, 4.0).map(lambda x: round(x, 3))),
            min_size=count,
            max_size=count,
        )
    )
    share = min(1.0, free / max(sum(wishes), 1e-9))
    return types, kept, free, np.array(wishes) * share


def legal(types, kept, free, wishes):
    """What `legalise` makes of proposals when every job can move."""
    jobs = np.zeros((len(types), COLUMNS))
    jobs[:, CLASS] = np.arange(len(types))
    part = wishes.copy()
    rows = np.arange(len(types), dtype=np.int64)
    legalise(jobs, rows, len(types), kept, free, encode_limits(types, CORES), part)
    return part


def outcomes(types, kept, free, wishes):
    """All right answers: nearest allowed widths, then the narrowest for those who wait, in order."""
    choices = [widths_of(one, k) for one, k in zip(types, kept, strict=True)]
    wishes = [
        round(w) * 1.0 if own is not None and abs(w - round(w)) <= 1e-9 else w
        for own, w in zip(choices, wishes, strict=True)
    ]
    if all(own is None or w == 0.0 or w in own for own, w in zip(choices, wishes, strict=True)):
        return [wishes]
    budget = math.floor(free - sum(w for own, w in zip(choices, wishes, strict=True) if own is None) + 1e-9)
    options = [[w] if own is None else [0.0, *own] for own, w in zip(choices, wishes, strict=True)]
    found = []
    for picked in itertools.product(*options):
        spent = sum(k for own, k in zip(choices, picked, strict=True) if own is not None)
        if spent <= budget:
            distance = sum((k - w) ** 2 for k, w in zip(picked, wishes, strict=True))
            found.append((distance, budget - spent, list(picked)))
    least = min(distance for distance, *_ in found)
    made = []
    for distance, unspent, picked in found:
        if distance <= least + 1e-9:
            spare = unspent
            for j, own in enumerate(choices):
                if own is not None and picked[j] == 0.0 and own[0] <= spare:
                    picked[j] = own[0]
                    spare -= own[0]
            made.append(picked)
    return made


@settings(max_examples=300)
@given(proposals())
def test_nearest_of_all_that_is_allowed(case):
    """Widths have the least Σ (k − proposed)² of all allowed ones; spare cores go to the waiting in order."""
    types, kept, free, wishes = case
    part = legal(types, kept, free, wishes)
    assert part.sum() <= free + 1e-9
    assert any(np.allclose(part, right, rtol=0.0, atol=1e-9) for right in outcomes(types, kept, free, wishes))


@settings(max_examples=examples(40))
@given(proposals(), st.floats(1.0, 3.0))
def test_more_than_is_free(case, factor):
    """Where more is proposed than is free, the latest get none until it fits; never more than is free."""
    types, kept, free, wishes = case
    wishes = wishes * factor
    dropped = wishes.copy()
    for j in range(len(dropped) - 1, -1, -1):
        if dropped.sum() > free + 1e-9:
            dropped[j] = 0.0
    part = legal(types, kept, free, wishes)
    assert part.sum() <= free + 1e-9
    rights = outcomes(types, kept, free, dropped)
    assert any(np.allclose(part, right, rtol=0.0, atol=1e-9) for right in rights)


@pytest.mark.parametrize(("change", "kept"), [(1e-13, True), (-1e-13, True), (1e-6, False)])
def test_rounding_is_no_resize(change, kept):
    """A width that differs from the one held by its last digits is the one held; a real change is made."""
    types = [JobType("a", {"kind": "power", "exponent": 0.5}, resize={"pause": 0.5})] * 2
    jobs = np.zeros((2, COLUMNS))
    jobs[:, CLASS], jobs[:, HELD] = [0, 1], [1.25, 2.5]
    part = jobs[:, HELD] * (1.0 + change)
    wishes = part.copy()
    legalise(jobs, np.arange(2), 2, np.zeros(2), 4.0, encode_limits(types, 4), part)
    assert np.array_equal(part, jobs[:, HELD] if kept else wishes)


def test_rounding_stops_no_job():
    """Quiet jobs that hold more than there is by rounding, as markets may give out, all keep their cores."""
    types = [JobType("a", {"kind": "power", "exponent": 0.5}, quiet=1.0)]
    jobs = np.zeros((2, COLUMNS))
    jobs[:, HELD] = [1500.0, 500.0 * (1.0 + 1e-11)]
    pinned = np.zeros(2)
    movable, free = set_aside(
        jobs, np.ones(2), 0.5, 2000.0, encode_limits(types, 2000), np.zeros(2, np.int64), pinned
    )
    assert (movable, free, pinned.tolist()) == (0, 0.0, [1.0, 1.0])


@st.composite
def running(draw):
    """Jobs that hold cores, some of them quiet, and a number of cores that may have fallen."""
    count = draw(st.integers(1, 5))
    types = draw(st.lists(job_types(), min_size=count, max_size=count))
    jobs = np.zeros((count, COLUMNS))
    jobs[:, CLASS] = np.arange(count)
    for j, one in enumerate(types):
        jobs[j, HELD] = draw(st.sampled_from([0.0, *(widths_of(one, 0.0) or [1.0, 1.5, 2.5])]))
    calm = np.array(draw(st.lists(st.sampled_from([0.0, 2.0]), min_size=count, max_size=count)))
    return types, jobs, calm, float(draw(st.integers(0, CORES)))


@settings(max_examples=examples(60))
@given(running())
def test_who_cannot_move(case):
    """Rigid, moldable and quiet jobs that run keep their cores; the latest stop where cores are gone."""
    types, jobs, calm, n = case
    stay = [
        j
        for j, one in enumerate(types)
        if jobs[j, HELD] > 0.0 and (one.shape != "malleable" or calm[j] > 1.0)
    ]
    stopped = []
    while sum(jobs[j, HELD] for j in stay) > n + 1e-9:
        stopped.append(stay.pop())
    rows, pinned = np.zeros(len(types), np.int64), np.zeros(len(types))
    movable, free = set_aside(jobs, calm, 1.0, n, encode_limits(types, CORES), rows, pinned)
    assert np.flatnonzero(pinned == 1.0).tolist() == stay
    assert sorted(np.flatnonzero(pinned == -1.0)) == sorted(stopped)
    assert rows[:movable].tolist() == [j for j in range(len(types)) if j not in {*stay, *stopped}]
    assert free == pytest.approx(max(n - sum(jobs[j, HELD] for j in stay), 0.0))


@given(job_types(), st.one_of(st.integers(1, 10).map(float), st.floats(0.01, 10.0)))
def test_what_is_allowed(one, k):
    """A width is allowed if it is among those of the class, or at least one core where any is."""
    own = widths_of(one, 0.0)
    assert is_allowed(encode_limits([one], CORES), 0, k) == (k >= 1.0 if own is None else k in own)
