"""Tails and fairness: percentiles of response time and slowdown of every class under every policy."""

from __future__ import annotations

from math import nan
from typing import TYPE_CHECKING, Any

from malleable.model import paper_workload
from malleable.paper.contracts import Cell, Effort, Findings, Table, Verdict, failed
from malleable.paper.experiments import _evidence as ev
from malleable.paper.experiments._curves import drawn, high, low
from malleable.paper.experiments._tails import tails
from malleable.plots.figures import Axis, Figure, Panel
from malleable.statistics.intervals import Estimate

if TYPE_CHECKING:
    from malleable.paper.contracts import Values

CORES = 64
LOADS = (0.25, 0.8)
CLASSES = ("class-1", "class-2", "class-3")
LEVELS = ("median", "95 %", "99 %")
LAST = len(LEVELS) - 1
WHAM = "wham"
VARIANTS = {WHAM: "WHAM", "wham-integer": "WHAM, whole cores", "wham-discounted": "WHAM, discounted"}
POLICIES = {
    **VARIANTS,
    "fw-cam": "FW-CAM",
    "equi": "EQUI",
    "greedy": "GREEDY",
    "greedy:weight=cmu": "GREEDY, w = cμ",
    "greedy:weight=c/x": "GREEDY, w = c/x",
    "greedy-star": "GREEDY*",
    "hell": "HELL",
    "knee": "KNEE",
    "hesrpt": "A-heSRPT",
    "pollux": "Pollux",
    "sia": "Sia",
    "lpf": "LPF",
    "srpt": "SRPT, one core each",
    "srpt-all": "SRPT, all cores",
    "fcfs": "FCFS, one core each",
    "inelastic-first": "Inelastic-First",
    "elastic-first": "Elastic-First",
}
SPELT = {("fw-cam", 0.25): "fw-cam:beta=0.8", ("fw-cam", 0.8): "fw-cam-repaired:beta=0.6"}
"""Settings in which a policy needs options."""
FAST = (WHAM, "fw-cam", "equi", "greedy", "fcfs")
SLOW = ("pollux", "sia")
CROWDED = {
    ("hell", 0.25),
    ("hell", 0.8),
    ("knee", 0.8),
    ("lpf", 0.8),
    ("sia", 0.8),
    ("greedy:weight=c/x", 0.8),
    ("srpt-all", 0.25),
    ("srpt-all", 0.8),
    ("inelastic-first", 0.8),
    ("elastic-first", 0.8),
}
"""Settings in which jobs pile up, so that every event takes longer and longer."""
QUICK = (WHAM, "equi", "greedy", "hesrpt", "srpt")
BATCHES = {"quick": 5, "normal": 10, "full": 30}
JOBS = {
    "quick": (2_000, 400, 400, 400),
    "normal": (60_000, 5_000, 800, 200),
    "full": (1_000_000, 60_000, 6_000, 600),
}
"""Jobs of a batch for fast policies, for others, for slow ones, and where jobs pile up."""
SEED = 13

CHOICES = {
    "setting": f"{CORES} cores, loads {' and '.join(map(str, LOADS))}, the paper's workload",
    "slowdown": "response time over size: 1 is a job alone on one core, less than 1 is faster than that",
    "intervals": "from the scatter of the percentiles over batches of jobs; the first batch is left out",
    "percentiles": "from histograms with 64 bins an octave, interpolated: off by at most 1.6 %",
    "FW-CAM": (
        "β = 0.8 at load 0.25; at load 0.8 that has no plan on 64 cores, so it is the repaired form (at "
        "least one slot a class, no core idle) with β = 0.6"
    ),
    "run length": "at least 30 jobs a core; fewer for slow policies, and where jobs pile up",
}


def cells(effort: Effort) -> list[Cell]:
    """One cell a policy and load, with WHAM on the same jobs."""
    made = []
    for load in LOADS:
        for policy in QUICK if effort.quick else POLICIES:
            jobs, batches = _jobs(effort, policy, load), BATCHES[effort.name]
            named = SPELT.get((policy, load), policy)
            asked = {"policy": named, "cores": CORES, "load": load, "seed": SEED}
            speed = 3e6 if policy in FAST else 6e3 if jobs < JOBS[effort.name][1] else 1e5
            run = {"jobs": jobs, "batches": batches, **asked}
            made.append(Cell(_key(policy, load), tails, run, 0.3 + jobs * batches / speed))
    return made


def _jobs(effort: Effort, policy: str, load: float) -> int:
    fast, others, slow, crowded = JOBS[effort.name]
    if (policy, load) in CROWDED:
        return crowded
    return fast if policy in FAST else slow if policy in SLOW else others


def _key(policy: str, load: float) -> str:
    plain = "".join(c if c.isalnum() or c in "-." else "-" for c in policy)
    return f"{plain}-{load}"


def findings(effort: Effort, values: Values) -> Findings:
    """Tables of all percentiles, points by class, and what can be said for sure."""
    chosen = QUICK if effort.quick else tuple(POLICIES)
    found = {load: {p: values[_key(p, load)] for p in chosen} for load in LOADS}
    figures = [_figure(key, load, found[load]) for load in LOADS for key in ("response", "slowdown")]
    return Findings(
        title="Tails and fairness",
        source="beyond the paper",
        statement=(
            "WHAM is made to minimise the mean holding cost. Does it pay for that with long waits of a few, "
            "or at the expense of one class? For every policy this shows the median and the 95th and 99th "
            "percentile of the response time of each class, and of its slowdown, the response time over the "
            "job's size: with equal slowdowns all jobs are treated alike."
        ),
        figures=tuple(figures),
        tables=(_costs_table(found), _tails_table(found)),
        verdicts=(
            *(_cheapest(load, found[load]) for load in LOADS),
            *(_undominated(load, found[load]) for load in LOADS),
        ),
        remarks=(
            (
                "A policy without a steady state has no percentiles: they grow with the run. The table says "
                "which policies these are, and which have no plan for a load."
            ),
            (
                "FW-CAM's long tails are waits for a slot: on few cores a class has few slots, and none is "
                "lent to another. With one core each the slowdown is 1 as long as nobody waits."
            ),
            _few_jobs(effort),
        ),
    )


def _few_jobs(effort: Effort) -> str:
    rates, batch = paper_workload(CORES).rates, JOBS[effort.name][2]
    rarest = batch * min(rates) / sum(rates)
    return (
        f"Percentiles of slow policies rest on few jobs: a batch of {batch} has about {rarest:.0f} of the "
        f"rarest class, and {rarest / 100.0:.1f} of them are beyond its 99th percentile."
    )


def _stable(found: Any) -> bool:
    return not failed(found) and bool(found["result"]["stable"])


def _status(found: Any) -> str:
    return "infeasible" if failed(found) else "stable" if found["result"]["stable"] else "unstable"


def _entry(found: Any, key: str, job_class: str, level: int) -> Estimate:
    """One percentile; none where the policy has no plan or no steady state."""
    return ev.estimate(found[key][job_class][level]) if _stable(found) else Estimate()


def _cheapest(load: float, found: dict[str, Any]) -> Verdict:
    """Whether every rival costs more, for sure; one without a steady state does."""
    rivals = {p: v for p, v in found.items() if p not in VARIANTS}
    apart = {p: ev.estimate(v["difference"]) for p, v in rivals.items() if _stable(v)}
    better = [p for p, d in apart.items() if d.high < 0.0]
    open_ = [p for p, d in apart.items() if d.low <= 0.0 <= d.high]
    cost = found[WHAM]["result"]["cost"]["mean"]
    others = [POLICIES[p] for p, v in rivals.items() if not _stable(v)]
    nearest = min(apart, key=lambda p: apart[p].mean)
    d = apart[nearest]
    text = f"nearest is {POLICIES[nearest]}, {d.mean / cost:+.2%} ± {d.half_width / cost:.2%}"
    text += f"; open: {', '.join(POLICIES[p] for p in open_)}" if open_ else ""
    text += f"; without a steady state: {', '.join(others)}" if others else ""
    statement = f"At load {load} WHAM has a lower mean cost than all {len(rivals)} rivals"
    return Verdict(statement, False if better else None if open_ else True, text)


def _undominated(load: float, found: dict[str, Any]) -> Verdict:
    """No rival may be better in the 99th percentile of all classes at once."""
    beaten, open_, told = [], [], []
    for policy, value in found.items():
        if policy in VARIANTS or not _stable(value):
            continue
        apart = [ev.estimate(value["apart"]["response"][c][LAST]) for c in CLASSES]
        if all(d.high < 0.0 for d in apart):
            beaten.append(POLICIES[policy])
        elif not any(d.low > 0.0 for d in apart):
            open_.append(POLICIES[policy])
        shorter = [c for c, d in zip(CLASSES, apart, strict=True) if d.high < 0.0]
        if shorter:
            told.append(f"{POLICIES[policy]} ({', '.join(shorter)})")
    text = f"shorter in some class: {'; '.join(told)}" if told else "no rival is shorter in any class"
    text += f"; shorter in all: {', '.join(beaten)}" if beaten else ""
    text += f"; longer in none for sure: {', '.join(open_)}" if open_ else ""
    statement = f"At load {load} no rival has shorter 99th percentiles than WHAM in all classes"
    return Verdict(statement, False if beaten else None if open_ else True, text)


def _figure(key: str, load: float, found: dict[str, Any]) -> Figure:
    steady = {p: v for p, v in found.items() if _stable(v)}
    names = tuple(POLICIES[p] for p in steady)
    others = ", ".join(POLICIES[p] for p in found if p not in steady)
    x = tuple(map(float, range(len(names))))
    word = "response time" if key == "response" else "slowdown"
    panels = tuple(
        Panel(
            Axis("", categories=names),
            Axis(word, "log"),
            tuple(
                drawn(level, x, [_entry(v, key, c, i) for v in steady.values()], "points", (2, 4, 1)[i])
                for i, level in enumerate(LEVELS)
            ),
            title=c,
        )
        for c in CLASSES
    )
    return Figure(
        f"tails-{key}-{round(100 * load)}",
        f"Tails of the {word} at load {load}",
        f"Median, 95th and 99th percentile of the {word} of each class on {CORES} cores, by policy, with "
        "95 % intervals. Lower is better; points far apart mean that jobs of a class fare unequally."
        + (f" Without a plan or a steady state: {others}." if others else ""),
        panels,
    )


def _costs_table(found: dict[float, dict[str, Any]]) -> Table:
    rows = [(load, p, v) for load, values in found.items() for p, v in values.items()]
    costs = [Estimate() if failed(v) else ev.estimate(v["result"]["cost"]) for *_, v in rows]
    apart = [
        ev.estimate(v["difference"]) if not failed(v) and "difference" in v else Estimate() for *_, v in rows
    ]
    columns = {
        "load": tuple(load for load, *_ in rows),
        "policy": tuple(POLICIES[p] for _, p, _ in rows),
        "status": tuple(_status(v) for *_, v in rows),
        "cost": tuple(c.mean for c in costs),
        "low": tuple(map(low, costs)),
        "high": tuple(map(high, costs)),
        "difference from WHAM": tuple(d.mean for d in apart),
        "difference low": tuple(map(low, apart)),
        "difference high": tuple(map(high, apart)),
        "jobs simulated": tuple(None if failed(v) else v["result"]["jobs"] for *_, v in rows),
    }
    return Table("tails-costs", f"Mean costs on {CORES} cores, paired with WHAM (95 %)", columns)


def _tails_table(found: dict[float, dict[str, Any]]) -> Table:
    rows = [(load, p, c, v) for load, values in found.items() for p, v in values.items() for c in CLASSES]
    columns: dict[str, tuple[Any, ...]] = {
        "load": tuple(load for load, *_ in rows),
        "policy": tuple(POLICIES[p] for _, p, *_ in rows),
        "class": tuple(c for *_, c, _ in rows),
        "mean response": tuple(_mean(v, c) for *_, c, v in rows),
    }
    for key, word in (("response", "response"), ("slowdown", "slowdown")):
        for i, level in enumerate(LEVELS):
            entries = [_entry(v, key, c, i) for *_, c, v in rows]
            columns[f"{word}, {level}"] = tuple(e.mean for e in entries)
            columns[f"{word}, {level} low"] = tuple(map(low, entries))
            columns[f"{word}, {level} high"] = tuple(map(high, entries))
    return Table("tails", f"Percentiles on {CORES} cores (95 %)", columns)


def _mean(found: Any, job_class: str) -> float:
    if not _stable(found):
        return nan
    mine = next(c for c in found["result"]["classes"] if c["name"] == job_class)
    return float(mine["response_time"]["mean"])
