"""Verdicts of e14_map_of_policies: what its numbers bear out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from malleable.paper.contracts import Verdict
from malleable.paper.experiments.e14_map_of_policies.readings import RIVALS, Row, quantile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from malleable.statistics.intervals import Estimate

MOSTLY = 0.9
"""Share of the workloads that makes a winner."""
LITTLE = 0.05
"""Share of its cost that WHAM may lose to a rival."""
HEAVY = 0.5
"""Loads from which on WHAM should hardly ever be beaten, and how rarely that is."""
HARDLY = 0.01
NEAR, NEARLY_ALL = 0.01, 0.95
"""By how much the refined mean field may miss, and on how many of the workloads it may not."""
_REFINED = (
    f"Where it applies, the refined mean field gives WHAM's cost to {NEAR:.0%} on {NEARLY_ALL:.0%} of "
    "workloads"
)


def mostly_best(rows: Sequence[Row]) -> Verdict:
    """Whether WHAM is the best of the three on most workloads, those left open counted for neither side."""
    wins = sum(row.wins is True for row in rows)
    loses = sum(row.wins is False for row in rows)
    share = wins / len(rows)
    text = f"best on {wins} of {len(rows)} workloads ({share:.1%}), beaten on {loses}, open on the rest"
    holds = True if share >= MOSTLY else False if 1.0 - loses / len(rows) < MOSTLY else None
    return Verdict(f"WHAM is cheaper than EQUI and GREEDY on {MOSTLY:.0%} of random workloads", holds, text)


def loses_little(rows: Sequence[Row]) -> Verdict:
    """Whether WHAM's loss to the better rival stays below a limit on every workload."""
    worst = min(rows, key=lambda row: row.lead)
    rival = min(RIVALS, key=lambda name: worst.shares[name].mean)
    beyond = [row for row in rows if any(row.shares[rival].high < -LITTLE for rival in RIVALS)]
    within = all(row.shares[rival].low >= -LITTLE for row in rows for rival in RIVALS)
    share = worst.shares[rival]
    text = (
        f"most on {worst.name}, where {rival.upper()} costs {-share.mean:.2%} ± {share.half_width:.2%} less "
        f"(load {worst.load:.2f}, SCV {worst.scv:g}, holding costs up to {worst.spread:.3g} to 1, "
        f"{worst.speedups}); beyond the limit on {len(beyond)} of {len(rows)}"
    )
    holds = False if beyond else True if within else None
    return Verdict(f"Where a rival is cheaper, it is by at most {LITTLE:.0%}", holds, text)


def hardly_beaten(rows: Sequence[Row]) -> Verdict:
    """Whether losses are a matter of low loads."""
    heavy = [row for row in rows if row.load >= HEAVY]
    loses = sum(row.wins is False for row in heavy)
    open_ = sum(row.wins is None for row in heavy)
    text = f"beaten on {loses} of {len(heavy)} workloads, {open_} open"
    limit = HARDLY * len(heavy)
    holds = False if loses > limit else True if loses + open_ <= limit else None
    return Verdict(
        f"At loads of {HEAVY:g} and more it is beaten on {HARDLY:.0%} of them at most", holds, text
    )


def improved_helps(found: Sequence[tuple[str, float, float, Estimate]]) -> Verdict:
    """Whether the improved WHAM is never dearer than WHAM, although it looks at no sizes."""
    better = sum(share.high < 0.0 for *_, share in found)
    worse = [one for one in found if one[3].low > 0.0]
    most = max(found, key=lambda one: one[3].mean)
    least = min(found, key=lambda one: one[3].mean)
    text = (
        f"{len(found)} workloads with exponential sizes: cheaper on {better}, dearer on {len(worse)}; from "
        f"{least[3].mean:+.2%} ({least[0]}, load {least[2]:.2f}) to {most[3].mean:+.2%} ({most[0]}, load "
        f"{most[2]:.2f})"
    )
    sure = all(share.high <= 0.0 for *_, share in found)
    return Verdict(
        "The improved WHAM, blind to sizes, is never dearer than WHAM", False if worse else sure or None, text
    )


def refined_is_near(rows: Sequence[Row]) -> Verdict:
    """Whether the refined mean field gives WHAM's cost on nearly all workloads that it says it applies to."""
    told = [(row, row.errors["wham"]) for row in rows if "wham" in row.errors]
    applies = [(row, error) for row, (error, fits) in told if fits]
    if not applies:
        return Verdict(_REFINED, None, f"it applies to none of {len(told)} workloads")
    near = sum(abs(error) <= NEAR for _, error in applies)
    sure = sum(abs(error) > NEAR + 2.0 * row.half_width for row, error in applies)
    worst, most = max(applies, key=lambda one: abs(one[1]))
    text = (
        f"it applies to {len(applies)} of {len(told)}; within {NEAR:.0%} on {near} "
        f"({near / len(applies):.1%}), beyond it and the noise on {sure}; median "
        f"{quantile([abs(e) for _, e in applies], 0.5):.2%}, most {most:+.1%} on {worst.name}"
    )
    holds = near >= NEARLY_ALL * len(applies)
    decided = holds or sure > (1.0 - NEARLY_ALL) * len(applies)
    return Verdict(_REFINED, holds if decided else None, text)
