"""The core ledger on its own, move by move."""

from __future__ import annotations

from malleable.live.core.actions import Grant, Shrink, Start, Stop
from malleable.live.core.ledger import Ledger


def opened(cores, *jobs, **options):
    ledger = Ledger(cores)
    for rank, job in enumerate(jobs):
        ledger.open(job, rank, **options)
    return ledger


def test_shrink_first():
    """A core goes to another job only when its holder has confirmed that it gave it back."""
    ledger = opened(4, "a", "b")
    assert ledger.retarget({"a": 4}) == [Start("a", 4, 1)]
    ledger.confirm("a", 4, 1)
    assert ledger.retarget({"a": 1, "b": 3}) == [Shrink("a", 1, 2)]
    assert ledger.confirm("a", 3, 2) == [Start("b", 1, 1)]
    assert ledger.confirm("a", 1, 2) == [Grant("b", 3, 2)]
    assert ledger.granted == 4
    assert ledger.free == 0


def test_pause_and_resume():
    """A target of 0 stops a job, which is granted cores again by a `Grant`."""
    ledger = opened(2, "a")
    ledger.retarget({"a": 2})
    assert ledger.retarget({"a": 0}) == [Stop("a", 0, 2)]
    ledger.confirm("a", 0, 2)
    assert ledger.free == 2
    assert ledger.retarget({"a": 1}) == [Grant("a", 1, 3)]


def test_a_confirmation_from_before_the_last_action_gives_nothing_back():
    """A job that narrowed, was widened and is to narrow again still may use what it was widened to."""
    ledger = opened(4, "a", "b")
    ledger.retarget({"a": 4})
    ledger.confirm("a", 4, 1)
    ledger.retarget({"a": 2})
    ledger.retarget({"a": 4})  # the answer to the shrink is on its way
    ledger.retarget({"a": 2, "b": 2})
    assert ledger.confirm("a", 2, 2) == []
    assert ledger.accounts["a"].granted == 4
    assert ledger.confirm("a", 2, 4) == [Start("b", 2, 1)]


def test_confirmations_that_cannot_be_true():
    """Of unknown jobs, of actions that were never sent, out of order, or beyond what was granted."""
    ledger = opened(4, "a")
    ledger.retarget({"a": 2})
    ledger.retarget({"a": 1})
    assert "no job" in ledger.complaint("x", 1, 1)
    assert "the last one was 2" in ledger.complaint("a", 1, 3)
    assert "granted 2" in ledger.complaint("a", 3, 2)
    assert ledger.complaint("a", 1, 2) == ""
    ledger.confirm("a", 1, 2)
    assert "after 2" in ledger.complaint("a", 1, 1)


def test_fewer_cores_than_are_granted():
    """When cores are taken from the machine, nothing is granted until as many were given back."""
    ledger = opened(4, "a", "b")
    ledger.retarget({"a": 3, "b": 1})
    ledger.cores = 2
    assert ledger.retarget({"a": 0, "b": 2}) == [Stop("a", 0, 2)]
    assert ledger.confirm("a", 2, 2) == []
    assert ledger.confirm("a", 0, 2) == [Grant("b", 2, 2)]


def test_cores_are_kept_for_a_job_that_may_come_back():
    """Cores of a job that is expected are granted to no other, and are its own again when it is there."""
    ledger = opened(4, "a")
    ledger.expect("b", 3)
    assert ledger.retarget({"a": 4}) == [Start("a", 1, 1)]
    ledger.expect("c", 2)
    assert ledger.expected == {"b": 3}, "what is granted or kept already cannot be kept for another"
    assert ledger.open("b", 1, in_use=3) == []
    assert (ledger.accounts["b"].granted, ledger.free, ledger.expected) == (3, 0, {})
    ledger.close("b")
    ledger.expect("b", 3)
    assert ledger.hand_out() == []
    ledger.expect("b", 0)
    assert ledger.hand_out() == [Grant("a", 4, 2)]


def test_at_once_or_not_at_all():
    """A rigid job waits until all its cores are there; another takes them one by one."""
    ledger = opened(4, "a")
    ledger.open("rigid", 1, at_once=True)
    ledger.retarget({"a": 3})
    assert ledger.retarget({"a": 2, "rigid": 2}) == [Shrink("a", 2, 2)]
    assert ledger.confirm("a", 2, 2) == [Start("rigid", 2, 1)]


def test_a_job_that_was_running_before_the_ledger():
    """It keeps its cores where they are free, and is told to narrow where they are not."""
    ledger = opened(4, "a")
    ledger.retarget({"a": 1})
    assert ledger.open("b", 1, in_use=2) == []
    assert ledger.open("c", 2, in_use=3) == [Shrink("c", 1, 1)]
    assert ledger.open("d", 3, in_use=1) == [Stop("d", 0, 1)]
    assert ledger.granted == 4
