"""Why FW-CAM is mean-field optimal: its widths converge, its cores fill up, and nobody waits."""

from __future__ import annotations

from math import inf, log, nan
from typing import TYPE_CHECKING, Any

import numpy as np

from malleable.model import paper_workload
from malleable.paper.contracts import Axis, Cell, Effort, Figure, Findings, Panel, Series, Table, Verdict
from malleable.paper.experiments import _evidence as ev
from malleable.paper.experiments._curves import drawn, high, low
from malleable.paper.experiments._pools import all_planned
from malleable.paper.measuring import compared
from malleable.statistics.intervals import Estimate
from malleable.theory.relaxed import bound

if TYPE_CHECKING:
    from collections.abc import Iterator

    from malleable.paper.contracts import Values

LOAD = 0.25
BETAS = (0.76, 0.8, 0.9)
SHOWN = 0.8
"""The β whose classes are drawn."""
SEED = 4
SIMULATED = tuple((beta, n) for beta in BETAS for n in (16, 64, 256, 1024, 4096, 16384))
QUICK_SIMULATED = ((0.8, 64), (0.8, 256), (0.9, 64))
"""β and n of the simulations; in a quick look, those whose queues a short run can judge."""
NEAR = tuple(2**i for i in range(4, 13))
FAR = tuple(2**i for i in range(13, 51))
"""Where only widths and effective loads are worked out."""
MOST_SLOTS = {"quick": 100, "normal": 100, "full": 200}
"""Slots of a class up to which M/PH/c is solved, by effort."""

CHOICES = {
    "beta": "0.76, 0.8 and 0.9: near the least that the paper allows, the package's default, and a large one",
    "n": "powers of 2: widths to 2^50, waiting to 4096 where M/PH/c is quick enough, simulations 16 to 16384",
    "run length": "until the 95 % interval of the cost is five times the effort's precision (normal: ±1 %)",
    "warm-up": "found by MSER-5 and left out",
    "slots": "rounded down after adding 1e-9, so that a slot that fits up to rounding counts",
    "agreement": (
        "all exact values in intervals of 99.9 % for all of them together, or within half the precision"
    ),
}


def cells(effort: Effort) -> list[Cell]:
    """Plans and exact queues by β; simulations by β and n."""
    exact = {"load": LOAD, "most_slots": MOST_SLOTS[effort.name]}
    far = FAR[7::10] if effort.quick else FAR
    made = [Cell("relaxed", relaxed_widths, {}, 0.1)]
    made += [
        Cell(f"plans-{b}", all_planned, {"cores": [*NEAR, *far], "beta": b, **exact}, 2.0) for b in BETAS
    ]
    run = {"load": LOAD, "seed": SEED, "jobs": effort.jobs, "most_jobs": effort.most_jobs}
    run["precision"] = 5.0 * effort.precision
    made += [
        Cell(
            f"fw-cam-{b}-{n}",
            compared,
            {"policies": [f"fw-cam:beta={b}"], "cores": n, **run},
            effort.jobs * (1.0 + n / 8000) / 4e6,
        )
        for b, n in _simulated(effort)
    ]
    return made


def _simulated(effort: Effort) -> tuple[tuple[float, int], ...]:
    return QUICK_SIMULATED if effort.quick else SIMULATED


def relaxed_widths() -> dict[str, Any]:
    """The widths k_i* of the relaxed problem, and V*."""
    found = bound(paper_workload(64, LOAD), 64)
    return {
        "names": [c.name for c in found.classes],
        "widths": found.widths.tolist(),
        "loads": (found.workload.loads / 64).tolist(),
        "bound": found.bound,
    }


def findings(effort: Effort, values: Values) -> Findings:
    """The figure, the tables, and what they say."""
    cases, classes = list(_cases(effort, values)), list(_class_cases(effort, values))
    near = effort.precision / 2.0
    return Findings(
        title="FW-CAM: widths converge, cores fill up, queues vanish",
        source="Lemma on the convergence of k, Lemma on no queueing",
        statement=(
            "FW-CAM runs every job of class i on the same number of cores k_i, the best widths for a machine "
            "of only n − n^β cores; the other n^β are slack against randomness. As n grows the slack becomes "
            "a vanishing share of the machine, so k_i tends to k_i*, the width in the lower bound, and the "
            "effective load (the share of cores in use) tends to 1. Yet the slack grows fast enough that "
            "queues vanish. Together this makes FW-CAM optimal in the limit."
        ),
        figures=(_figure(effort, values),),
        tables=(_widths_table(values), _queues_table(values), _simulated_table(effort, values)),
        verdicts=(
            *(_widths_converge(beta, values) for beta in BETAS),
            _effective_load(values),
            _slots(values),
            *(_no_queueing(beta, values) for beta in BETAS),
            ev.agreement("Simulated costs agree with Erlang C and M/PH/c", cases, near),
            ev.agreement("Simulated response times of all classes agree with them, too", classes, near),
        ),
        remarks=(
            (
                "The bound of Li and Goldberg that the paper's proof uses needs some 10^10 cores before it "
                "says anything here. The queues are short long before."
            ),
            (
                "Waiting does not fall at every step: slots are whole, and what rounding down takes away "
                "weighs most when there are few."
            ),
            "A class of hyperexponential sizes with too many slots for M/PH/c has no exact waiting time.",
        ),
    )


def _rows(beta: float, values: Values) -> list[dict[str, Any]]:
    return [row for row in values[f"plans-{beta}"] if row["status"] == "stable"]


def _distances(beta: float, values: Values) -> tuple[list[int], np.ndarray[Any, Any]]:
    """Cores, and how far each width is from its limit, relative to it (plans, classes)."""
    rows, limits = _rows(beta, values), np.array(values["relaxed"]["widths"])
    widths = np.array([[pool["width"] for pool in row["pools"]] for row in rows])
    return [row["cores"] for row in rows], np.abs(widths / limits - 1.0)


def _widths_converge(beta: float, values: Values) -> Verdict:
    """The distance must fall at every step and end as the power β − 1 of n: slack is n^(β−1) of n."""
    cores, far = _distances(beta, values)
    worst = far.max(axis=1)
    with np.errstate(divide="ignore"):
        exponents = np.log(far[-1] / far[-2]) / log(cores[-1] / cores[-2])
    falls = bool((np.diff(worst) < 0.0).all())
    text = (
        f"farthest class {worst[0]:.1%} off on {cores[0]} cores, {worst[-1]:.3%} on {cores[-1]:.2g}; "
        f"exponents there {', '.join(f'{e:.3f}' for e in exponents)}, in theory {beta - 1.0:.2f}"
    )
    powers = bool((np.abs(exponents / (beta - 1.0) - 1.0) < 0.1).all())
    return Verdict(f"Widths converge to those of the lower bound with β = {beta}", falls and powers, text)


def _effective_load(values: Values) -> Verdict:
    """It must be 1 − n^(β−1), which tends to 1."""
    rows = [row for beta in BETAS for row in _rows(beta, values)]
    off = max(abs(row["effective_load"] - 1.0 + row["cores"] ** (row["beta"] - 1.0)) for row in rows)
    ends = ", ".join(f"{_rows(b, values)[-1]['effective_load']:.5f} (β = {b})" for b in BETAS)
    rising = all(
        later["effective_load"] > earlier["effective_load"]
        for beta in BETAS
        for earlier, later in zip(_rows(beta, values), _rows(beta, values)[1:], strict=False)
    )
    text = f"equal to 1 − n^(β−1) up to {off:.1g}; on {rows[-1]['cores']:.2g} cores {ends}"
    return Verdict("The effective load is 1 − n^(β−1) and tends to 1", off < 1e-9 and rising, text)


def _slots(values: Values) -> Verdict:
    """n_i' = ⌊busy_i/(1 − n^(β−1))⌋ up to 2^30 cores; beyond, rounding errors reach whole slots."""
    pools = [
        (pool["slots"], pool["busy"] / (1.0 - row["cores"] ** (row["beta"] - 1.0)))
        for beta in BETAS
        for row in _rows(beta, values)
        if row["cores"] <= 2**30
        for pool in row["pools"]
    ]
    right = sum(-1.0 - 1e-9 * exact < slots - exact < 1e-6 + 1e-9 * exact for slots, exact in pools)
    statement = "Slots are ⌊(load_i/s_i(k_i))/(1 − n^(β−1))⌋"
    return Verdict(statement, right == len(pools), f"{right} of {len(pools)} numbers of slots")


def _no_queueing(beta: float, values: Values) -> Verdict:
    """The mean wait of every class must fall as n grows, and so must its probability."""
    told, slopes = [], []
    for i, name in enumerate(values["relaxed"]["names"]):
        known = [(r["cores"], r["pools"][i]) for r in _rows(beta, values) if r["pools"][i]["waiting"]]
        slopes += [
            ev.power([n for n, _ in known], [pool[key] for _, pool in known])[0]
            for key in ("waiting", "waiting_probability")
        ]
        (n, first), (m, last) = known[0], known[-1]
        told.append(
            f"{name} waits {first['waiting']:.2g} ({first['waiting_probability']:.1%} of jobs) on {n} cores, "
            f"{last['waiting']:.1g} ({last['waiting_probability']:.1g}) on {m}"
        )
    known_all = all(slope.half_width < inf for slope in slopes)
    holds = all(slope.high < 0.0 for slope in slopes) if known_all else None
    return Verdict(f"Queues vanish with β = {beta}", holds, "; ".join(told))


def _compared(effort: Effort, values: Values) -> Iterator[tuple[float, int, Any, Any]]:
    """β, n, the plan and the simulation, where there is one."""
    rows = {(beta, row["cores"]): row for beta in BETAS for row in _rows(beta, values)}
    for beta, n in _simulated(effort):
        value = values[f"fw-cam-{beta}-{n}"]
        if not ev.failed(value) and (beta, n) in rows:
            yield beta, n, rows[beta, n], value["results"][f"fw-cam:beta={beta}"]


def _cases(effort: Effort, values: Values) -> Iterator[ev.Case]:
    for beta, n, row, result in _compared(effort, values):
        if row.get("cost") is not None:
            name = f"β = {beta} on {n} cores"
            yield ev.Case(name, ev.estimate(result["cost"]), result, row["cost"])


def _class_cases(effort: Effort, values: Values) -> Iterator[ev.Case]:
    for beta, n, row, result in _compared(effort, values):
        for pool, found in zip(row["pools"], result["classes"], strict=True):
            if pool["waiting"] is not None:
                name = f"{pool['name']}, β = {beta} on {n} cores"
                exact = pool["service"] + pool["waiting"]
                yield ev.Case(name, ev.estimate(found["response_time"]), result, exact)


def _figure(effort: Effort, values: Values) -> Figure:
    names = values["relaxed"]["names"]
    cores, far = _distances(SHOWN, values)
    widths = [Series(name, _floats(cores), tuple(far[:, i]), colour=i) for i, name in enumerate(names)]
    loads = [
        Series(
            f"β = {beta}",
            tuple(float(row["cores"]) for row in _rows(beta, values)),
            tuple(row["effective_load"] for row in _rows(beta, values)),
            colour=i,
        )
        for i, beta in enumerate(BETAS)
    ]
    return Figure(
        "fwcam",
        "FW-CAM in the limit",
        f"First: how far the width of each class is from its limit (β = {SHOWN}); classes with power-law "
        "speedups coincide. Second: the effective load tends to 1. Third: the mean time that a job waits "
        f"(β = {SHOWN}), exact as a line and simulated with 95 % intervals as points; it goes to "
        "zero although the cores fill up.",
        (
            Panel(Axis("cores n", "log"), Axis("|k/k* − 1|", "log"), tuple(widths)),
            Panel(Axis("cores n", "log"), Axis("effective load", low=0.0, high=1.0), tuple(loads)),
            Panel(
                Axis("cores n", "log", high=20000.0),
                Axis("mean wait", "log"),
                tuple(_waits(effort, values)),
            ),
        ),
    )


def _waits(effort: Effort, values: Values) -> Iterator[Series]:
    for i, name in enumerate(values["relaxed"]["names"]):
        near = [row for row in _rows(SHOWN, values) if row["cores"] <= NEAR[-1]]
        exact = tuple(row["pools"][i]["waiting"] or nan for row in near)
        yield Series(f"{name}, exact", tuple(float(row["cores"]) for row in near), exact, colour=i)
        points = [
            (n, _waited(result["classes"][i], row["pools"][i]["service"]))
            for beta, n, row, result in _compared(effort, values)
            if beta == SHOWN
        ]
        shown = [wait if wait.low > 0.0 else Estimate() for _, wait in points]
        yield drawn(f"{name}, simulated", [float(n) for n, _ in points], shown, "points", i)


def _waited(found: Any, service: float) -> Estimate:
    """The mean wait: response time less the known service time."""
    time = ev.estimate(found["response_time"])
    return Estimate(time.mean - service, time.low - service, time.high - service)


def _floats(numbers: Any) -> tuple[float, ...]:
    return tuple(map(float, numbers))


def _widths_table(values: Values) -> Table:
    rows = [row for beta in BETAS for row in _rows(beta, values)]
    columns: dict[str, tuple[Any, ...]] = {
        "beta": tuple(row["beta"] for row in rows),
        "cores": tuple(row["cores"] for row in rows),
        "effective load": tuple(row["effective_load"] for row in rows),
    }
    for i, name in enumerate(values["relaxed"]["names"]):
        columns[f"width of {name}"] = tuple(row["pools"][i]["width"] for row in rows)
    limits = ", ".join(f"{k:.6g}" for k in values["relaxed"]["widths"])
    return Table(
        "fwcam-widths", f"Widths and effective loads; the widths tend to {limits}", columns, shown=False
    )


def _queues_table(values: Values) -> Table:
    rows = [
        (beta, row["cores"], pool)
        for beta in BETAS
        for row in _rows(beta, values)
        if row["cores"] <= NEAR[-1]
        for pool in row["pools"]
    ]
    keys = ("name", "width", "slots", "utilisation", "service", "waiting", "waiting_probability")
    columns = {"beta": tuple(r[0] for r in rows), "cores": tuple(r[1] for r in rows)}
    columns |= {key.replace("_", " "): tuple(r[2][key] for r in rows) for key in keys}
    return Table("fwcam-queues", "Exact queues by class", columns, shown=False)


def _simulated_table(effort: Effort, values: Values) -> Table:
    rows = list(_compared(effort, values))
    costs = [ev.estimate(result["cost"]) for *_, result in rows]
    columns = {
        "beta": tuple(beta for beta, *_ in rows),
        "cores": tuple(n for _, n, *_ in rows),
        "exact cost": tuple(row.get("cost") or nan for _, _, row, _ in rows),
        "simulated cost": tuple(cost.mean for cost in costs),
        "low": tuple(map(low, costs)),
        "high": tuple(map(high, costs)),
        "effective load": tuple(row["effective_load"] for _, _, row, _ in rows),
        "simulated effective load": tuple(result["effective_load"] for *_, result in rows),
        "jobs simulated": tuple(result["jobs"] for *_, result in rows),
    }
    return Table("fwcam-costs", "Exact and simulated costs (95 %)", columns)
