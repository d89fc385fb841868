"""What the cells of e13_tails show: figures, tables and verdicts."""

from __future__ import annotations

from math import nan
from typing import TYPE_CHECKING, Any

from malleable.model import paper_workload
from malleable.paper.contracts import Effort, Findings, Table, Verdict, failed
from malleable.paper.experiments.e13_tails.cells import (
    CORES,
    JOBS,
    LOADS,
    VARIANTS,
    WHAM,
    key_of,
    policies_of,
)
from malleable.paper.experiments.shared.columns import interval_columns
from malleable.paper.experiments.shared.policies import POLICIES
from malleable.plots.figures import Axis, Figure, Panel, Series
from malleable.results.class_result import read_interval
from malleable.statistics.intervals import Estimate

if TYPE_CHECKING:
    from malleable.paper.contracts import Values

CLASSES = ("class-1", "class-2", "class-3")
LEVELS = ("median", "95 %", "99 %")
LAST = len(LEVELS) - 1
CHOICES = {
    "setting": f"{CORES} cores, loads {' and '.join(map(str, LOADS))}, the paper's workload",
    "slowdown": "response time over size: 1 is a job alone on one core, less than 1 is faster than that",
    "intervals": "from the scatter of the percentiles over batches of jobs; the first batch is left out",
    "percentiles": "from histograms with 64 bins per octave, interpolated: off by at most 1.6 %",
    "FW-CAM": (
        "β = 0.8 at load 0.25; at load 0.8 that has no plan on 64 cores, so it is the repaired form (at "
        "least one slot per class, no core idle) with β = 0.6"
    ),
    "run length": "at least 30 jobs per core; fewer for slow policies, and where jobs pile up",
}


def findings(effort: Effort, values: Values) -> Findings:
    """Tables of all percentiles, points by class, and what can be said for sure."""
    found = {load: {p: values[key_of(p, load)] for p in policies_of(effort)} for load in LOADS}
    figures = [figure(key, load, found[load]) for load in LOADS for key in ("response", "slowdown")]
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
        tables=(costs_table(found), tails_table(found)),
        verdicts=(
            *(cheapest(load, found[load]) for load in LOADS),
            *(undominated(load, found[load]) for load in LOADS),
        ),
        remarks=(
            (
                "A policy without a steady state has no percentiles: they grow with the run. The table says "
                "which policies these are, and which have no plan for a load."
            ),
            (
                "FW-CAM's long tails are waits for a slot: on few cores a class has few slots, and none is "
                "lent to another. With one core each the slowdown is 1 as long as no job waits."
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


def is_stable(found: Any) -> bool:
    """Whether a policy kept up with the jobs."""
    return not failed(found) and bool(found["result"]["stable"])


def _status(found: Any) -> str:
    return "infeasible" if failed(found) else "stable" if found["result"]["stable"] else "unstable"


def _entry(found: Any, key: str, job_class: str, level: int) -> Estimate:
    """One percentile; none where the policy has no plan or no steady state."""
    return read_interval(found[key][job_class][level]) if is_stable(found) else Estimate()


def figure(key: str, load: float, found: dict[str, Any]) -> Figure:
    """Percentiles per class under all stable policies."""
    steady = {p: v for p, v in found.items() if is_stable(v)}
    names = tuple(POLICIES[p].name for p in steady)
    others = ", ".join(POLICIES[p].name for p in found if p not in steady)
    x = tuple(map(float, range(len(names))))
    word = "response time" if key == "response" else "slowdown"
    panels = tuple(
        Panel(
            Axis("", categories=names),
            Axis(word, "log"),
            tuple(
                Series.of(level, x, [_entry(v, key, c, i) for v in steady.values()], "points", (2, 4, 1)[i])
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


def costs_table(found: dict[float, dict[str, Any]]) -> Table:
    """Costs, and whether there are any."""
    rows = [(load, p, v) for load, values in found.items() for p, v in values.items()]
    costs = [Estimate() if failed(v) else read_interval(v["result"]["cost"]) for *_, v in rows]
    apart = [
        read_interval(v["difference"]) if not failed(v) and "difference" in v else Estimate()
        for *_, v in rows
    ]
    columns: dict[str, tuple[Any, ...]] = {
        "load": tuple(load for load, *_ in rows),
        "policy": tuple(POLICIES[p].name for _, p, _ in rows),
        "status": tuple(_status(v) for *_, v in rows),
        **interval_columns("cost", costs),
        **interval_columns("difference from WHAM", apart, "difference low", "difference high"),
        "jobs simulated": tuple(None if failed(v) else v["result"]["jobs"] for *_, v in rows),
    }
    return Table("tails-costs", f"Mean costs on {CORES} cores, paired with WHAM (95 %)", columns)


def tails_table(found: dict[float, dict[str, Any]]) -> Table:
    """All percentiles per class."""
    rows = [(load, p, c, v) for load, values in found.items() for p, v in values.items() for c in CLASSES]
    columns: dict[str, tuple[Any, ...]] = {
        "load": tuple(load for load, *_ in rows),
        "policy": tuple(POLICIES[p].name for _, p, *_ in rows),
        "class": tuple(c for *_, c, _ in rows),
        "mean response": tuple(_mean(v, c) for *_, c, v in rows),
    }
    for key in ("response", "slowdown"):
        for i, level in enumerate(LEVELS):
            entries = [_entry(v, key, c, i) for *_, c, v in rows]
            name = f"{key}, {level}"
            columns |= interval_columns(name, entries, f"{name} low", f"{name} high")
    return Table("tails", f"Percentiles on {CORES} cores (95 %)", columns)


def _mean(found: Any, job_class: str) -> float:
    if not is_stable(found):
        return nan
    mine = next(c for c in found["result"]["classes"] if c["name"] == job_class)
    return float(mine["response_time"]["mean"])


def cheapest(load: float, found: dict[str, Any]) -> Verdict:
    """Whether every rival costs more, for sure; one without a steady state does."""
    rivals = {p: v for p, v in found.items() if p not in VARIANTS}
    apart = {p: read_interval(v["difference"]) for p, v in rivals.items() if is_stable(v)}
    better = [p for p, d in apart.items() if d.high < 0.0]
    open_ = [p for p, d in apart.items() if d.low <= 0.0 <= d.high]
    cost = found[WHAM]["result"]["cost"]["mean"]
    others = [POLICIES[p].name for p, v in rivals.items() if not is_stable(v)]
    nearest = min(apart, key=lambda p: apart[p].mean)
    d = apart[nearest]
    text = f"nearest is {POLICIES[nearest].name}, {d.mean / cost:+.2%} ± {d.half_width / cost:.2%}"
    text += f"; open: {', '.join(POLICIES[p].name for p in open_)}" if open_ else ""
    text += f"; without a steady state: {', '.join(others)}" if others else ""
    statement = f"At load {load} WHAM has a lower mean cost than all {len(rivals)} rivals"
    return Verdict(statement, False if better else None if open_ else True, text)


def undominated(load: float, found: dict[str, Any]) -> Verdict:
    """No rival may be better in the 99th percentile of all classes at once."""
    beaten, open_, told = [], [], []
    for policy, value in found.items():
        if policy in VARIANTS or not is_stable(value):
            continue
        apart = [read_interval(value["apart"]["response"][c][LAST]) for c in CLASSES]
        if all(d.high < 0.0 for d in apart):
            beaten.append(POLICIES[policy].name)
        elif not any(d.low > 0.0 for d in apart):
            open_.append(POLICIES[policy].name)
        shorter = [c for c, d in zip(CLASSES, apart, strict=True) if d.high < 0.0]
        if shorter:
            told.append(f"{POLICIES[policy].name} ({', '.join(shorter)})")
    text = f"shorter in some class: {'; '.join(told)}" if told else "no rival is shorter in any class"
    text += f"; shorter in all: {', '.join(beaten)}" if beaten else ""
    text += f"; longer in none for sure: {', '.join(open_)}" if open_ else ""
    statement = f"At load {load} no rival has shorter 99th percentiles than WHAM in all classes"
    return Verdict(statement, False if beaten else None if open_ else True, text)
