"""Plans of workloads: exact where there is a formula, as brute force elsewhere, and never against a bound."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

import malleable
from malleable.errors import MalleableError, ParameterError, UnsupportedError, WorkloadError
from malleable.model import ConditionWarning, Workload, paper_workload
from malleable.planning import changes
from malleable.planning.floors import Floor
from malleable.planning.readings import Simulated, interval, metric_of
from malleable.planning.targets import Target, read_target
from malleable.theory import fw_cam
from malleable.theory.queues import mmc
from support.random_jobs import workload as random_workload

PAPER = paper_workload(16, 0.75)
FAST = {"jobs": 4000, "workers": 1}
"""Short runs in this process."""


def one_class(speedup, *, rate=1.0, mean=1.0, cost=1.0, **more):
    """A class of Poisson arrivals and exponential sizes."""
    row = {
        "name": "train",
        "arrivals": {"kind": "poisson", "rate": rate},
        "size": {"kind": "exponential", "mean": mean},
        "speedup": speedup,
        "holding_cost": cost,
        **more,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConditionWarning)
        return Workload.from_dict({"name": "one", "classes": [row]})


def smallest(value, limit, low, high):
    """The first number of cores on which a formula is below the limit."""
    return next(n for n in range(low, high) if value(n) < limit)


@pytest.mark.parametrize(
    ("rate", "target"),
    [(6.0, "response < 1.2"), pytest.param(20.0, "cost < 1.02", marks=pytest.mark.slow)],
)
def test_a_queue_with_many_servers(rate, target):
    """Jobs that no second core helps, first come first served, are M/M/c: the number is Erlang's."""
    made = one_class({"kind": "rooftop", "cores": 1.0}, rate=rate)
    found = malleable.plan(made, target, "fcfs", workers=1)
    limit = read_target(target).limit
    exact = smallest(lambda c: mmc(rate, 1.0, c).response_time, limit, math.floor(rate) + 1, 100)
    assert (found.cores, found.misses, found.reached) == (exact, exact - 1, True)
    assert found.confidence == 0.95


def test_one_class_that_shares_all_cores():
    """s(k) = k^p with one class under EQUI is a birth-death chain: jobs leave at rate N·(n/N)^p/E[X]."""
    power, rate, limit = 0.5, 4.0, 0.9
    made = one_class({"kind": "power", "exponent": power}, rate=rate)

    def response(n):
        present = np.arange(1, 400)
        speed = np.where(present < n, present * (n / present) ** power, float(n))
        log_weights = np.concatenate([[0.0], np.cumsum(np.log(rate) - np.log(speed))])
        weights = np.exp(log_weights - log_weights.max())
        return float(np.arange(400) @ weights / weights.sum()) / rate

    exact = smallest(response, limit, 5, 100)
    found = malleable.plan(made, f"response < {limit}", "equi", workers=1)
    assert (found.cores, found.misses) == (exact, exact - 1)


@pytest.mark.slow
def test_pools_of_fixed_width():
    """FW-CAM's pools are queues with many servers each: the plan is the exact one, where its cost falls."""
    for load in (0.3, 0.5):
        made = paper_workload(64, load)

        def cost(n, made=made):
            try:
                return fw_cam.plan(made, float(n)).cost()
            except MalleableError:
                return math.inf

        costs = {n: cost(n) for n in range(2, 200)}
        limit = 1.02 * costs[100]
        found = malleable.plan(made, f"cost < {limit}", "fw-cam", most=190)
        assert costs[found.cores] < limit
        assert costs[found.misses] >= limit
        assert found.misses == found.cores - 1 or found.cores - found.misses <= 3


def exact_metric(made, target, n, policy, jobs):
    """A long run with a seed of its own."""
    try:
        return metric_of(malleable.simulate(made, n, policy, jobs=jobs, seed=991, workers=1), target)
    except MalleableError:
        return math.inf


def brute_force(seed):
    """A plan of a random workload beside long runs on every number of cores around its answer."""
    rng = np.random.default_rng(seed)
    made = random_workload(rng, kinds=("power", "amdahl"), sizes=("exponential",))
    n = int(rng.integers(8, 40))
    made = made.at(n, float(rng.uniform(0.4, 0.8)))
    policy = str(rng.choice(["wham", "equi", "greedy"]))
    name = str(rng.choice(made.class_names))
    form = str(rng.choice(["cost", "response", "slowdown", "p95", f"response({name})", f"p99({name})"]))
    target = read_target(f"{form} < 1", made.class_names)
    value = exact_metric(made, target, n, policy, 400_000)
    step = exact_metric(made, target, n + 1, policy, 400_000) / value
    # Halfway between two neighbours, so that neither is a matter of the last digit.
    limit = value * math.sqrt(step) if step < 0.999 else value
    found = malleable.plan(made, f"{form} < {limit!r}", policy, most=4 * n)
    assert found.reached
    assert found.certificate is None or found.certificate[0] < found.cores
    if found.confidence is None or found.cores - found.misses > 1:
        return False
    wanted = Target(target.metric, limit, target.job_class)
    assert exact_metric(made, wanted, found.cores, policy, 2_000_000) < limit * 1.003
    assert exact_metric(made, wanted, found.misses, policy, 2_000_000) > limit * 0.997
    return True


@pytest.mark.slow
def test_fifty_random_workloads():
    """On 50 random workloads, policies and targets, what is found meets and misses in long runs, too."""
    told = sum(brute_force(seed) for seed in range(50))
    assert told >= 40


@pytest.mark.parametrize(
    "form", ["cost", "response", "slowdown", "p95", "p99(class-2)", "response(class-1)", "cost(class-3)"]
)
def test_no_simulation_is_below_the_floor(form):
    """What certificates rest on lies below what any policy reaches, on any number of cores."""
    target = read_target(f"{form} < 1", PAPER.class_names)
    floor = Floor(PAPER, target)
    before = math.inf
    for n in (13, 24, 64):
        bound = floor.value(n)
        assert bound <= before
        before = bound
        for policy in ("wham", "equi", "srpt"):
            result = malleable.simulate(PAPER, n, policy, jobs=20_000, workers=1)
            assert metric_of(result, target) > bound * 0.99
    assert floor.value(floor.least - 1) == math.inf


@pytest.mark.slow
def test_certificates_never_contradict_a_simulation():
    """Of 200 random targets inside and outside of what a run reaches, none that was reached is ruled out."""
    contradicted, ruled_out = 0, 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(2, 60))
        made = random_workload(rng, kinds=("power", "amdahl")).at(n, float(rng.uniform(0.2, 0.9)))
        form = str(rng.choice(["cost", "response", "slowdown", "p95", f"response({made.class_names[0]})"]))
        target = read_target(f"{form} < 1", made.class_names)
        value = metric_of(malleable.simulate(made, n, "wham", jobs=200_000, seed=seed, workers=1), target)
        inside, outside = (Target(target.metric, factor * value, target.job_class) for factor in (1.01, 0.3))
        contradicted += Floor(made, inside).rules_out(n)
        ruled_out += Floor(made, outside).rules_out(n)
    assert contradicted == 0
    assert ruled_out > 20


def test_a_certificate():
    """A target below what is possible on any number asked about: none is run, and the bound is stated."""
    found = malleable.plan(PAPER, "cost < 0.01", most=64)
    assert (found.cores, found.reached, found.confidence, found.jobs) == (None, False, 1.0, 0)
    cores, bound = found.certificate
    assert cores == 64
    assert bound == pytest.approx(malleable.bound(PAPER, 64).bound_capped)
    assert bound > 0.01
    assert "No policy meets" in found.words[0]


@pytest.mark.slow
def test_prices():
    """With prices of cores and jobs the number is that at which one more core saves less than it costs."""
    found = malleable.plan(PAPER, core_price=0.3)
    costs = {
        n: np.mean(
            [
                malleable.simulate(PAPER, n, "wham", jobs=300_000, seed=s, workers=1).cost.mean
                for s in range(100, 104)
            ]
        )
        for n in (found.misses, found.misses + 1, found.cores, found.cores + 1)
    }
    rate = PAPER.total_rate
    assert rate * (costs[found.cores] - costs[found.cores + 1]) < 0.3 * 1.02
    assert rate * (costs[found.misses] - costs[found.misses + 1]) > 0.3 * 0.98
    assert found.cores > malleable.plan(PAPER, core_price=0.6).cores


@pytest.mark.slow
def test_changes_are_worth_cores():
    """More arrivals need more cores, a smaller sequential part fewer, and each change is that plan alone."""
    made = one_class({"kind": "amdahl", "sequential": 0.2}, rate=4.0)
    other = Workload("other", (changes.replace(made.classes[0], name="etl"),))
    found = malleable.plan(made, "cost < 0.6", growth="25%", halve="train", add=other, **FAST)
    grown, more, halved = (change for change in found.changes)
    assert [change.what for change in found.changes] == [
        "25 % more arrivals", "also etl", "half the sequential part of train",
    ]  # fmt: skip
    assert grown.cores == malleable.plan(made.scaled(1.25), "cost < 0.6", **FAST).cores
    assert grown.cores == found.cores + grown.more
    assert more.more > grown.more > 0 > halved.more


def test_rigid_jobs_made_malleable():
    """A share of the jobs of a rigid class is a malleable class of its own; all arrivals stay."""
    made = one_class({"kind": "amdahl", "sequential": 0.05}, rate=2.0, shape="rigid", width=4)
    part = changes.made_malleable(made, 0.2)
    assert [one.shape for one in part.classes] == ["rigid", "malleable"]
    assert part.total_rate == pytest.approx(2.0)
    assert part.rates[1] == pytest.approx(0.4)
    with pytest.raises(UnsupportedError, match="malleable already"):
        changes.made_malleable(PAPER, 0.2)


def test_of_several_policies_the_one_that_needs_fewest():
    """Each is planned, and the best is the answer."""
    found = malleable.plan(PAPER, "cost < 0.5", "equi,wham", **FAST)
    needs = dict(found.others)
    assert found.policy == "wham"
    assert found.cores == needs["wham"] <= needs["equi"]


def test_the_present_machine():
    """What there is now is set beside the answer, and a target that it meets already is said to be met."""
    easy = malleable.plan(PAPER, "cost < 0.6", cores=64, **FAST)
    assert easy.cores < 64
    assert f"which meet it already: {64 - easy.cores} are not needed" in easy.words[1]
    hard = malleable.plan(PAPER, "cost < 0.6", cores=easy.cores - 1, **FAST)
    assert "1 more is needed" in hard.words[1]


def test_ctrl_c_gives_what_is_known():
    """Stopped in the middle, a plan says how far it has come; stopped at once, it is over."""
    calls = 0

    def stop(done, total):
        nonlocal calls
        calls += 1
        if done > 700_000:
            raise KeyboardInterrupt

    found = malleable.plan(PAPER, "p95 < 0.9", progress=stop, workers=1)
    assert found.status == "interrupted"
    assert found.confidence is None
    assert calls > 1
    assert found.cores is not None or found.misses is not None
    assert any("interrupted" in words for words in found.words)
    missed = max(found.misses, 0)
    if found.cores is None:
        assert f"misses p95 < 0.9 on {missed} cores; more were not tried" in found.words[0]

    def stop_at_once(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        malleable.plan(PAPER, "p95 < 0.9", progress=stop_at_once, workers=1)


def test_intervals_cover():
    """Each end of an interval of several looks is wrong as rarely as was asked for."""
    rng = np.random.default_rng(5)
    samples = rng.normal(size=(4000, 8))
    missed = [interval(row, 0.95, 1)[0] > 0.0 for row in samples]
    assert 0.018 < np.mean(missed) < 0.032
    narrow, wide = (interval(samples[0], 0.95, looks) for looks in (1, 4))
    assert wide[0] < narrow[0] < narrow[1] < wide[1]


def test_all_numbers_of_cores_see_the_same_jobs():
    """With common random numbers the cost falls with every core, from run to run."""
    meter = Simulated(PAPER, "wham", read_target("cost < 1"), **FAST)
    values = [meter.read(n).value for n in range(14, 20)]
    assert values == sorted(values, reverse=True)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({}, ParameterError, "nothing to plan for"),
        ({"target": "wait < 3"}, ParameterError, "has no wait"),
        ({"target": "cost(x) < 3"}, ParameterError, "no class is called 'x'"),
        ({"core_price": 0.0}, ParameterError, "core-price must be positive"),
        ({"core_price": math.nan}, ParameterError, "core-price must be positive"),
        ({"target": "cost < 3", "job_price": 1.0}, ParameterError, "weighed against a core-price"),
        ({"core_price": 1.0, "job_price": -1.0}, ParameterError, "job-price must be positive"),
        ({"target": "cost < 3", "burst_price": 1.0}, ParameterError, "burst-price is for logs"),
        ({"target": "cost < 3", "classes": "user"}, ParameterError, "classes is for logs"),
        ({"target": "cost < 3", "night": "class-1"}, UnsupportedError, "day and night"),
        ({"target": "cost < 3", "growth": "x"}, ParameterError, "growth must be a share"),
        ({"target": "cost < 3", "add": "paper"}, WorkloadError, "both workloads have a class"),
        ({"target": "cost < 3", "halve": "class-1"}, UnsupportedError, "no sequential part"),
        ({"target": "cost < 3", "make_malleable": "20%"}, UnsupportedError, "malleable already"),
        ({"target": "cost < 3", "make_malleable": "120%"}, ParameterError, "share of the jobs"),
        ({"target": "cost < 3", "most": 0}, ParameterError, "most must be a whole number"),
        ({"target": "cost < 3", "jobs": 10}, ParameterError, "jobs must be a whole number"),
        ({"target": "cost < 3", "confidence": 1.0}, ParameterError, "confidence"),
        ({"target": "cost < 3", "policy": "wam"}, MalleableError, "no policy is called 'wam'"),
        ({"target": "cost < 3", "policy": []}, ParameterError, "nothing to plan with"),
    ],
)
def test_wrong_questions(options, error, words):
    """What makes no sense is one line, before anything runs."""
    with pytest.raises(error, match=words):
        malleable.plan(PAPER, **options)


def test_the_document():
    """The keys of the design, and a page with the answer."""
    found = malleable.plan(PAPER, "cost < 0.5", growth="10%", **FAST)
    document = found.to_dict()
    assert {"target", "cores", "reached", "confidence", "certificate", "curve"} <= set(document)
    assert set(document["certificate"]) == {"cores", "bound"}
    assert {"cores", "cost", "bound"} <= set(document["curve"][0])
    for point in document["curve"]:
        assert point["cost"] is None or point["cost"] > point["bound"] * 0.99
    page = found._repr_html_()
    assert "10 % more arrivals" in page
    assert found.words[0].replace("<", "&lt;") in page
