"""`wham-improved` nearly attains the size-blind optimum, runs everywhere, and knows when to stay WHAM."""

from __future__ import annotations

import numpy as np
import pytest

import malleable
from malleable.contracts import Need, Policy
from malleable.engine.compiling import CLASS_RULE, compiled
from malleable.engine.rule_interface import COUNTS, JOBS, SHARE
from malleable.model import Workload, paper_workload
from malleable.model.jobs import Jobs
from malleable.paper.experiments.e10b_discounted.discounting import WORKLOADS
from malleable.policies.base import job_rows
from malleable.policies.base.paired_trial import Trial, relative
from malleable.policies.improved import count_value_fit as paths
from malleable.policies.improved import plan as planning
from malleable.policies.improved.count_value import (
    COUNT_VALUE,
    NOW,
    Value,
    improved_rule,
    value_table,
    write_weights,
)
from malleable.policies.improved.job_rules import improved_jobs_rule, improved_jobs_table
from malleable.theory.class_speeds import class_speeds
from malleable.theory.core_division import RealCores
from malleable.theory.decision_process import evaluate
from malleable.theory.optimal_policy import optimum
from support.chains import POWER, exponential, paper_exponential, workload

IMPROVED, WHAM = Policy.of("wham-improved"), Policy.of("wham")
STEEP = {"kind": "power", "exponent": 0.8}
AMDAHL = {"kind": "amdahl", "sequential": 0.1}
USL = {"kind": "usl", "contention": 0.05, "coherency": 0.001}
TABLE = {"kind": "table", "cores": [1, 2, 4, 8], "speedup": [1.0, 1.8, 3.0, 4.0]}
WEIGHTS = workload((1.0, exponential(1.0), POWER, 0.4), (1.0, exponential(1.0), AMDAHL, 3.0))
SIZES = workload((10.0, exponential(0.1), STEEP, 1.0), (0.5, exponential(2.0), STEEP, 1.0))
FOUR = Workload.from_dict(WORKLOADS["four"])


def gaps(made: Workload, cores: int, load: float, improved=IMPROVED, **options) -> tuple[float, float]:
    """How far WHAM and the improvement lie above the optimum, in per cent."""
    described = made.at(cores, load)
    best = optimum(described, cores, widths="real", tolerance=1e-6, **options)
    costs = [
        evaluate(described, cores, class_speeds(policy, described, cores), best.limit).cost
        for policy in (WHAM, improved)
    ]
    return tuple(100.0 * (cost / best.cost - 1.0) for cost in costs)


class TestExactGaps:
    """Costs on exact chains, against the optimum by policy iteration."""

    def test_unequal_weights(self):
        """On 8 cores WHAM loses 14 %, the improvement less than a tenth of a per cent."""
        wham, improved = gaps(WEIGHTS, 8, 0.7)
        assert wham == pytest.approx(14.0, abs=0.05)
        assert improved < 0.1

    def test_short_and_long_jobs(self):
        """On 8 cores at half load WHAM loses 5.65 %, the improvement less than a tenth of a per cent."""
        wham, improved = gaps(SIZES, 8, 0.5)
        assert wham == pytest.approx(5.65, abs=0.02)
        assert improved < 0.1

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("made", "cores", "load", "wham", "most"),
        [
            (WEIGHTS, 8, 0.7, 14.0, 0.41),
            (WEIGHTS, 8, 0.8, 14.2, 0.20),
            (WEIGHTS, 16, 0.9, 7.97, 0.26),
            (SIZES, 16, 0.25, 4.54, 0.10),
            (SIZES, 8, 0.5, 5.65, 0.13),
            (paper_exponential(2), 8, 0.8, 0.22, 0.22),
            (paper_exponential(2), 4, 0.9, 0.21, 0.21),
        ],
    )
    def test_the_table(self, made, cores, load, wham, most):
        """WHAM's gaps are the known ones; an improvement that trusts the load has at most the study's."""
        of_wham, improved = gaps(made, cores, load, Policy.of("wham-improved:headroom=1"))
        assert of_wham == pytest.approx(wham, abs=0.05)
        assert improved <= most


def some_jobs(made: Workload, sizes: tuple[int, ...]):
    """So many jobs of random classes, sizes and ages."""
    rng = np.random.default_rng(4)
    for size in sizes:
        classes = rng.integers(0, len(made.classes), size)
        yield Jobs.of(made, classes, rng.exponential(1.0, size), age=rng.random(size))


def a_table(made: Workload, cores: float) -> np.ndarray:
    return value_table(made, cores, planning.plan(made, cores).value)


class TestRule:
    """The class rule maximises Σ w_i · speed_i at the weights of the moment."""

    @pytest.mark.parametrize("speedups", [(POWER, AMDAHL, STEEP), (USL, AMDAHL, TABLE), (TABLE, TABLE, USL)])
    def test_best_division(self, speedups):
        """Its total worth is that of the best division with time sharing, in a thousand states."""
        costs = (0.3, 1.0, 4.0)
        made = workload(
            *((1.0, exponential(1.0), speedup, c) for speedup, c in zip(speedups, costs, strict=True))
        ).at(8, 0.7)
        rng = np.random.default_rng(5)
        bends = [part @ part.T for part in rng.random((2, 3, 3))]
        value = Value(rng.random(3), bends[0], rng.random(3), 0.1 * bends[1], 2.5)
        table, rule = value_table(made, 8.0, value), compiled(improved_rule, CLASS_RULE)
        states = rng.integers(0, 9, (1000, 3))
        states = states[states.sum(axis=1) > 0]
        gains, widths = np.zeros(states.shape), np.zeros(states.shape)
        for row, state in enumerate(states.astype(float)):
            write_weights(state, 8.0, table)
            gains[row] = table[int(table[1]) + len(COUNT_VALUE) + 3 * NOW.WEIGHT :][:3]
            rule(state, 8.0, table, widths[row])
        speeds = states * np.column_stack([s(k) for s, k in zip(made.speedups, widths.T, strict=True)])
        best = RealCores(made.speedups, states, 8.0).best(gains)
        assert (states * widths).sum(axis=1).max() <= 8.0 * (1.0 + 1e-9)
        np.testing.assert_allclose((gains * speeds).sum(axis=1), (gains * best.speeds).sum(axis=1), rtol=1e-8)

    def test_compiled_equals_interpreted(self):
        """To the bit, as all rules."""
        made = WEIGHTS.at(8, 0.7)
        fast, slow = a_table(made, 8.0), a_table(made, 8.0)
        rule = compiled(improved_rule, CLASS_RULE)
        for state in np.random.default_rng(1).integers(1, 9, (50, 2)).astype(float):
            one, other = np.zeros(2), np.zeros(2)
            rule(state, 8.0, fast, one)
            improved_rule(state, 8.0, slow, other)
            assert one.tolist() == other.tolist()

    def test_a_crowd_is_served_as_by_wham(self):
        """Beyond the crowds that were seen the dearest by c·μ have one core each, so every backlog falls."""
        made = WEIGHTS.at(8, 0.7)
        assert planning.plan(made, 8.0).value.trusted < 10.0
        table, out = a_table(made, 8.0), np.zeros(2)
        improved_rule(np.array([79.0, 1.0]), 8.0, table, out)
        np.testing.assert_allclose(out, [7.0 / 79.0, 1.0], rtol=1e-5)
        improved_rule(np.array([5.0, 95.0]), 8.0, table, out)
        np.testing.assert_allclose(out, [0.0, 8.0 / 95.0], atol=1e-6)

    def test_a_cheap_job_may_wait(self):
        """While cores would suffice for all, a cheap job waits for dear ones: WHAM never does that."""
        out = np.zeros(2)
        improved_rule(np.array([1.0, 3.0]), 8.0, a_table(WEIGHTS.at(8, 0.7), 8.0), out)
        assert out[0] == 0.0
        assert out[1] == pytest.approx(8.0 / 3.0)


class TestEverywhere:
    """`allocate`, the simulator on counts and on jobs, whole and restricted widths, any law of sizes."""

    def test_programs(self):
        """A class rule where one core is the least width of every class, else a job rule."""
        made = IMPROVED.program(WEIGHTS.at(8, 0.7), 8)
        assert made.sees == COUNTS
        assert made.discipline == SHARE
        rows = WEIGHTS.to_dict()["classes"]
        rooftops = [{**row, "speedup": {"kind": "rooftop", "cores": 3 + i}} for i, row in enumerate(rows)]
        linear = Workload.from_dict({"name": "rooftops", "classes": rooftops}).at(8, 0.7)
        assert IMPROVED.program(linear, 8).sees == JOBS

    def test_allocate_runs_the_rule_of_the_simulator(self):
        """The same cores from `allocate`, to the bit, and from GREEDY where no class is served in part.

        Some of the states have one that is, so both happen; the policy says that it shares.
        """
        made, parts = FOUR.at(12, 0.7), []
        program = IMPROVED.program(made, 12)
        by_greedy = improved_jobs_table(made, 12.0, a_table(made, 12.0))
        for jobs in some_jobs(made, (1, 5, 11, 12, 13, 30)):
            counts, widths = np.bincount(jobs.class_index, minlength=4).astype(float), np.zeros(4)
            program.rule(counts, 12.0, program.table.copy(), widths)
            found, out = IMPROVED.allocate(jobs, 12), np.zeros(len(jobs))
            assert found.cores.tolist() == widths[jobs.class_index].tolist()
            assert found.cores.sum() <= 12.0 + 1e-9
            parts.append(bool(((found.cores > 0.0) & (found.cores < 1.0)).any()))
            if not parts[-1]:
                improved_jobs_rule(job_rows(jobs, jobs.class_index), 12.0, by_greedy, out)
                np.testing.assert_allclose(found.cores[jobs.order], out, rtol=1e-7, atol=1e-7)
        assert {*parts} == {False, True}
        assert IMPROVED.sharing

    def test_whole_cores(self):
        """Whole cores are not shared."""
        for jobs in some_jobs(FOUR.at(12, 0.7), (1, 5, 12, 30)):
            found = IMPROVED.allocate(jobs, 12, integer=True).cores
            assert found.sum() <= 12.0
            assert (found == np.round(found)).all()

    def test_prices(self):
        """The price at which the market clears, or what a core is worth to a class that has a part of one."""
        made = WEIGHTS.at(8, 0.7)
        for counts in ((1, 3), (2, 1), (4, 4)):
            jobs = Jobs.of(made, np.repeat([0, 1], counts), np.ones(sum(counts)))
            table, found = a_table(made, 8.0), IMPROVED.allocate(jobs, 8)
            rows, unit = int(table[1]) + len(COUNT_VALUE), table[int(table[1]) + COUNT_VALUE.UNIT]
            write_weights(np.array(counts, float), 8.0, table)
            speedups = [one.speedup for one in made.classes]
            for i, k in zip(jobs.class_index, found.cores, strict=True):
                weight = table[rows + 2 * NOW.WEIGHT + i] * unit
                if k > 1.0 + 1e-9:
                    slope = weight * float(speedups[i].slope(k))
                    assert found.price == pytest.approx(slope, rel=1e-6)
                elif 0.0 < k < 1.0:
                    assert found.price == pytest.approx(weight, rel=1e-6)
                elif k == 0.0:
                    assert found.price >= weight * (1.0 - 1e-6)

    def test_counts_and_jobs_agree(self):
        """Where no class is served in part, a job gets what the rule on counts gives its class."""
        made = FOUR.at(12, 0.7)
        program, counts = IMPROVED.program(made, 12), np.array([0.0, 2.0, 1.0, 2.0])
        widths, out, by_job = np.zeros(4), np.zeros(5), IMPROVED.program(made, 12, Need(by_job=True))
        program.rule(counts, 12.0, program.table.copy(), widths)
        index = np.repeat(np.arange(4), counts.astype(int))
        jobs = Jobs.of(made, index, np.ones(5))
        found = IMPROVED.allocate(jobs, 12).cores
        np.testing.assert_allclose(found, widths[index], rtol=1e-8)
        by_job.rule(job_rows(jobs, index), 12.0, by_job.table.copy(), out)
        assert out.tolist() == widths[index].tolist()
        assert by_job.sharing

    def test_own_speedups_and_weights(self):
        """Jobs may bring both: a weight counts in proportion, a speedup in place of the class's."""
        made = WEIGHTS.at(8, 0.7)
        plain = Jobs.of(made, [0, 1, 1], [1.0, 1.0, 1.0])
        twice = Jobs.of(made, [0, 1, 1], [1.0, 1.0, 1.0], weight=[0.4, 3.0, 6.0])
        own = Jobs.of(
            made, [0, 1, 1], [1.0, 1.0, 1.0], speedups=[POWER, AMDAHL, {**AMDAHL, "sequential": 0.9}]
        )
        first, heavier, slower = (IMPROVED.allocate(jobs, 8).cores for jobs in (plain, twice, own))
        assert first[1] == pytest.approx(first[2])
        assert heavier[2] > heavier[1]
        assert slower[2] < slower[1]

    def test_simulated_as_the_exact_chain_says(self):
        """Four hundred thousand jobs cost what the chain says, within the interval."""
        described = WEIGHTS.at(8, 0.7)
        exact = evaluate(described, 8, class_speeds(IMPROVED, described, 8), 70).cost
        found = malleable.simulate(described, 8, "wham-improved", jobs=400_000, confidence=0.999)
        assert found.cost.low < exact < found.cost.high
        assert found.notes == ()

    @pytest.mark.slow
    def test_whole_widths_and_unknown_sizes(self):
        """Restricted widths run on gears, other laws of sizes on jobs of unknown size."""
        rows = WEIGHTS.to_dict()["classes"]
        whole = Workload.from_dict({"name": "whole", "classes": [{**r, "widths": "whole"} for r in rows]})
        for made, options in ((whole, {}), (WEIGHTS, {"sizes": "unknown"})):
            found = malleable.compare(made, 8, "wham,wham-improved", load=0.7, jobs=20_000, **options)
            assert found.differences[0].high < 0.0


class TestStayingWithWham:
    """Where there is nothing to gain, or nothing to learn from, it is WHAM and says so."""

    @pytest.mark.parametrize(
        ("made", "cores", "reason"),
        [
            (workload((1.0, exponential(1.0), POWER, 1.0)).at(8, 0.5), 8, "one class"),
            (WEIGHTS.at(8, 1.2), 8, "load"),
            (WEIGHTS.at(1, 0.5), 1, "on one core"),
            (workload(*[(1.0, exponential(1.0), POWER, 1.0)] * 2).at(8, 0.5), 8, "gain"),
            (workload(*[(1.0, exponential(1.0), POWER, 1.0)] * 13).at(8, 0.5), 8, "too many coefficients"),
            (
                workload((1e-9, exponential(1.0), POWER, 1.0), (1.0, exponential(1.0), POWER, 2.0)),
                8,
                "singular",
            ),
            (WEIGHTS.at(100_000, 0.5), 100_000, "too few"),
        ],
    )
    def test_reasons(self, made, cores, reason):
        """The note names the reason, and the program is WHAM's."""
        notes = IMPROVED.notes(made, cores)
        assert len(notes) == 1
        assert "stays with WHAM" in notes[0]
        assert reason in notes[0]
        found, wham = IMPROVED.program(made, cores), WHAM.program(made, cores)
        assert found.rule is wham.rule

    def test_the_result_says_so(self):
        """A simulation has the note, and the cost of WHAM to the bit."""
        found, wham = (
            malleable.simulate("paper", 16, policy, load=0.25, jobs=20_000)
            for policy in ("wham-improved", "wham")
        )
        assert any("stays with WHAM" in note for note in found.notes)
        assert found.cost == wham.cost

    @pytest.mark.slow
    def test_coefficients_that_are_not_numbers(self, monkeypatch):
        """A fit that is not finite is not used."""
        honest = paths.fitted

        def broken(chain, visits):
            fit = honest(chain, visits)
            return fit._replace(value=fit.value._replace(linear=np.full(2, np.nan)))

        monkeypatch.setattr(paths, "fitted", broken)
        assert "beyond the range" in planning._made(WEIGHTS.at(8, 0.7), 8.0).note

    @pytest.mark.slow
    def test_a_law_on_which_it_loses(self, monkeypatch):
        """Where sizes are not exponential a trial on the real law decides."""
        rows = WEIGHTS.to_dict()["classes"]
        made = Workload.from_dict(
            {
                "name": "fixed",
                "classes": [{**r, "size": {"kind": "deterministic", "value": 1.0}} for r in rows],
            }
        ).at(8, 0.6)
        assert planning._made(made, 8.0).gain > 0.0
        monkeypatch.setattr(planning, "blind_trial", lambda *_: Trial(0.01, 0.001))
        assert "a gain of -1.00%" in planning._made(made, 8.0).note

    def test_a_load_on_which_it_would_lose(self):
        """Where a load 25 % higher brings a loss, it is fitted to a load between, and loses at neither."""
        made = WEIGHTS.at(8, 0.8)
        trusting, careful = planning._made(made, 8.0, 1.0), planning._made(made, 8.0, 1.25)
        high = WEIGHTS.at(8, 0.95)
        base = planning.wham_path(high, 8.0).costs
        lost, kept = (
            relative(planning.improved_path(high, 8.0, one.value).costs, base) for one in (trusting, careful)
        )
        assert lost.difference > 0.05
        assert kept.difference < 0.005 + 3.0 * kept.error
        assert 0.04 < careful.gain < trusting.gain

    def test_a_lower_load_on_which_it_would_lose(self, monkeypatch):
        """Where a load 25 % lower brings a loss, it stays with WHAM, unless the load is to be trusted."""
        made = WEIGHTS.at(8, 0.7)
        plain = planning._loses

        def loses(workload, cores, value):
            return workload.load(cores) < 0.6 or plain(workload, cores, value)

        monkeypatch.setattr(planning, "_loses", loses)
        assert "lower than told" in planning._made(made, 8.0, 1.25).note
        assert not planning._made(made, 8.0, 1.0).note

    def test_a_load_on_which_jobs_would_lose(self, monkeypatch):
        """Where sizes are not exponential, trials on jobs decide; if none is met, it stays with WHAM."""
        tried = []

        def trial(workload, cores, *_):
            tried.append(workload.load(cores))
            return Trial(-0.02 if len(tried) == 1 else 0.004, 0.002)

        monkeypatch.setattr(planning, "blind_trial", trial)
        rows = [
            {**r, "size": {"kind": "lognormal", "mean": 1.0, "sigma": 1.0}}
            for r in WEIGHTS.to_dict()["classes"]
        ]
        made = Workload.from_dict({"name": "lognormal", "classes": rows}).at(8, 0.7)
        found = planning._made(made, 8.0, 1.25)
        assert "higher than told" in found.note
        assert tried == pytest.approx([0.7, *[0.875] * (1 + len(planning.SHARES))])
        tried.clear()
        assert not planning._made(made, 8.0, 1.0).note


def test_one_plan():
    """Equal workloads have equal plans, to the bit, and a plan is made once."""
    made, again = WEIGHTS.at(8, 0.7), Workload.from_dict(WEIGHTS.to_dict()).at(8, 0.7)
    first = planning._made(made, 8.0)
    assert all(np.all(a == b) for a, b in zip(first.value, planning._made(again, 8.0).value, strict=True))
    assert planning.plan(made, 8) is planning.plan(again, 8.0)


def test_the_paper_workload_at_any_size():
    """On the paper's own workload the plan is WHAM's or better, whatever the number of cores."""
    for cores in (8, 16_384):
        found = IMPROVED.plan(paper_workload(cores), cores)
        assert found.note or found.gain > 0.0


class TestMeanField:
    """The fluid equation of the rule, asked at real-valued counts."""

    def test_fixed_point(self):
        """It is stable, attracts, and costs V* but for a thousandth, which nothing in the fit demands."""
        made = WEIGHTS.at(8, 0.7)
        found, wham = (malleable.mean_field(made, 8, policy=policy, starts=3) for policy in (IMPROVED, WHAM))
        assert found.cost == pytest.approx(wham.cost, rel=1e-3)
        assert found.cost >= wham.cost
        assert found.stable
        assert found.attractor.converged == 3
        assert found.refined.coefficient is None
        assert "fitted for this number of cores" in found.refined.reason
        assert not found.first_order.applies
        assert found.trajectory(found.state, [0.0, 1.0]).state[-1] == pytest.approx(found.state, rel=1e-4)

    def test_where_it_is_wham(self):
        """A plan that stays with WHAM has WHAM's mean field."""
        found, wham = (
            malleable.mean_field("paper", 16_384, 0.25, policy, starts=0)
            for policy in ("wham-improved", "wham")
        )
        assert found.cost == wham.cost
        assert found.refined == wham.refined
