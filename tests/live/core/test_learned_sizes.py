"""What ended and running jobs teach about sizes."""

from __future__ import annotations

import json

import numpy as np
import pytest

from malleable.distributions.exponential import Exponential
from malleable.distributions.lognormal import Lognormal
from malleable.distributions.uniform import Uniform
from malleable.live.core.estimates import remaining_work
from malleable.live.core.events import Cancelled, Confirmed, Finished, Progressed, Registered
from malleable.live.core.learned_sizes import CELLS, EDGES, STEP, ClassSeen, LearnedSizes, time_in_cells
from malleable.live.core.scheduler import Scheduler

LAWS = {
    "exponential": Exponential(rate=0.2),
    "heavy": Lognormal(mean=20.0, sigma=1.5),
    "light": Uniform(low=2.0, high=4.0),
}


def after(sizes, laws=(None,)):
    """What is believed after jobs of the first class have ended with these sizes."""
    learned = LearnedSizes(laws)
    for size in sizes:
        learned.end(0, size, finished=True)
    return learned


def test_time_in_cells_is_the_logarithm_of_the_work_done():
    """Summed over the cells it is log(x/first edge) for each job, and none for jobs below the first edge."""
    work = np.array([0.0, 1e-9, 0.3, 1.0, 7.0, 2.0**20])
    expected = np.log(np.maximum(work, EDGES[0]) / EDGES[0]).sum()
    assert time_in_cells(work).sum() == pytest.approx(expected)
    assert time_in_cells(np.zeros(0)).tolist() == [0.0] * CELLS
    assert time_in_cells(np.array([1.0]))[EDGES[:-1] < 0.99] == pytest.approx(STEP)


def test_an_unseen_class_expects_as_much_again_as_was_done():
    """Nothing known: what is left grows in proportion to what was done, at every scale, and is about that."""
    done = 2.0 ** np.arange(-15.0, 25.0)
    share = LearnedSizes([None]).remaining(0, done) / done
    np.testing.assert_allclose(share, share[0])
    assert 0.6 < share[0] < 1.0


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_the_law_is_learned(law):
    """After 300 jobs E[remaining | done] is within half of the truth, or a quarter of the size.

    The cells are half octaves, and the longest twentieth is left out.
    """
    learned = after(law.sample(np.random.default_rng(3), 300))
    done = np.quantile(law.sample(np.random.default_rng(4), 10_000), [0.01, 0.3, 0.6, 0.8])
    found, truth = learned.remaining(0, done), law.mean_remaining(done)
    assert (np.abs(found - truth) < np.maximum(0.5 * truth, 0.25 * (done + truth))).all()


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_the_law_of_a_workload_file_holds_until_jobs_say_otherwise(law):
    """Before any job ended the given law is believed, as above; 300 jobs ten times as large refute it."""
    learned = LearnedSizes([law])
    done = np.quantile(law.sample(np.random.default_rng(4), 10_000), [0.0, 0.3, 0.6])
    found, truth = learned.remaining(0, done), law.mean_remaining(done)
    assert (np.abs(found - truth) < np.maximum(0.5 * truth, 0.25 * (done + truth))).all()
    for size in 10.0 * law.sample(np.random.default_rng(3), 300):
        learned.end(0, size, finished=True)
    assert learned.remaining(0, np.zeros(1))[0] == pytest.approx(10.0 * law.mean, rel=0.5)


def test_running_jobs_count_for_what_they_have_done():
    """Ten jobs that have run 100 without ending make a newcomer of the class expect about 100 or more."""
    learned = LearnedSizes([None])
    learned.look(np.zeros(10, dtype=np.intp), np.full(10, 100.0))
    assert learned.remaining(0, np.zeros(1))[0] > 50.0


def test_jobs_that_were_cancelled_are_not_short_jobs():
    """100 jobs of size 50, half of which are cancelled after 5: the mean is still near 50, not 27."""
    learned = LearnedSizes([None])
    for number in range(100):
        learned.end(0, 5.0 if number % 2 else 50.0, finished=number % 2 == 0)
    assert learned.remaining(0, np.zeros(1))[0] == pytest.approx(50.0, rel=0.25)


@pytest.mark.parametrize("outlier", [1e-12, 1e-3, 1e6, 1e100])
def test_one_outlier_changes_little(outlier):
    """One job that is wrong by any factor moves what is left at the median by less than a factor of two."""
    sizes = LAWS["heavy"].sample(np.random.default_rng(5), 60)
    at = np.array([float(np.median(sizes))])
    clean, spoilt = after(sizes).remaining(0, at), after([*sizes, outlier]).remaining(0, at)
    assert np.abs(np.log(spoilt / clean)).max() < np.log(2.0)


def test_a_mixture_shows_itself_by_age():
    """Jobs of 1 or 100: a newcomer expects their mean, one that outlived 2 what is left of 100."""
    learned = after([1.0, 100.0] * 40)
    newcomer, older = learned.remaining(0, np.array([0.0, 10.0]))
    assert newcomer == pytest.approx(50.0, rel=0.3)
    assert older == pytest.approx(90.0, rel=0.3)


def test_a_law_that_drifts_is_followed():
    """Jobs become ten times as large: 200 jobs later the new mean is believed, within 40 %."""
    learned = after([*np.full(300, 3.0), *np.full(200, 30.0)])
    assert learned.remaining(0, np.zeros(1))[0] == pytest.approx(30.0, rel=0.4)


def test_a_new_class_starts_from_the_scale_of_all():
    """With 50 jobs of about 10 in another class, a newcomer of an unseen one expects more than 1."""
    learned = LearnedSizes([None, None])
    for size in LAWS["exponential"].sample(np.random.default_rng(6), 50):
        learned.end(0, 2.0 * size, finished=True)
    assert 1.0 < learned.remaining(1, np.zeros(1))[0] < 30.0


def test_what_was_learned_is_written_and_read():
    """A class survives JSON, and damage is a ValueError that says what is wrong."""
    seen = ClassSeen()
    for size in (3.0, 4.0, 500.0):
        seen.end(size, finished=True)
    seen.compare(4.0, 3.9)
    seen.unit_work.append(0.25)
    document = json.loads(json.dumps(seen.to_dict()))
    again = ClassSeen.from_dict(document)
    np.testing.assert_allclose(again.lived, seen.lived, atol=1e-6)
    assert (again.trust, list(again.unit_work)) == (seen.trust, [0.25])
    for damage in ({}, {"ended": [1.0]}, {"ended": [-1.0] * CELLS}, {"ended": "x"}, {"declared": [None, 1]}):
        with pytest.raises(ValueError, match="must be"):
            ClassSeen.from_dict(document | damage if damage else [])


def machine(cores=2):
    return Scheduler(None, cores, "srpt")


def believed_remaining(scheduler):
    """What is believed to be left of each job."""
    rows = scheduler.table.rows()
    left, _ = remaining_work(scheduler.table, rows, scheduler.now, scheduler.beliefs.sizes)
    return {scheduler.table.ids[row]: work for row, work in zip(rows.tolist(), left.tolist(), strict=True)}


def run_alone(scheduler, job, now, work, **declared):
    """A job that comes to an idle machine and finishes after so much work on one core."""
    scheduler.handle(Registered(job, "etl", max_cores=1, **declared), now)
    number = scheduler.ledger.accounts[job].number
    scheduler.handle(Confirmed(job, 1, number), now)
    scheduler.handle(Finished(job), now + work)
    return now + work


def test_the_scheduler_learns_from_one_job_of_a_class_to_the_next():
    """After five jobs of 40 a newcomer of the class is expected to take about 40, of another one less."""
    scheduler, now = machine(), 0.0
    for number in range(5):
        now = run_alone(scheduler, str(number), now, 40.0)
    scheduler.handle(Registered("next", "etl"), now)
    assert believed_remaining(scheduler)["next"] == pytest.approx(40.0, rel=0.4)
    scheduler.handle(Registered("other", "never-seen"), now)
    assert believed_remaining(scheduler)["other"] < believed_remaining(scheduler)["next"]


def test_a_declared_size_is_believed_until_a_job_of_the_class_breaks_its_word():
    """Three jobs that declare 100 and need 2: the fourth is expected to need little more than 2, not 100."""
    scheduler, now = machine(), 0.0
    scheduler.handle(Registered("first", "etl", size=100.0), now)
    assert believed_remaining(scheduler) == {"first": pytest.approx(100.0)}
    scheduler.handle(Cancelled("first"), now)
    for number in range(3):
        now = run_alone(scheduler, str(number), now, 2.0, size=100.0)
    scheduler.handle(Registered("next", "etl", size=100.0), now)
    assert believed_remaining(scheduler)["next"] < 30.0
    for number in range(10, 14):
        now = run_alone(scheduler, str(number), now, 2.0, size=2.2)
    assert scheduler.beliefs.sizes.seen[1].trust > 0.5


def test_units_take_what_they_took_in_jobs_of_the_class_before():
    """None of a job's 100 units was measured: it is expected to take 100 times a unit of the last job."""
    scheduler = machine(1)
    scheduler.handle(Registered("a", "etl", units=20.0), 0.0)
    scheduler.handle(Confirmed("a", 1, 1), 0.0)
    for done in range(1, 20):
        scheduler.handle(Progressed("a", float(done)), 3.0 * done)
    scheduler.handle(Finished("a"), 60.0)
    scheduler.handle(Registered("b", "etl", units=100.0), 60.0)
    scheduler.handle(Progressed("b", 0.0, 100.0), 60.0)
    assert believed_remaining(scheduler)["b"] == pytest.approx(300.0)


def test_an_input_of_unknown_length_is_not_short():
    """A job that has done 50 of 51 units submitted so far is nearly done; with `units` 0 it is not."""
    scheduler = machine(1)
    scheduler.handle(Registered("a", "etl"), 0.0)
    scheduler.handle(Confirmed("a", 1, 1), 0.0)
    for done in range(1, 51):
        scheduler.handle(Progressed("a", float(done), done + 1.0), 0.1 * done)
    assert believed_remaining(scheduler)["a"] < 0.2
    scheduler.handle(Progressed("a", 50.0, 0.0), 5.0)
    assert believed_remaining(scheduler)["a"] > 2.0
