"""Verdicts of e15_few_cores: what its numbers bear out."""

from __future__ import annotations

from itertools import groupby, pairwise
from typing import TYPE_CHECKING

from malleable.paper.contracts import Verdict
from malleable.paper.experiments.e15_few_cores.held_out import PAIRS
from malleable.paper.experiments.e15_few_cores.readings import (
    IMPROVED,
    TRUSTING,
    WHAM,
    Point,
    extrapolated,
    mean_gain,
)
from malleable.paper.experiments.e15_few_cores.systems import (
    BLIND_STUDY,
    DIGITS,
    LAST_DIGIT,
    SIZED_STUDY,
    WORKLOADS,
)
from malleable.paper.experiments.shared.paired_gains import Gain, together

if TYPE_CHECKING:
    from malleable.paper.experiments.e15_few_cores.cells import Where

CLOSE = 0.1
"""Per cent above the optimum that count as next to nothing."""
SAME_TERM = {"quick": 0.1, "normal": 0.02, "full": 0.01}
"""How far exact terms, extrapolated from systems of an effort's size, may be from the 1/n coefficients."""
NEAR = 0.02
"""How far from V* the cost on the most cores may be, in normal runs; it falls as 1/n."""
SHARE, UP_TO = 0.8, 0.7
"""Of the gains of the study that must be reached for sure with sizes known, and up to which load."""


def near_optimal(points: list[Point]) -> Verdict:
    """The improvement must be next to optimal in every setting, and WHAM must not."""
    worst, careful = (max(points, key=lambda p: p.gap(policy)) for policy in (TRUSTING, IMPROVED))
    text = (
        f"largest gap {worst.gap(TRUSTING):.3f} % ({worst.place}), where WHAM has {worst.gap(WHAM):.2f} %; "
    )
    text += f"WHAM at most {max(p.gap(WHAM) for p in points):.1f} %; ready for a load 25 % higher, "
    text += f"wham-improved has {careful.gap(IMPROVED):.2f} % at most ({careful.place})"
    statement = (
        "On small systems wham-improved, if the load is the one told (headroom=1), is within "
        f"{CLOSE} % of the best policy that is blind to sizes"
    )
    return Verdict(statement, worst.gap(TRUSTING) <= CLOSE, text)


def as_in_the_study(points: list[Point]) -> Verdict:
    """WHAM's gaps to the digits of the study; the improvement's no larger."""
    off, texts = [], []
    for point in points:
        known = BLIND_STUDY.get(point.where)
        if known is not None:
            ours, fitted = point.gap(WHAM), point.gap(TRUSTING)
            same = abs(ours - known.wham) <= DIGITS.get(point.where, LAST_DIGIT)
            off.append(not (same and fitted <= known.fitted))
            texts.append(f"{ours:.2f} and {fitted:.2f} (study {known.wham:g}, {known.fitted:g})")
    statement = (
        "WHAM's gaps are those of the study, with headroom=1 wham-improved's are no larger than its fit's"
    )
    return Verdict(statement, not any(off) if off else None, "; ".join(texts) or "no setting of the study")


def terms_agree(terms: dict[str, list[Point]], effort: str) -> Verdict:
    """Exact chains on many cores against both coefficients."""
    off, texts = [], []
    for name, points in terms.items():
        last = points[-1].value
        for which, term in (("optimum", "best term"), ("wham", "wham term")):
            off.append(abs(extrapolated(points, which) / last[term] - 1.0))
            word = "best" if which == "optimum" else "WHAM"
            texts.append(
                f"{WORKLOADS[name][0]}, {word}: {extrapolated(points, which):.4f}, theory {last[term]:.4f}"
            )
    statement = f"Exact chains extrapolate to both 1/n coefficients within {SAME_TERM[effort]:.0%}"
    return Verdict(statement, max(off) <= SAME_TERM[effort], f"worst {max(off):.2%}; " + "; ".join(texts))


def gains_on_average(pair: str, gains: list[Gain], stayed: int) -> Verdict:
    """The mean over the held-out workloads must be below 0 for sure."""
    mean = mean_gain(gains)
    statement = f"On held-out workloads {PAIRS[pair].policy} costs less than {PAIRS[pair].base} on average"
    text = (
        f"{len(gains)} workloads: mean {mean.mean:+.2%} ± {mean.half_width:.2%}, best "
        f"{min(one.of.mean for one in gains):+.1%}; steps back on {stayed}"
    )
    return Verdict(statement, True if mean.high < 0.0 else False if mean.low > 0.0 else None, text)


def to_the_bound(points: list[Point], *, far: bool) -> Verdict:
    """Cost over V* must fall with n, to next to nothing."""
    fell, ends, texts = [], [], []
    for name, group in groupby(points, key=lambda p: p.where[0]):
        mine = list(group)
        gaps = [p.value["results"][IMPROVED]["gap"] for p in mine]
        fell.append(all(b < a for a, b in pairwise(gaps)))
        ends.append(gaps[-1])
        wham = mine[-1].value["results"][WHAM]["gap"]
        texts.append(f"{WORKLOADS[name][0]}: {gaps[-1]:+.3%} at n = {mine[-1].where[1]} (WHAM {wham:+.3%})")
    statement = "As n grows the cost of wham-improved falls towards the lower bound V*"
    holds = all(fell) and (not far or max(ends) <= NEAR)
    return Verdict(statement, holds, "; ".join(texts))


def stays_stable(points: list[Point]) -> Verdict:
    """No policy may lose its steady state as the load rises."""
    lost = [p for p in points if not all(r["stable"] for r in p.value["results"].values())]
    highest = max(p.where[2] for p in points)
    text = f"{len(points)} runs up to ρ = {highest:g}"
    text += f"; without a steady state: {'; '.join(p.place for p in lost)}" if lost else ", all steady"
    return Verdict("Both policies are stable at every load that was tried", not lost, text)


def gains_of_the_study(gains: dict[Where, Gain]) -> Verdict:
    """With sizes known: a gain for sure, of at least a share of the study's, but for high loads."""
    statement = f"With sizes known the gains of the study up to ρ = {UP_TO} are reached to {SHARE:.0%}"
    gains = {where: one for where, one in gains.items() if where[2] <= UP_TO}
    if not gains:
        return Verdict(statement, None, "not simulated at this effort")
    known = together(list(gains.values()))
    aims = [SIZED_STUDY[where] / 100.0 for where in gains]
    short = [e.low > SHARE * aim for e, aim in zip(known, aims, strict=True)]
    sure = [e.high < SHARE * aim for e, aim in zip(known, aims, strict=True)]
    rows = zip(gains.values(), known, aims, strict=True)
    text = "; ".join(f"{g.name}: {e.mean:+.2%} ± {e.half_width:.2%} (study {a:+.2%})" for g, e, a in rows)
    return Verdict(statement, False if any(short) else True if all(sure) else None, text)
