"""Which rule for jobs of which nothing is known: costs beside weighted equal sharing, on the virtual clock.

`python -m benchmarks.bench_learned_sizes FILE --count 200` appends a line per random workload (two to six
classes, 2 to 64 cores, loads from .3 to .95, heavy and light tails) to FILE, skips those that it has, and
prints what they say together; `--desk` prints the table of the workload "desk"; `--guarantee` measures what
the guarantee costs, with the scheduler itself; `--together` what three jobs cost that come together.

Every policy is told classes, weights and speedups, and no law and no size. Jobs come to an empty machine;
"first" is up to the moment when 30 jobs of each class have come, "later" what follows. The loop is compiled,
and has the laws and prices of `live.core.learned_sizes` and `live.core.core_price`; tests compare it with
the scheduler on `live.core.virtual`. Whole cores, moves are free. Weighted equal sharing may share cores, as
the operating system does.
"""

import argparse
import csv
import math
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
from numba import boolean, float64, int64, njit

from malleable.contracts import Need, Policy
from malleable.engine.compiling import AS_ARGUMENT, JOB_RULE, RuleAddress, compiled
from malleable.engine.rule_interface import AGE, CLASS, COLUMNS, IDENTITY, REMAINING, SIZE, WEIGHT
from malleable.live.core import core_price
from malleable.live.core.estimates import MATERIAL, OUTCOMES
from malleable.live.core.fair_share import Guarantee
from malleable.live.core.learned_sizes import CELLS, EDGES, INDEX, KEPT, PRIOR, STEP, TRIMMED, LearnedSizes
from malleable.live.core.scheduler import Scheduler
from malleable.live.core.virtual import VirtualMachine
from malleable.model import Workload
from malleable.policies.rules.market import MARKET, end_of_market
from malleable.policies.rules.market_rules import greedy_integer_rule, wham_integer_rule
from malleable.policies.rules.smartfill_rule import CROWD, costates_rule
from malleable.policies.rules.smartfill_rule import KEPT as KEPT_COSTATES
from malleable.sources import Chunk

KNOWN, LEARNED, GITTINS, ATTAINED, OUTCOMES_OF = range(5)
"""What stands for the work left: itself, E[X − a | X > a] as learned, Gittins's index of the learned law (the
least work per job that ends, over all times to stop), the work done, or several amounts that it may be, by
the learned law, over which the worth of each job's work is averaged (`live.core.expected_values`)."""
EQUAL = "weighted equal sharing"
CASES = {
    EQUAL: ("", KNOWN),
    "wham, sizes known": ("wham", KNOWN),
    "clearing, sizes known": ("clearing", KNOWN),
    "clearing": ("clearing", OUTCOMES_OF),
    "clearing, the mean": ("clearing", LEARNED),
    "clearing, Gittins's index": ("clearing", GITTINS),
    "clearing, least attained service": ("clearing", ATTAINED),
    "smartfill": ("smartfill", LEARNED),
    "wham": ("wham", LEARNED),
}
BASES = (EQUAL, "wham, sizes known", "clearing, sizes known")
FIRST = 30
"""Jobs of each class that are the first."""
SOON = 0.02
"""Time between two decisions, in mean sizes, at least."""
LOWEST = float(np.log(EDGES[0]))
CAUTION, FADING, MANY = core_price.CAUTION, core_price.KEPT, core_price.MANY


def by_mean_worth(jobs, cores, table, out):
    """`live.core.expected_values.divide_by_value` as a rule; outcomes stand behind the columns of a job."""
    size = jobs.shape[0]
    rows, values = np.empty((size, COLUMNS)), np.zeros(size)
    for j in range(size):
        for column in range(COLUMNS):
            rows[j, column] = jobs[j, column]
    if size == 1 or size >= CROWD * cores:
        wham_integer_rule(rows, cores, table, out)
        return
    for k in range(OUTCOMES):
        for j in range(size):
            rows[j, REMAINING] = jobs[j, COLUMNS + k]
        table[end_of_market(table) + KEPT_COSTATES.JOBS] = 0.0
        costates_rule(rows, cores, table, out)
        for j in range(size):
            values[j] += out[j] / OUTCOMES
    for j in range(size):
        rows[j, WEIGHT], out[j] = values[j], 0.0
    greedy_integer_rule(rows, cores, table, out)


@njit
def speed(speedups, i, k):
    if k < 1.0:
        return k
    if speedups[i, 0] == 0.0:
        return k ** speedups[i, 1]
    return 1.0 / (speedups[i, 1] + (1.0 - speedups[i, 1]) / k)


@njit
def cell_of(work):
    return min(max(int((math.log(max(work, 1e-300)) - LOWEST) / STEP), 0), CELLS - 1)


@njit
def add_life(lived, work):
    """A job lived up to so much work."""
    if work > EDGES[0]:
        cell = cell_of(work)
        lived[:cell] += STEP
        lived[cell] += min(math.log(work / EDGES[cell]), STEP)


@njit
def expect(ended, lived, pooled, gittins, out, hazard):
    """`learned_sizes.mean_at_edges`, or Gittins's index, and the hazard, from what was seen."""
    inside, survive = np.empty(CELLS), np.empty(CELLS)
    for c in range(CELLS):
        low, high = max(c - 1, 0), min(c + 1, CELLS - 1)
        d = 0.5 * ended[c] + 0.25 * (ended[low] + ended[high])
        m = 0.5 * lived[c] + 0.25 * (lived[low] + lived[high])
        a = (d + PRIOR * pooled[c]) / (m + PRIOR)
        hazard[c] = a
        flat = abs(1.0 - a) < 1e-9
        inside[c] = EDGES[c] * (STEP if flat else math.expm1((1.0 - a) * STEP) / (1.0 - a))
        survive[c] = math.exp(-a * STEP)
    for c in range(CELLS):
        alive, time, best = 1.0, 0.0, np.inf
        for k in range(c, CELLS):
            time += alive * inside[k]
            alive *= survive[k]
            best = min(best, time / max(1.0 - alive, 1e-12))
            if alive < (1e-6 if gittins else TRIMMED):
                break
        out[c] = best if gittins else time
    out[CELLS] = EDGES[CELLS] / (INDEX - 1.0)


@njit
def at(expected, done):
    """The straight line between edges."""
    if done <= EDGES[0]:
        return expected[0]
    cell = cell_of(done)
    share = min(math.log(done / EDGES[cell]) / STEP, 1.0)
    return expected[cell] * (1.0 - share) + expected[cell + 1] * share


@njit
def quantile(hazard, done, missing):
    """What is left of a job when its hazard has summed to so much."""
    x = math.log(max(done, EDGES[0]))
    for c in range(cell_of(done), CELLS):
        width = LOWEST + (c + 1) * STEP - x
        if hazard[c] * width >= missing:
            return math.exp(x + missing / hazard[c]) - done
        missing, x = missing - hazard[c] * width, x + width
    return math.exp(x + missing / INDEX) - done


@njit
def set_outcomes(row, number, hazard, done):
    """`estimates.possible_work` of one job, behind its columns."""
    mixed = (number * 2_654_435_761) % 2**32
    step, start = 1 + (mixed >> 8) % (OUTCOMES - 1), (mixed >> 18) % OUTCOMES
    for k in range(OUTCOMES):
        chance = ((step * k + start) % OUTCOMES + 0.5) / OUTCOMES
        row[COLUMNS + k] = max(quantile(hazard, done, -math.log1p(-chance)), 1e-12)


@njit
def learn(ended, lived, classes, job, done, present, gittins, expected, hazards):
    """What is expected of each class, from jobs that ended and those that run."""
    alive = lived.copy()
    for j in range(present):
        add_life(alive[classes[job[j]]], EDGES[cell_of(done[j])])
    pooled = np.empty(CELLS)
    for c in range(CELLS):
        d = m = 0.0
        for near in range(c - 2, c + 3):
            k = min(max(near, 0), CELLS - 1)
            d += ended[:, k].sum() / 5.0
            m += alive[:, k].sum() / 5.0
        pooled[c] = (d + PRIOR * INDEX) / (m + PRIOR)
    for i in range(len(ended)):
        expect(ended[i], alive[i], pooled, gittins, expected[i], hazards[i])


@njit(
    boolean(
        AS_ARGUMENT[JOB_RULE], float64[::1], int64, float64[:, ::1], float64, float64[::1], int64[::1],
        float64[::1], float64[::1], boolean, int64, float64, float64[::1],
    )
)  # fmt: skip
def simulate(  # noqa: C901, PLR0912, PLR0915 - compiled, and quicker as one function
    rule, table, at_price, speedups, n, times, classes, sizes, weights, equal, belief, soon, out
):
    """When each job is done; `at_price` is where the table wants the price of a core, −1 if it does not."""
    count, kinds, room = len(times), len(weights), 4096
    rows, share = np.zeros((room, COLUMNS + (OUTCOMES if belief == OUTCOMES_OF else 0))), np.zeros(room)
    job = np.zeros(room, np.int64)
    done, rate = np.zeros(room), np.zeros(room)
    ended, lived = np.zeros((kinds, CELLS)), np.zeros((kinds, CELLS))
    expected, hazards = np.zeros((kinds, CELLS + 1)), np.zeros((kinds, CELLS))
    present = arrived = leavers = decisions = 0
    now = area = elapsed = price = 0.0
    look = np.inf
    while arrived < count or present > 0:
        moment, who = (times[arrived] if arrived < count else np.inf), -1
        for j in range(present):
            if rate[j] > 0.0 and now + (sizes[job[j]] - done[j]) / rate[j] <= moment:
                moment, who = now + (sizes[job[j]] - done[j]) / rate[j], j
        looks = look < moment
        moment = max(now, look if looks else moment)
        passed, now = moment - now, moment
        area += price * passed
        elapsed += passed if price > 0.0 else min(passed, elapsed)
        for j in range(present):
            done[j] += rate[j] * passed
        left = not looks and who >= 0
        if left:
            i, size = classes[job[who]], sizes[job[who]]
            out[job[who]] = now
            ended[i] *= KEPT
            lived[i] *= KEPT
            ended[i, cell_of(size)] += 1.0
            add_life(lived[i], size)
            area, elapsed, leavers = FADING * area, FADING * elapsed, leavers + 1
            for j in range(who, present - 1):
                job[j], done[j], rate[j] = job[j + 1], done[j + 1], rate[j + 1]
            present -= 1
        elif not looks:
            job[present], done[present], rate[present] = arrived, 0.0, 0.0
            present, arrived = present + 1, arrived + 1
            if present == room:
                return False
        look = np.inf
        if present == 0:
            price = 0.0
            continue
        decisions += 1
        if equal:
            total = 0.0
            for j in range(present):
                total += weights[classes[job[j]]]
            for j in range(present):
                i = classes[job[j]]
                rate[j] = speed(speedups, i, n * weights[i] / total)
            continue
        if belief not in (KNOWN, ATTAINED) and (left or decisions < 50 or decisions % 16 == 0):
            learn(ended, lived, classes, job, done, present, belief == GITTINS, expected, hazards)
        for j in range(present):
            i = classes[job[j]]
            remaining = max(done[j], EDGES[0])
            if belief == KNOWN:
                remaining = sizes[job[j]] - done[j]
            elif belief != ATTAINED:
                remaining = at(expected[i], done[j])
            rows[j, CLASS], rows[j, WEIGHT], rows[j, IDENTITY] = i, weights[i], job[j]
            rows[j, REMAINING] = max(remaining, 1e-12)
            rows[j, SIZE], rows[j, AGE] = done[j] + rows[j, REMAINING], now - times[job[j]]
            if belief == OUTCOMES_OF:
                set_outcomes(rows[j], job[j], hazards[i], done[j])
        share[:present] = 0.0
        if at_price >= 0:
            if left and elapsed > 0.0:
                factor = min(n / MANY, 1.0) * (1.0 + CAUTION / (1.0 + leavers))
                table[at_price + KEPT_COSTATES.RESERVATION] = factor * area / elapsed
            table[at_price + KEPT_COSTATES.JOBS] = 0.0
        rule(rows[:present], n, table, share[:present])
        price = table[int(table[1]) + MARKET.CLEARED] if at_price >= 0 else 0.0
        price = price if price > 0.0 else 0.0  # noqa: FURB136 - it may be no number
        for j in range(present):
            rate[j] = speed(speedups, classes[job[j]], share[j])
            if rate[j] > 0.0 and belief != KNOWN and present > 1:
                look = min(look, now + max(MATERIAL * done[j] / rate[j], soon))
    return True


class Runner:
    """One policy on one workload: what each job of a stream takes."""

    def __init__(self, workload, cores, name):
        policy, self.belief = CASES[name]
        self.workload, self.cores, self.equal = workload, float(cores), not policy
        wants_price = policy == "clearing"
        made = Policy.of("clearing:price=0" if wants_price else policy or "wham")
        self.rule, self.table, *_ = made.program(workload, self.cores, Need(True, whole=True))
        self.rule, self.at_price = (
            RuleAddress(
                compiled(by_mean_worth if self.belief == OUTCOMES_OF else self.rule, JOB_RULE), JOB_RULE
            ),
            end_of_market(self.table) if wants_price else -1,
        )
        self.speedups = np.array(
            [(0.0, s.exponent) if s.kind == "power" else (1.0, s.sequential) for s in workload.speedups]
        )
        self.soon = SOON * float(workload.mean_sizes @ workload.rates) / workload.total_rate

    def __call__(self, jobs):
        out = np.zeros(jobs.size)
        ok = simulate(
            self.rule, self.table.copy(), self.at_price, self.speedups, self.cores, jobs.times, jobs.classes,
            jobs.sizes, self.workload.holding_costs.copy(), self.equal, self.belief, self.soon, out,
        )  # fmt: skip
        if not ok:
            raise RuntimeError(f"{self.workload.name}: too many jobs are present")
        return out - jobs.times


def desk(cores, load):
    """Queries, builds and sweeps of one person: Amdahl .05, lognormal sizes, unequal weights."""
    kinds = ((1.0, 1.0, 1.0, 5.0), (0.4, 3.0, 1.0, 2.0), (0.15, 8.0, 1.2, 1.0))
    return _workload("desk", [
        {"name": f"class-{i}", "arrivals": {"kind": "poisson", "rate": rate}, "holding_cost": weight,
         "size": {"kind": "lognormal", "mean": mean, "sigma": sigma},
         "speedup": {"kind": "amdahl", "sequential": 0.05}}
        for i, (rate, mean, sigma, weight) in enumerate(kinds)
    ]).at(cores, load)  # fmt: skip


def between(rng, low, high):
    """Evenly spread on a logarithmic scale."""
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def random_law(rng):
    """Light tails and heavy ones."""
    mean, share = between(rng, 0.1, 10.0), float(rng.uniform(0.6, 0.95))
    laws = (
        {"kind": "exponential", "mean": mean},
        {"kind": "erlang", "stages": 4, "mean": mean},
        {"kind": "deterministic", "value": mean},
        {"kind": "uniform", "low": 0.5 * mean, "high": 1.5 * mean},
        {"kind": "hyperexponential", "probabilities": [share, 1.0 - share],
         "rates": [2.0 * share / mean, 2.0 * (1.0 - share) / mean]},
        {"kind": "lognormal", "mean": mean, "sigma": float(rng.uniform(0.5, 2.0))},
        {"kind": "weibull", "mean": mean, "shape": 0.5},
        {"kind": "bounded_pareto", "shape": 1.5, "low": 0.35 * mean, "high": 100.0 * mean},
    )  # fmt: skip
    return laws[int(rng.integers(len(laws)))], mean


def random_setting(seed):
    """A workload on n cores."""
    rng = np.random.default_rng([23, seed])
    kinds, cores = int(rng.integers(2, 7)), round(between(rng, 2.0, 64.0))
    load, rows = float(rng.uniform(0.3, 0.95)), []
    for i in range(kinds):
        law, mean = random_law(rng)
        power = {"kind": "power", "exponent": float(rng.uniform(0.3, 0.9))}
        amdahl = {"kind": "amdahl", "sequential": between(rng, 0.01, 0.3)}
        rate = float(rng.uniform(0.3, 1.0)) / mean**0.7
        rows.append(
            {
                "name": f"class-{i}", "arrivals": {"kind": "poisson", "rate": rate}, "size": law,
                "speedup": power if rng.random() < 0.5 else amdahl, "holding_cost": between(rng, 0.3, 3.0),
            }
        )  # fmt: skip
    return _workload(f"random-{seed}", rows).at(cores, load), cores, load


def _workload(name, rows):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Workload.from_dict({"name": name, "classes": rows})


def stream(workload, count, seed):
    """The first jobs that come to an empty machine."""
    rng = np.random.default_rng(seed)
    times = np.cumsum(rng.exponential(1.0 / workload.total_rate, count))
    shares = workload.rates / workload.total_rate
    classes = rng.choice(len(shares), count, p=shares).astype(np.int64)
    sizes = np.zeros(count)
    for i, one in enumerate(workload.classes):
        sizes[classes == i] = one.size.sample(rng, int((classes == i).sum()))
    return Chunk(times, classes, sizes)


def first_jobs(jobs, kinds):
    """How many jobs have come when there were `FIRST` of each class; half of them at most."""
    reached = [np.flatnonzero(jobs.classes == i)[FIRST - 1 : FIRST] for i in range(kinds)]
    latest = max((int(each[0]) + 1 if len(each) else jobs.size) for each in reached)
    return min(latest, jobs.size // 2)


def costs(workload, cores, names, streams, count, seed):
    """Cost of the first jobs and of later ones under each policy, over that of weighted equal sharing."""
    runners = {name: Runner(workload, cores, name) for name in names}
    totals = {name: np.zeros(2) for name in names}
    for number in range(streams):
        jobs = stream(workload, count, [*np.atleast_1d(seed).tolist(), number])
        cut = first_jobs(jobs, len(workload.classes))
        for name, run in runners.items():
            cost = workload.holding_costs[jobs.classes] * run(jobs)
            totals[name] += cost[:cut].sum(), cost[cut:].sum()
    return {name: total / totals[EQUAL] for name, total in totals.items()}


def random_study(path, first, count, streams=3, jobs=400):
    """Costs on random workloads, a line each."""
    names = [*BASES, "clearing", "clearing, the mean", "clearing, least attained service", "wham"]
    known = set()
    if path.exists():
        with path.open() as file:
            known = {int(row["seed"]) for row in csv.DictReader(file)}
    with path.open("a", newline="") as file:
        writer = csv.writer(file)
        if not known:
            columns = [f"{name}: {part}" for name in names for part in ("first", "later")]
            writer.writerow(["seed", "cores", "load", "classes", *columns])
        for seed in range(first, first + count):
            if seed not in known:
                workload, cores, load = random_setting(seed)
                found = costs(workload, cores, names, streams, jobs, seed)
                numbers = [f"{part:.5f}" for name in names for part in found[name]]
                writer.writerow([seed, cores, f"{load:.3f}", len(workload.classes), *numbers])
                file.flush()


def summary(path):
    """One line per policy."""
    with path.open() as file:
        rows = [*csv.DictReader(file)]
    print(f"{len(rows)} workloads; cost over that of weighted equal sharing\n")
    print("| policy | first jobs | worst | above 1.02 | later | worst | above 1.02 | at least half-way |")
    print("|---|---|---|---|---|---|---|---|")
    bests = np.array([float(row["wham, sizes known: later"]) for row in rows])
    for name in (name for name in CASES if f"{name}: first" in rows[0]):
        first, later = (
            np.array([float(row[f"{name}: {part}"]) for row in rows]) for part in ("first", "later")
        )
        half = (later <= 0.5 * (1.0 + bests)).mean()
        cells = [f(part) for part in (first, later) for f in (_mean, _worst, _above)]
        print(f"| {name} | {' | '.join(cells)} | {half:.0%} |")


def _mean(ratios):
    return f"{np.exp(np.log(ratios).mean()):.3f}"


def _worst(ratios):
    return f"{ratios.max():.3f}"


def _above(ratios):
    return str(int((ratios > 1.02).sum()))


def desk_study(streams=3, jobs=1500):
    """The workload of one person."""
    print("| cores | load | " + " | ".join(list(CASES)[1:]) + " |")
    print("|---|---|" + "---|" * (len(CASES) - 1))
    for cores in (2, 4, 16):
        for load in (0.5, 0.7, 0.9):
            found = costs(desk(cores, load), cores, [*CASES], streams, jobs, cores)
            numbers = [f"{first:.2f} / {later:.2f}" for first, later in list(found.values())[1:]]
            print(f"| {cores} | {load} | {' | '.join(numbers)} |", flush=True)


def run():
    """What `make bench` prints: the workload of one person, on two cores."""
    rows = []
    for load in (0.5, 0.7, 0.9):
        for name, (first, later) in costs(desk(2, load), 2, [*CASES], 2, 1000, 2).items():
            rows.append({"load": load, "policy": name, "first": float(first), "later": float(later)})
    return rows


def live_responses(workload, cores, jobs, guarantee, policy="clearing"):
    """What each job takes under the scheduler itself, which is told no law and no size."""
    scheduler = Scheduler(workload, cores, policy, guarantee=guarantee)
    scheduler.beliefs.sizes = LearnedSizes([None] * len(workload.classes))
    scheduler.machine = replace(scheduler.machine, sizes=scheduler.beliefs.sizes)
    scheduler.load_machine_code()
    return VirtualMachine(scheduler, workload, declared=False).departures(jobs) - jobs.times


def guarantee_study(streams=1, count=300):
    """What κ = 2 costs, over no guarantee."""
    settings = [
        (f"desk, load {load}", desk(cores, load), cores) for cores in (2, 4) for load in (0.5, 0.7, 0.9)
    ]
    chosen = [seed for seed in range(60) if random_setting(seed)[1] <= 12][:12]
    settings += [(f"random {seed}", *random_setting(seed)[:2]) for seed in chosen]
    print("| workload | cores | κ = 2 over none |\n|---|---|---|")
    ratios = []
    for name, workload, cores in settings:
        scale = float(workload.mean_sizes @ workload.rates) / workload.total_rate
        totals = np.zeros(2)
        for number in range(streams):
            jobs = stream(workload, count, [7, number])
            weights = workload.holding_costs[jobs.classes]
            for k, kappa in enumerate((math.inf, 2.0)):
                kept = Guarantee(kappa, 0.2 * scale, math.inf)
                totals[k] += (weights * live_responses(workload, cores, jobs, kept)).sum()
        ratios.append(totals[1] / totals[0])
        print(f"| {name} | {cores} | {ratios[-1]:.3f} |", flush=True)
    print(f"\ngeometric mean {_mean(np.array(ratios))}, worst {max(ratios):.3f}")


def together_study(rounds=6, repeats=10):
    """Three unequal jobs that come together, again and again: over equal sharing without weights."""
    rows = [
        {"name": name, "arrivals": {"kind": "poisson", "rate": 0.1}, "holding_cost": weight,
         "size": {"kind": "exponential", "mean": 1.0}, "speedup": {"kind": "amdahl", "sequential": 0.05}}
        for name, weight in (("short", 5.0), ("middle", 2.0), ("long", 1.0))
    ]  # fmt: skip
    workload = _workload("together", rows)
    alike = Runner(_workload("alike", [{**row, "holding_cost": 1.0} for row in rows]), 2, EQUAL)
    usual = core_price.MANY
    totals = {many: np.zeros((rounds, 2)) for many in (usual, 2.0)}
    for seed in range(repeats):
        rng = np.random.default_rng(seed)
        times = np.concatenate([4.5 * k + np.sort(rng.uniform(0.0, 0.3, 3)) for k in range(rounds)])
        classes = np.concatenate([rng.permutation(3) for _ in range(rounds)])
        sizes = np.array([0.6, 1.6, 4.0])[classes] * rng.lognormal(0.0, 0.25, len(classes))
        jobs = Chunk(times, classes, sizes)
        weights = workload.holding_costs[classes]
        for many in totals:
            core_price.MANY = many
            found = (live_responses(workload, 2, jobs, Guarantee()), alike(jobs))
            totals[many] += np.array([(weights * each).reshape(rounds, 3).sum(axis=1) for each in found]).T
    for many, total in totals.items():
        price = "n/5 of the price" if many == usual else "the full price"
        print(f"{price}: {' '.join(f'{ratio:.2f}' for ratio in total[:, 0] / total[:, 1])}")
    core_price.MANY = usual


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path, nargs="?")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="number of the first workload")
    parser.add_argument("--desk", action="store_true")
    parser.add_argument("--together", action="store_true")
    parser.add_argument("--guarantee", action="store_true")
    asked = parser.parse_args()
    if asked.desk:
        desk_study()
    if asked.together:
        together_study()
    if asked.guarantee:
        guarantee_study()
    if asked.file is not None:
        random_study(asked.file, asked.first, asked.count)
        summary(asked.file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
