"""What listeners of a pool are told, and when."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from malleable.live.workers import reports


@pytest.fixture
def clock(monkeypatch):
    made = SimpleNamespace(now=100.0)
    monkeypatch.setattr(reports.time, "monotonic", lambda: made.now)
    return made


def test_idleness_is_told_once_when_it_has_lasted(clock):
    """It begins when the last unit ends, however long that took, and anew with what is asked meanwhile."""
    told = []
    made = reports.Reports(1, None, None, lambda: told.append(clock.now), idle_seconds=0.1)
    made.tell_idle(idle=False)
    clock.now += 5.0  # a long unit
    made.tell_idle(idle=True)
    assert told == []
    assert made.patience() == pytest.approx(0.1)
    clock.now += 0.06
    made.awake()
    clock.now += 0.06
    made.tell_idle(idle=True)
    assert told == []
    clock.now += 0.05
    made.tell_idle(idle=True)
    made.tell_idle(idle=True)
    assert told == [clock.now]
    assert made.patience() is None
    made.tell_idle(idle=False)
    made.tell_idle(idle=True)
    clock.now += 0.2
    made.tell_idle(idle=True)
    assert len(told) == 2


def test_a_width_is_told_when_it_changes_or_was_asked_for(clock):
    """The same width again is news only to who has asked for it."""
    told = []
    made = reports.Reports(2, told.append, None, None, idle_seconds=0.0)
    for in_use, asked in ((2, False), (3, False), (3, False), (3, True), (1, True)):
        made.tell_width(in_use, asked=asked)
    assert told == [3, 3, 1]
