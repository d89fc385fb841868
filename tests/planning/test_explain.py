"""Explanations are true: of the policy asked again, and of what a core is worth."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import malleable
from malleable import catalog
from malleable.errors import JobsError, MalleableError
from malleable.model import ConditionWarning, Workload, paper_workload
from malleable.model.jobs import Jobs
from malleable.planning.explain import worth
from support.chains import SHORT_AND_LONG
from support.machine_workloads import demanding
from support.random_jobs import workload as random_workload

POLICIES = sorted(catalog.kinds("policies"))
PLANNED = {"fw_cam": 64, "fw_cam_repaired": 64, "wham_fitted": 2, "wham_improved": 2}
"""Policies that plan for arrivals, which takes long, and the cores for which there is a plan."""

SLOW = {"wham_fitted", "wham_improved"}
"""Those whose plans take seconds."""


def moment(policy, seed):
    """A workload, jobs as rows, and a number of cores: fewer and more than there are jobs."""
    rng = np.random.default_rng(seed)
    if policy in PLANNED:
        cores = PLANNED[policy]
        made = SHORT_AND_LONG.at(cores, 0.5) if policy == "wham_improved" else paper_workload(cores, 0.25)
    else:
        cores = int(rng.integers(1, 24))
        made = random_workload(rng, kinds=("power", "amdahl", "rooftop"))
    names = made.class_names
    rows = [
        {
            "id": f"j{j}",
            "class": names[rng.integers(0, len(names))],
            "remaining": float(rng.exponential(1.0)) + 0.01,
            "age": float(rng.uniform(0.0, 5.0)),
            "weight": float(rng.uniform(0.5, 2.0)),
        }
        for j in range(int(rng.integers(1, 14)))
    ]
    return made, rows, cores


def widths(workload, rows, cores, policy, **options):
    """What the policy gives each job, by name; None where it has no answer."""
    try:
        found = malleable.allocate(workload, rows, cores, policy, **options)
    except MalleableError:
        return None
    return {row["id"]: float(k) for row, k in zip(rows, found.cores, strict=True)}


def assert_same(event, before, after, cores):
    """What is said to change is what changes."""
    if after is None:
        assert event.problem
        return
    assert not event.problem
    said = {change.id: change.cores for change in event.changes}
    for name in before.keys() & after.keys():
        assert said.get(name, 0.0) == pytest.approx(after[name] - before[name], abs=2e-9 * cores), name


def check(policy, seed, *, integer):
    workload, rows, cores = moment(policy, seed)
    before = widths(workload, rows, cores, policy, integer=integer)
    if before is None:
        return
    new = {"id": "new", "class": rows[0]["class"], "remaining": 0.7, "weight": 1.5}
    gone = rows[seed % len(rows)]["id"]
    found = malleable.explain(workload, rows, cores, policy, job=gone, arriving=new, integer=integer)
    asked = lambda some, n: widths(workload, some, n, policy, integer=integer)  # noqa: E731
    assert {job.id: job.cores for job in found.jobs} == pytest.approx(before)
    assert_same(found.next_core, before, asked(rows, cores + 1), cores)
    if cores == 1:
        assert found.lost_core is None
    else:
        assert_same(found.lost_core, before, asked(rows, cores - 1), cores)
    with_it = asked([*rows, new], cores)
    assert_same(found.arrival, before, with_it, cores)
    assert with_it is None or found.arrival.width == pytest.approx(with_it["new"])
    left = [row for row in rows if row["id"] != gone]
    assert_same(found.departure, before, asked(left, cores) if left else {}, cores)
    assert found.departure.width == pytest.approx(before[gone])
    for event, sign in ((found.next_core, 1.0), (found.lost_core, -1.0)):
        if event is not None and event.id is not None:
            assert event.id in {change.id for change in event.changes if sign * change.cores > 0.0}


@pytest.mark.parametrize("integer", [False, True])
@pytest.mark.parametrize(
    "policy", [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in POLICIES]
)
def test_as_the_policy_would_decide(policy, integer):
    """A core or a job more or less changes what the policy, asked anew, changes: every policy."""
    for seed in range(3):
        check(policy, seed, integer=integer)


@pytest.mark.slow
@pytest.mark.parametrize("policy", POLICIES)
def test_as_the_policy_would_decide_on_200_moments(policy):
    """The same on 200 moments of each policy, half of them on whole cores."""
    for seed in range(200):
        check(policy, seed, integer=seed % 2 == 0)


def concave_moment(seed):
    """Jobs with smooth speedups, fewer than the cores."""
    rng = np.random.default_rng(seed)
    made = random_workload(rng, kinds=("power", "amdahl"))
    count = int(rng.integers(1, 9))
    index = rng.integers(0, len(made.classes), count)
    weights = rng.uniform(0.5, 2.0, count)
    jobs = Jobs.of(made, index, rng.exponential(1.0, count) + 0.01, weight=weights)
    return made, jobs, int(rng.integers(count + 1, 30))


def test_the_price_lies_between():
    """Under WHAM the last core of every job saves at least the price, and one more at most that."""
    for seed in range(60):
        made, jobs, cores = concave_moment(seed)
        found = malleable.explain(made, jobs, cores)
        assert found.price > 0.0
        for job in found.jobs:
            assert job.next <= found.price * (1.0 + 1e-6)
            assert job.value is None or job.value >= found.price * (1.0 - 1e-6)
            assert job.value is not None or job.cores == pytest.approx(1.0)


def test_whole_cores_go_where_they_save_most():
    """WHAM gives the next whole core where `next` is highest, and takes one where `value` is lowest."""
    for seed in range(60):
        made, jobs, cores = concave_moment(seed)
        found = malleable.explain(made, jobs, cores, integer=True)
        best = max(job.next for job in found.jobs)
        assert found.of(found.next_core.id).next == pytest.approx(best, rel=1e-9)
        least = min((job.value for job in found.jobs if job.value is not None), default=None)
        if least is not None and cores - 1 >= len(jobs):
            assert found.of(found.lost_core.id).value == pytest.approx(least, rel=1e-9)


def test_worth_is_where_two_widths_tie():
    """Below its worth the wider width costs less per unit of work, rent included; above it, the narrower."""
    rng = np.random.default_rng(3)
    for _ in range(200):
        one = random_workload(rng, kinds=("power", "amdahl", "usl"), classes=1).job_types[0]
        narrow = float(rng.uniform(1.0, 8.0))
        wide, weight = narrow + float(rng.uniform(0.1, 3.0)), float(rng.uniform(0.1, 5.0))
        price = worth(one, weight, narrow, wide)
        cost = lambda k, l: (weight + l * k) / one.speedup(k)  # noqa: B023, E731
        if price == 0.0:  # beyond the peak
            assert one.speedup(wide) <= one.speedup(narrow)
            continue
        assert cost(wide, 0.99 * price) < cost(narrow, 0.99 * price)
        assert cost(wide, 1.01 * price) > cost(narrow, 1.01 * price)


def test_when_a_job_that_waits_is_served():
    """On the cores named it is served, on one fewer it waits: WHAM, arrival order and EASY."""
    made = paper_workload(64)
    names = made.class_names
    rows = [{"id": f"j{j}", "class": names[j % 3], "remaining": 1.0 + j, "age": 9.0 - j} for j in range(9)]
    for policy in ("wham", "fcfs", "easy", "srpt"):
        found = malleable.explain(made, rows, 4, policy, job="j8")
        assert "waits" in found.words[0]
        (said,) = (words for words in found.words if "would be served from" in words)
        cores = float(said.split("from ")[1].split()[0])
        assert malleable.allocate(made, rows, cores, policy).cores[8] > 0.0
        assert malleable.allocate(made, rows, cores - 1.0, policy).cores[8] == 0.0


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        ("wham", "the 4 jobs with the highest cost per remaining work"),
        ("fcfs", "in order of arrival, and 8 came"),
    ],
)
def test_why_a_job_waits(policy, words):
    """A reason is the order that was followed, and the place in it."""
    made = paper_workload(64)
    rows = [{"id": f"j{j}", "class": "class-1", "remaining": 9.0 - j, "age": 9.0 - j} for j in range(9)]
    asked = "j0" if policy == "wham" else "j8"
    why = malleable.explain(made, rows, 4, policy).of(asked).why
    assert why.startswith("waits because")
    assert words in why


def test_machines_that_demand_more():
    """Rigid and moldable jobs keep their widths and say so; what would be with a core more is still true."""
    rng = np.random.default_rng(8)
    seen = set()
    for _ in range(25):
        cores = int(rng.integers(4, 20))
        plain = random_workload(rng, kinds=("power", "amdahl"))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConditionWarning)
            made = demanding(rng, plain, cores - 1)
        names = made.class_names
        rows = [
            {"id": f"j{j}", "class": names[rng.integers(0, len(names))], "remaining": 1.0 + j}
            for j in range(5)
        ]
        before, after = (widths(made, rows, n, "wham") for n in (cores, cores + 1))
        found = malleable.explain(made, rows, cores)
        assert_same(found.next_core, before, after, cores)
        for job in found.jobs:
            shape = made.classes[made.index(job.job_class)].shape
            if shape == "rigid" and job.cores:
                assert (job.value, job.next) == (None, None)
                assert "rigid" in job.why
                seen.add(shape)
            assert job.why.startswith("has" if job.cores else "waits")
    assert seen == {"rigid"}


def test_no_job_and_one_core():
    """An idle machine says that it is idle; on a single core none can be lost."""
    found = malleable.explain("paper", [], 16)
    assert found.words[0] == "16 cores are idle: there is no job."
    assert (found.jobs, found.next_core.changes, found.price) == ((), (), None)
    one = malleable.explain("paper", [{"id": "a", "class": "class-1", "remaining": 1.0}], 1)
    assert one.lost_core is None
    assert one.of("a").why.startswith("has 1 core")


def test_a_policy_without_an_answer_says_so():
    """FW-CAM has no plan on one core fewer: the explanation says so, and answers the rest."""
    made = paper_workload(64, 0.25)
    rows = [{"id": "a", "class": "class-1", "remaining": 1.0}]
    found = malleable.explain(made, rows, 64, "fw-cam")
    fewest = next(n for n in range(64, 1, -1) if widths(made, rows, n - 1, "fw-cam") is None)
    found = malleable.explain(made, rows, fewest, "fw-cam")
    assert found.lost_core.problem
    assert any("no answer" in words for words in found.words)
    assert found.of("a").cores > 0.0


def test_the_document_is_what_the_design_says():
    """The keys of JSON, and numbers that JSON can write; a page with every job."""
    rows = [{"id": f"<{j}>", "class": "class-1", "remaining": 1.0} for j in range(3)]
    found = malleable.explain("paper", rows, 16, job="<1>", arriving="class=class-2,remaining=2")
    document = found.to_dict()
    assert {"price", "policy", "jobs", "next_core", "lost_core", "arrival", "departure"} <= set(document)
    assert set(document["jobs"][0]) == {"id", "class", "cores", "value", "next", "why"}
    page = found._repr_html_()
    assert all(f"&lt;{j}&gt;" in page for j in range(3))
    assert "<1>" not in page


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"job": "z"}, "there is no job 'z'"),
        ({"arriving": "etl"}, "not a job: 'etl'"),
        ({"arriving": "class=etl,remaining=1"}, "no class 'etl'"),
        ({"arriving": "class=class-1"}, "no 'remaining'"),
        ({"arriving": {"class": "class-1", "remaining": 1.0, "id": "a"}}, "the id 'a' is used twice"),
    ],
)
def test_wrong_questions(options, words):
    """A job that is not there, or an arrival that is none, is one line."""
    with pytest.raises(JobsError, match=words):
        malleable.explain("paper", [{"id": "a", "class": "class-1", "remaining": 1.0}], 4, **options)


def test_jobs_are_joined_with_all_that_they_have():
    """Speedups, widths and weights of their own go with the jobs, whichever side has them."""
    made = Workload.from_dict(paper_workload(8).to_dict())
    plain = Jobs.of(made, [0], [1.0], ids=["a"])
    own = Jobs.of(made, [1], [2.0], weight=[3.0], ids=["b"], limits=[{"width": 2}])
    for first, second in ((plain, own), (own, plain)):
        both = first.joined(second)
        assert both.ids == (*first.ids, *second.ids)
        assert both.own_weights
        assert {one.width for one in both.own_types} == {None, 2}
        assert malleable.allocate(made, both, 8).cores[both.ids.index("b")] == 2.0
