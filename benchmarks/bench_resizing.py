"""What resizes cost each policy: pauses and lost work, in mean sizes, on the paper's workload.

All policies see the same jobs. Whether WHAM that moves a job only when that pays (`wham-steady`) is ever
worse than the better of WHAM and FW-CAM is decided by the paired difference from the better one and its 95 %
interval. A policy that has no steady state at some cost of a resize is not run at higher ones.

    python -m benchmarks.bench_resizing          prints the table of the documentation, as Markdown
"""

import sys
from collections.abc import Iterator
from dataclasses import replace

from malleable import MalleableError, compare, paper_workload
from malleable.contracts import Policy
from malleable.model import Workload
from malleable.results import Comparison, Result

JOBS = 20_000
SEED = 20_261_116
"""One that nothing was chosen on."""
COSTS = (1e-4, 1e-3, 1e-2, 5e-2, 0.2)
"""Of a resize, in mean sizes."""
SETTINGS = [("pause", n, load) for n in (16, 64) for load in (0.5, 0.7)] + [("work", 64, 0.5)]
PLAN = ("fw-cam", "fw-cam-repaired", "fw-cam-repaired:beta=0.6")
"""Fixed widths: the first of these that has a plan."""
POLICIES = ("wham", "wham-integer", "wham-steady", "equi", "pollux")
GROWS, NONE = "grows", "–"


def costly(what: str, cost: float) -> Workload:
    """The paper's workload with a pause, or work lost, of `cost` mean sizes at every resize."""
    plain = paper_workload()
    lost = {what: cost * plain.total_load / plain.total_rate}
    return Workload("paper", tuple(replace(one, resize=lost) for one in plain.classes))


def planned(workload: Workload, cores: int) -> str | None:
    """The policy of fixed widths that has a plan."""
    for name in PLAN:
        try:
            Policy.of(name).plan(workload, cores)  # type: ignore[attr-defined]
        except MalleableError:
            continue
        return name
    return None


def paired(results: tuple[Result, ...], policy: str, baseline: str) -> str:
    """The difference of two policies on the same jobs; a loss that is significant is said."""
    both = [result for result in results if result.policy in {policy, baseline}]
    found = Comparison.of(both, baseline).differences[0]
    text = f"{found.mean:+.2g} ± {(found.high - found.low) / 2.0:.1g}"
    return f"{text}, **worse**" if found.significant and found.mean > 0.0 else text


def shown(result: Result) -> str:
    """The cost with its interval, if there is a steady state."""
    return f"{result.cost.mean:.4f} ± {result.cost.half_width:.1g}" if result.stable else GROWS


def described(what: str, cores: int, load: float, cost: float, alive: set[str]) -> dict:
    """One row: the cost of each policy; policies that have no steady state leave `alive`."""
    workload = costly(what, cost)
    fixed = planned(workload.at(cores, load), cores)
    names = [name for name in (*POLICIES, *([fixed] if fixed else [])) if name in alive or name == fixed]
    results = compare(workload, cores, names, load=load, jobs=JOBS, seed=SEED).results
    steady = [result for result in results if result.stable]
    alive -= {result.policy for result in results} - {result.policy for result in steady}
    found = {result.policy: shown(result) for result in results}
    rivals = [r for r in steady if r.policy in {"wham", fixed}]
    best = min(rivals, key=lambda r: r.cost.mean).policy if rivals else None
    row = {"n": cores, "load": load, what: f"{cost:g}"}
    row |= {name: found.get(name, GROWS) for name in POLICIES} | {"fixed widths": found.get(fixed, NONE)}
    known = best is not None and "wham-steady" in {r.policy for r in steady}
    return row | {
        "steady − better": f"{paired(steady, 'wham-steady', best)} ({best})" if known else NONE,
        "steady − integer": paired(steady, "wham-steady", "wham-integer") if known else NONE,
    }


def rows() -> Iterator[tuple[str, dict]]:
    """What costs, and the row, one setting after the other."""
    for what, cores, load in SETTINGS:
        alive = set(POLICIES)
        for cost in COSTS:
            yield what, described(what, cores, load, cost, alive)


def run() -> list[dict]:
    return [{"of": what, **_renamed(row, what, "cost")} for what, row in rows()]


def _renamed(row: dict, key: str, name: str) -> dict:
    return {name if found == key else found: value for found, value in row.items()}


def main() -> None:
    heading = None
    for what, row in rows():
        if heading != what:
            heading = what
            print(f"\n| {' | '.join(row)} |\n|{'---|' * len(row)}")
        print(f"| {' | '.join(map(str, row.values()))} |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
