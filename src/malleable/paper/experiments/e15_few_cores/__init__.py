"""Better than WHAM on few cores: improved policies beside the optimum, held-out workloads, the limit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from malleable.paper.contracts import Effort, Findings
from malleable.paper.experiments.e15_few_cores import figures as shown
from malleable.paper.experiments.e15_few_cores import readings as read
from malleable.paper.experiments.e15_few_cores import verdicts as say
from malleable.paper.experiments.e15_few_cores.cells import LIMITS, ORDERS, WORKLOADS_HELD_OUT, cells
from malleable.paper.experiments.e15_few_cores.held_out import HELD_OUT, PAIRS
from malleable.paper.experiments.e15_few_cores.systems import WORKLOADS
from malleable.paper.experiments.shared.paired_gains import NEGLIGIBLE, gains_table, never_worse

if TYPE_CHECKING:
    from malleable.paper.contracts import Values

__all__ = ["CHOICES", "cells", "findings"]
CHOICES = {
    "weights": "k^0.5 with cost 0.4 and Amdahl 0.1 with cost 3, equal rates, mean sizes 1",
    "short and long": "two classes alike but for mean size (0.05 and 1), k^0.8, c = 1, each half of the load",
    "four": "k^0.4, k^0.8, Amdahl 0.1 and 0.3; mean sizes 1, 0.6, 1.5, 0.9; costs 0.4, 1, 1.5, 3",
    "held out": (
        f"seeds from {HELD_OUT}: 2 to 6 classes, n = 3 to 64, ρ = 0.3 to 0.95; exponential, hyperexponential "
        "or lognormal sizes"
    ),
    "1/n terms": ", ".join(f"{WORKLOADS[name][0]} at ρ = {load:g}" for name, load in ORDERS.items()),
    "many cores": ", ".join(f"{WORKLOADS[name][0]} at ρ = {load:g}" for name, load in LIMITS.items()),
    "comparisons": "on the same jobs; intervals of the paired differences; 99 % for all of a kind together",
}


def findings(effort: Effort, values: Values) -> Findings:
    """Gaps, terms, gains, limits, and what they say."""
    gaps, terms = read.gap_points(effort, values), read.order_points(effort, values)
    held_out = {pair: read.held_out_gains(effort, pair, values) for pair in ("blind", "sized")}
    limits = read.limit_points(effort, values)
    loads = {pair: read.load_points(effort, pair, values) for pair in ("blind", "sized")}
    study = read.study_gains(effort, values)
    verdicts = [say.near_optimal(gaps), say.as_in_the_study(gaps), say.terms_agree(terms, effort.name)]
    for pair, gains in held_out.items():
        verdicts.append(say.gains_on_average(pair, gains, read.stepped_back(effort, pair, values)))
        statement = f"{PAIRS[pair].policy} is on none of them dearer by more than {NEGLIGIBLE:.2%}"
        verdicts.append(never_worse(statement, gains))
    verdicts.append(say.gains_of_the_study(study))
    verdicts.append(say.to_the_bound(limits, far=not effort.quick))
    verdicts.append(say.stays_stable([point for points in loads.values() for point in points]))
    tables = [shown.gaps_table(gaps)]
    for pair, gains in held_out.items():
        title = f"{PAIRS[pair].policy} relative to {PAIRS[pair].base} on held-out workloads"
        tables.append(gains_table(f"few-cores-held-out-{pair}", title, gains))
    if study:
        title = "wham-fitted:headroom=1 relative to wham-discounted on the systems of the study"
        tables.append(gains_table("few-cores-study", title, study.values()))
    return Findings(
        title="Better than WHAM on few cores",
        source="beyond the paper",
        statement=(
            "WHAM is optimal as the number of cores grows. On 4 to 64 cores, with classes of unequal weight "
            "or size, the best policy that is blind to sizes costs 1 to 14 % less. `wham-improved` is WHAM "
            "after a few steps of policy improvement with a fitted value function; `wham-fitted` improves "
            "`wham-discounted` likewise, for sizes that are known. How near do they come to the optimum, do "
            "they ever lose on workloads that nothing was chosen on, and what becomes of them on many cores "
            "and at high loads?"
        ),
        figures=(
            shown.gaps_figure(gaps),
            shown.terms_figure(terms),
            shown.held_out_figure(held_out),
            shown.limits_figure(limits, loads),
        ),
        tables=tuple(tables),
        verdicts=tuple(verdicts),
        remarks=(
            (
                "The held-out workloads are drawn from seeds that no design run has used. "
                f"{WORKLOADS_HELD_OUT['full'][0]} of each kind are compared with `--full`; fewer otherwise."
            ),
            (
                "Where a trial sees no gain beyond doubt a policy steps back to the one that it improves. "
                "The difference is then 0 by construction, and nothing is simulated."
            ),
            (
                "`wham-fitted` as it is steps back where it would lose if the load were 25 % higher or lower "
                "than told, often at loads above 0.7; `wham-improved` is then fitted to a load between. The "
                "study had no such guard, so its tables are compared with the option `headroom=1`."
            ),
            (
                "On the paper's own workload nothing is to be gained without knowing sizes: `wham-improved` "
                "stays with WHAM there, on any number of cores."
            ),
        ),
    )
