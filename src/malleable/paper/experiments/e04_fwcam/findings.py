"""What the cells of e04_fwcam show: figures, tables and verdicts."""

from __future__ import annotations

from math import inf, log, nan
from typing import TYPE_CHECKING, Any

import numpy as np

from malleable.paper.contracts import Effort, Findings, Table, Verdict
from malleable.paper.experiments.e04_fwcam.cells import BETAS, LOAD, NEAR, simulated_settings
from malleable.paper.experiments.shared import evidence as ev
from malleable.paper.experiments.shared.columns import interval_columns
from malleable.paper.experiments.shared.comparisons import Compared
from malleable.paper.experiments.shared.curves import positive
from malleable.paper.experiments.shared.fw_cam_pools import cores_of_the_queueing_bound
from malleable.plots.figures import Axis, Figure, Panel, Series
from malleable.results.class_result import read_interval

if TYPE_CHECKING:
    from collections.abc import Iterator

    from malleable.paper.contracts import Values

    Runs = list[tuple[float, int, Any, Any]]

SHOWN = 0.8
"""The β whose classes are drawn."""
CHOICES = {
    "beta": "0.76, 0.8 and 0.9: near the least that the paper allows, the package's default, and a large one",
    "n": "powers of 2: widths to 2^50, waiting to 4096 where M/PH/c is quick enough, simulations 16 to 16384",
    "run length": "until the 95 % interval of the cost is ±1 % (±0.05 % at full effort)",
    "warm-up": "found by MSER-5 and left out",
    "slots": "rounded down after adding 1e-9, so that a slot that fits up to rounding counts",
    "agreement": (
        "all exact values in intervals of 99.9 % for all of them together, or within half the precision"
    ),
}


def findings(effort: Effort, values: Values) -> Findings:
    """The figure, the tables, and what they say."""
    runs = list(comparisons(effort, values))
    cases, classes = list(cases_of(runs)), list(class_cases(runs))
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
        figures=(figure(values, runs),),
        tables=(widths_table(values), queues_table(values), simulated_table(runs)),
        verdicts=(
            *(widths_converge(beta, values) for beta in BETAS),
            effective_load_verdict(values),
            slots_verdict(values),
            *(no_queueing(beta, values) for beta in BETAS),
            ev.agreement("Simulated costs agree with Erlang C and M/PH/c", cases, near),
            ev.agreement("Simulated response times of all classes agree with them, too", classes, near),
        ),
        remarks=(
            (
                "The bound of Li and Goldberg that the paper's proof uses says nothing here before "
                + ", ".join(
                    f"{cores_of_the_queueing_bound(beta, LOAD):.0e} cores at β = {beta}" for beta in BETAS
                )
                + ". The queues are short long before."
            ),
            (
                "Waiting does not fall at every step: slots are whole, and what rounding down takes away "
                "weighs most when there are few."
            ),
            "A class of hyperexponential sizes with too many slots for M/PH/c has no exact waiting time.",
        ),
    )


def plans(beta: float, values: Values) -> list[dict[str, Any]]:
    """The plans with this β that are stable."""
    return [row for row in values[f"plans-{beta}"] if row["status"] == "stable"]


def distances(beta: float, values: Values) -> tuple[list[int], np.ndarray[Any, Any]]:
    """Cores, and how far each width is from its limit, relative to it (plans, classes)."""
    rows, limits = plans(beta, values), np.array(values["relaxed"]["widths"])
    widths = np.array([[pool["width"] for pool in row["pools"]] for row in rows])
    return [row["cores"] for row in rows], np.abs(widths / limits - 1.0)


def comparisons(effort: Effort, values: Values) -> Iterator[tuple[float, int, Any, Any]]:
    """β, n, the plan and the simulation, where there is one."""
    rows = {(beta, row["cores"]): row for beta in BETAS for row in plans(beta, values)}
    for beta, n in simulated_settings(effort):
        result = Compared(values[f"fw-cam-{beta}-{n}"]).result(f"fw-cam:beta={beta}")
        if result is not None and (beta, n) in rows:
            yield beta, n, rows[beta, n], result


def cases_of(runs: Runs) -> Iterator[ev.Case]:
    """Planned and simulated costs, pair by pair."""
    for beta, n, row, result in runs:
        if row.get("cost") is not None:
            name = f"β = {beta} on {n} cores"
            yield ev.Case(name, read_interval(result["cost"]), result, row["cost"])


def class_cases(runs: Runs) -> Iterator[ev.Case]:
    """Planned and simulated waiting per class, pair by pair."""
    for beta, n, row, result in runs:
        for pool, found in zip(row["pools"], result["classes"], strict=True):
            if pool["waiting"] is not None:
                name = f"{pool['name']}, β = {beta} on {n} cores"
                exact = pool["service"] + pool["waiting"]
                yield ev.Case(name, read_interval(found["response_time"]), result, exact)


def figure(values: Values, runs: Runs) -> Figure:
    """Distances of the widths from their limit, and how few jobs wait."""
    names = values["relaxed"]["names"]
    cores, far = distances(SHOWN, values)
    widths = [Series(name, _floats(cores), tuple(far[:, i]), colour=i) for i, name in enumerate(names)]
    loads = [
        Series(
            f"β = {beta}",
            tuple(float(row["cores"]) for row in plans(beta, values)),
            tuple(row["effective_load"] for row in plans(beta, values)),
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
                tuple(_waits(values, runs)),
            ),
        ),
    )


def _waits(values: Values, runs: Runs) -> Iterator[Series]:
    for i, name in enumerate(values["relaxed"]["names"]):
        near = [row for row in plans(SHOWN, values) if row["cores"] <= NEAR[-1]]
        exact = tuple(row["pools"][i]["waiting"] or nan for row in near)
        yield Series(f"{name}, exact", tuple(float(row["cores"]) for row in near), exact, colour=i)
        points = [
            # The mean wait is the response time less the known service time.
            (n, read_interval(result["classes"][i]["response_time"]).shifted(-row["pools"][i]["service"]))
            for beta, n, row, result in runs
            if beta == SHOWN
        ]
        cores, waits = [float(n) for n, _ in points], positive(wait for _, wait in points)
        yield Series.of(f"{name}, simulated", cores, waits, "points", i)


def _floats(numbers: Any) -> tuple[float, ...]:
    return tuple(map(float, numbers))


def widths_table(values: Values) -> Table:
    """The planned widths."""
    rows = [row for beta in BETAS for row in plans(beta, values)]
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


def queues_table(values: Values) -> Table:
    """Load and waiting of every pool."""
    rows = [
        (beta, row["cores"], pool)
        for beta in BETAS
        for row in plans(beta, values)
        if row["cores"] <= NEAR[-1]
        for pool in row["pools"]
    ]
    keys = ("name", "width", "slots", "utilisation", "service", "waiting", "waiting_probability")
    columns = {"beta": tuple(r[0] for r in rows), "cores": tuple(r[1] for r in rows)}
    columns |= {key.replace("_", " "): tuple(r[2][key] for r in rows) for key in keys}
    return Table("fwcam-queues", "Exact queues by class", columns, shown=False)


def simulated_table(rows: Runs) -> Table:
    """Simulated costs."""
    costs = [read_interval(result["cost"]) for *_, result in rows]
    columns: dict[str, tuple[Any, ...]] = {
        "beta": tuple(beta for beta, *_ in rows),
        "cores": tuple(n for _, n, *_ in rows),
        "exact cost": tuple(row.get("cost") or nan for _, _, row, _ in rows),
        **interval_columns("simulated cost", costs),
        "effective load": tuple(row["effective_load"] for _, _, row, _ in rows),
        "simulated effective load": tuple(result["effective_load"] for *_, result in rows),
        "jobs simulated": tuple(result["jobs"] for *_, result in rows),
    }
    return Table("fwcam-costs", "Exact and simulated costs (95 %)", columns)


def widths_converge(beta: float, values: Values) -> Verdict:
    """The distance must fall at every step and end as the power β − 1 of n: slack is n^(β−1) of n."""
    cores, far = distances(beta, values)
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


def effective_load_verdict(values: Values) -> Verdict:
    """It must be 1 − n^(β−1), which tends to 1."""
    rows = [row for beta in BETAS for row in plans(beta, values)]
    off = max(abs(row["effective_load"] - 1.0 + row["cores"] ** (row["beta"] - 1.0)) for row in rows)
    ends = ", ".join(f"{plans(b, values)[-1]['effective_load']:.5f} (β = {b})" for b in BETAS)
    rising = all(
        later["effective_load"] > earlier["effective_load"]
        for beta in BETAS
        for earlier, later in zip(plans(beta, values), plans(beta, values)[1:], strict=False)
    )
    text = f"equal to 1 − n^(β−1) up to {off:.1g}; on {rows[-1]['cores']:.2g} cores {ends}"
    return Verdict("The effective load is 1 − n^(β−1) and tends to 1", off < 1e-9 and rising, text)


def slots_verdict(values: Values) -> Verdict:
    """n_i' = ⌊busy_i/(1 − n^(β−1))⌋ up to 2^30 cores; beyond, rounding errors reach whole slots."""
    pools = [
        (pool["slots"], pool["busy"] / (1.0 - row["cores"] ** (row["beta"] - 1.0)))
        for beta in BETAS
        for row in plans(beta, values)
        if row["cores"] <= 2**30
        for pool in row["pools"]
    ]
    right = sum(-1.0 - 1e-9 * exact < slots - exact < 1e-6 + 1e-9 * exact for slots, exact in pools)
    statement = "Slots are ⌊(load_i/s_i(k_i))/(1 − n^(β−1))⌋"
    return Verdict(statement, right == len(pools), f"{right} of {len(pools)} numbers of slots")


def no_queueing(beta: float, values: Values) -> Verdict:
    """The mean wait of every class must fall as n grows, and so must its probability."""
    told, slopes = [], []
    for i, name in enumerate(values["relaxed"]["names"]):
        known = [(r["cores"], r["pools"][i]) for r in plans(beta, values) if r["pools"][i]["waiting"]]
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
