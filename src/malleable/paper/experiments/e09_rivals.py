"""Which of the rivals come close to the lower bound as the number of cores grows? None, says the paper."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any

from malleable.contracts import Policy
from malleable.model import paper_workload
from malleable.paper.contracts import Cell, Effort, Findings, Verdict
from malleable.paper.experiments import _evidence as ev
from malleable.paper.experiments._rivals import (
    FALLS,
    PLANNED,
    POLICIES,
    START,
    SWEEPS,
    TUNED_CORES,
    WHAM,
    Rival,
    figure,
    limits_table,
    sweep_figure,
    sweep_table,
    table,
)
from malleable.paper.simulation_cells import compared
from malleable.theory.meanfield import mean_field
from malleable.theory.relaxed import bound

if TYPE_CHECKING:
    from malleable.paper.contracts import Values

LOAD = 0.25
FIXED_POINTS = ("wham", "equi", "greedy", "greedy:weight=mu", "greedy:weight=c", "greedy:weight=cmu")
"""Policies that look at class counts alone, so that their limits are known."""
GROUPS: dict[str, tuple[str, ...]] = {
    "counts": ("equi", "greedy", PLANNED),
    "weights": ("greedy:weight=mu", "greedy:weight=c", "greedy:weight=cmu"),
    "jobs": ("knee", "hesrpt", "lpf"),
    "sizes": ("greedy:weight=c/x",),
    "hell": ("hell",),
    "pollux": ("pollux",),
    "sia": ("sia",),
}
"""Policies of about the same speed, simulated together with WHAM on the same jobs."""
SPEED = {
    "counts": 4e6, "weights": 3e5, "jobs": 2e5, "sizes": 4e4, "hell": 5e4, "pollux": 6e3, "sia": 3e4,
    "all": 1e5,
}  # fmt: skip
"""Jobs a second, roughly, on 64 cores."""
JOBS = {
    "quick": {"all": 2_000},
    "normal": {
        "counts": 400_000, "weights": 40_000, "jobs": 40_000, "sizes": 8_000, "hell": 6_000,
        "pollux": 4_000, "sia": 8_000,
    },
    "full": {
        "counts": 10_000_000, "weights": 1_000_000, "jobs": 1_000_000, "sizes": 200_000, "hell": 20_000,
        "pollux": 40_000, "sia": 100_000,
    },
}  # fmt: skip
"""Jobs of a simulation, at least 30 a core; HELL is unstable, so long runs tell nothing new."""
CORES = {"quick": (16, 64), "normal": (16, 32, 64, 128, 256), "full": (16, 32, 64, 128, 256, 512)}
MORE_CORES = {"quick": (), "normal": (1024, 4096), "full": (1024, 4096, 16384)}
"""Numbers of cores for policies that look at counts alone, which are fast."""
SEED = 9
MARGIN = 0.002
"""Share of V* above which a limit must lie, for sure, to count as not optimal."""
CHOICES = {
    "n": "powers of 2 from 16 to 256 (full: 512); policies that look at counts alone also up to 4096",
    "load": "0.25, as in the paper's figures",
    "run length": "at least 30 jobs a core; slow policies have the shorter runs, and wider intervals",
    "FW-CAM": "β = 0.8",
    "KNEE": "α = 0.02 mean sizes (0.008) at every n; the sweep shows others",
    "LPF": "κ of a class is the width at which cores are half used, s(κ) = κ/2; the sweep shows others",
    "A-heSRPT": "one exponent, fitted to all speedups, weighted by load; holding costs are the weights",
    "Pollux, Sia": (
        "one resource; decide every 0.01 mean sizes and lose 0.005 to a resize, in place of 60 and 30 seconds"
    ),
    "not optimal": (
        "the paired difference from WHAM does not fall with n, and its limit lies above "
        f"{MARGIN:.1%} of V* with 99.9 % confidence, by a + b/n + c/n² fitted to n ≥ {START}; or the policy "
        "is unstable on the most cores"
    ),
}


def cells(effort: Effort) -> list[Cell]:
    """Simulations by n and speed, each with WHAM on the same jobs; sweeps; limits from formulas."""
    made = [Cell("limits", limits, {}, 0.3)]
    for group, policies in _groups(effort).items():
        for n in _cores(effort, group):
            jobs = max(JOBS[effort.name][group], 30 * n)
            slower = 1.0 if group == "counts" else max(1.0, n / 128.0)
            weight = len(policies) * (0.12 + jobs * slower / SPEED[group])
            run = {"cores": n, "load": LOAD, "seed": SEED, "jobs": jobs}
            made.append(Cell(f"{group}-{n}", compared, {"policies": [WHAM, *policies], **run}, weight))
    for policy, variants in SWEEPS.items() if not effort.quick else ():
        jobs = JOBS[effort.name]["jobs" if policy in GROUPS["jobs"] else policy]
        run = {"cores": TUNED_CORES, "load": LOAD, "seed": SEED, "jobs": max(jobs // 4, 2_000)}
        weight = len(variants) * 0.5
        made.append(Cell(f"sweep-{policy}", compared, {"policies": [WHAM, *variants], **run}, weight))
    return made


def _groups(effort: Effort) -> dict[str, tuple[str, ...]]:
    """In a quick look all runs are short, so all policies share one."""
    return {"all": tuple(p for ps in GROUPS.values() for p in ps)} if effort.quick else GROUPS


def _cores(effort: Effort, group: str) -> tuple[int, ...]:
    return (*CORES[effort.name], *(MORE_CORES[effort.name] if group == "counts" else ()))


def limits() -> dict[str, Any]:
    """The bound, and the mean-field limits of the policies that have one."""
    n = 1024
    workload = paper_workload(n, LOAD)
    costs = {p: mean_field(workload, n, Policy.of(p), starts=0).cost for p in FIXED_POINTS}
    # One job of class 2 at a time, on all cores: they keep up while load_2 ≤ s_2(n) = √n.
    alone = (n / float(workload.loads[1])) ** 2
    return {"bound": bound(workload, n).bound, "crowded": alone, **costs}


def findings(effort: Effort, values: Values) -> Findings:
    """One table, one plot, and a verdict on every rival."""
    lowest = values["limits"]["bound"]
    rivals = {p: _rival(p, group, effort, values) for group, ps in _groups(effort).items() for p in ps}
    wham = _wham(effort, values)
    return Findings(
        title="Rivals against the lower bound",
        source="Section: Comparison to heuristics",
        statement=(
            "A policy is mean field optimal if its cost tends to the lower bound V* as cores and arrival "
            "rates grow together. The paper says that EQUI, GREEDY, HELL, KNEE and A-heSRPT can easily be "
            "shown not to be, and shows it for the first two. Here all of them, the schedulers Pollux and "
            "Sia reduced to one resource, and LPF, are run on the same jobs as WHAM, on more and more cores. "
            "What counts is whether the share by which they cost more than V* is left when WHAM's has gone."
        ),
        figures=(figure(values["limits"], wham, rivals), *sweep_figure(values, lowest)),
        tables=(
            table(lowest, wham, rivals),
            limits_table(values["limits"], rivals),
            *sweep_table(values, lowest),
        ),
        verdicts=(
            _wham_verdict(wham, lowest),
            *(_verdict(p, rival, values["limits"]) for p, rival in rivals.items() if p != PLANNED),
            *_tuned_verdicts(values),
        ),
        remarks=(_hell(values["limits"]), *REMARKS),
    )


def _hell(known: Any) -> str:
    return (
        "HELL gives a job of class 2, with s = √k, every core there is: all widths have the same merit, and "
        "ties go to the widest. On n cores such a job runs only √n times as fast, so beyond "
        f"{known['crowded']:.0f} cores work of class 2 alone arrives faster than it is done, at load 0.25."
    )


REMARKS = (
    ("GREEDY with weights c/x gives very many cores to jobs about to finish. It does worse on more cores."),
    (
        "Limits of policies that look at class counts are those of their mean-field equations; for the "
        "others there is only the extrapolation; its interval presumes that a + b/n + c/n² is right. For "
        "FW-CAM it is not: its gap falls as a power of n, slowly, so that the difference from WHAM tells "
        "nothing about the limit. Of the rivals, that difference grows with n."
    ),
    (
        "Pollux and Sia pay for resizing and decide only now and then; the sweep shows how much of the gap "
        "that is."
    ),
)


def _rival(policy: str, group: str, effort: Effort, values: Values) -> Rival:
    cores = _cores(effort, group)
    return Rival(cores, [values[f"{group}-{n}"] for n in cores], policy)


def _wham(effort: Effort, values: Values) -> Rival:
    """WHAM, from its longest runs."""
    group = next(iter(_groups(effort)))
    cores = _cores(effort, group)
    return Rival(cores, [values[f"{group}-{n}"] for n in cores], WHAM)


def _wham_verdict(wham: Rival, lowest: float) -> Verdict:
    found, points = ev.limit(wham.cores, wham.costs, 64)
    last = wham.ratios(lowest)[-1]
    note = f"{points} points; ratio {last.mean:.5f} ± {last.half_width:.5f} on {wham.cores[-1]} cores"
    return ev.tends_to("WHAM's cost over V* tends to 1", found, lowest, 0.02, note)


def _verdict(policy: str, rival: Rival, known: Any) -> Verdict:
    """Not optimal: unstable on many cores, or above WHAM by a margin that does not vanish."""
    name, lowest = POLICIES[policy][0], known["bound"]
    statement = f"{name} is not mean field optimal"
    if not rival.stable[-1]:
        good = [n for n, ok in zip(rival.cores, rival.stable, strict=True) if ok]
        least = f"stable up to {max(good)} cores only" if good else "stable on none of the numbers of cores"
        text = f"unstable on {rival.cores[-1]} cores, {least}: its cost grows without bound"
        return Verdict(statement, True if rival.results[-1] is not None else None, text)
    ratio, apart, margin = rival.ratios(lowest)[-1], rival.differences[-1], rival.margin(lowest)
    text = (
        f"ratio {ratio.mean:.4f} ± {ratio.half_width:.4f} on {rival.cores[-1]} cores, there "
        f"{apart.mean / lowest:.2%} ± {apart.half_width / lowest:.2%} of V* above WHAM"
    )
    if policy in known:
        limit = known[policy] / lowest
        sure = apart.low > 0.0 and limit > 1.0 + MARGIN
        text += f"; its limit is {limit:.6f}"
        return Verdict(statement, True if sure else False if limit <= 1.0 + MARGIN else None, text)
    if not isfinite(margin.half_width):
        return Verdict(statement, None, f"{text}; too few points for a limit")
    growth = rival.growth
    text += (
        f", which goes as n to the power {growth.mean:+.2f} ± {growth.half_width:.2f}; extrapolated "
        f"{margin.mean:.2%} ± {margin.half_width:.2%} (99.9 %)"
    )
    if margin.high <= MARGIN:
        return Verdict(statement, False, text)
    sure = apart.low > 0.0 and margin.low > MARGIN and growth.low > FALLS
    return Verdict(statement, sure or None, text)


def _tuned_verdicts(values: Values) -> tuple[Verdict, ...]:
    """Whether any setting of a rival's parameters does as well as WHAM."""
    made = []
    for policy, variants in SWEEPS.items():
        found = values.get(f"sweep-{policy}")
        if found is None:
            continue
        apart = {v: ev.estimate(found["differences"][v]) for v in variants if found["results"][v]["stable"]}
        best = min(apart, key=lambda v: apart[v].mean)
        cost = found["results"][WHAM]["cost"]["mean"]
        text = (
            f"best of {len(variants)} on {TUNED_CORES} cores: {best}, {apart[best].mean / cost:.2%} ± "
            f"{apart[best].half_width / cost:.2%} above WHAM"
        )
        least = min(d.low for d in apart.values())
        holds = True if least > 0.0 else False if min(d.high for d in apart.values()) < 0.0 else None
        made.append(Verdict(f"No setting of {POLICIES[policy][0]} does as well as WHAM", holds, text))
    return tuple(made)
