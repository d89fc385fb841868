"""A plan in sentences, the answer first."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from malleable.planning.reasons import cores_of, number
from malleable.planning.targets import MONEY, SAVING

if TYPE_CHECKING:
    from malleable.planning.plan import Plan
    from malleable.planning.search import Meter, Reading
    from malleable.planning.targets import Target

PRICED = ("one more saves", "money per hour")
"""The metrics of plans by prices."""


def words(made: Plan, meter: Meter, target: Target, present: int | None) -> tuple[str, ...]:
    """The plan in sentences."""
    answers = {SAVING: _worth, MONEY: _least_money}
    said = [answers.get(target.metric, _answer)(made, meter, target)]
    if made.status == "interrupted":
        said.append("The search was interrupted: this is what is known so far.")
    if present is not None and made.cores is not None:
        said.append(_beside(made, present))
    if made.others:
        needs = (f"{name} {'not met' if cores is None else cores}" for name, cores in made.others)
        said.append(f"Cores needed by policy: {', '.join(needs)}.")
    if made.certificate is not None:
        said.append(_certificate(made, target))
    if made.burst is not None:
        said.append(_rented(made))
    return tuple(said)


def _answer(made: Plan, meter: Meter, target: Target) -> str:
    if made.cores is None:
        return _unmet(made, meter)
    verb = "meets" if made.cores == 1 else "meet"
    good = _read(meter, made.cores)
    there = "" if good is None else f": {target.name} is {_shown(good)}"
    return f"{cores_of(made.cores)} {verb} {made.target} under {made.policy}{there}{_below(made, meter)}."


def _unmet(made: Plan, meter: Meter) -> str:
    """The answer where no number of cores is known to be enough."""
    if made.status == "interrupted":
        missed = max((n for n in meter.known if n <= (made.misses or 0)), default=0)
        return f"{made.policy} misses {made.target} on {cores_of(missed)}; more were not tried."
    nobody = made.certificate is not None and made.certificate[0] >= made.most
    who = "No policy meets" if nobody else f"{made.policy} does not meet"
    return f"{who} {made.target} on up to {cores_of(made.most)}."


def _least_money(made: Plan, meter: Meter, _: Target) -> str:
    """The answer where cores and given jobs have a price."""
    n = made.cores or 0
    best = _read(meter, n)
    if best is None:
        return f"{made.policy} cannot run these jobs on up to {cores_of(made.most)}."
    beside = (f"{r.value:.7g} on {m}" for m in (n - 1, n + 1) if (r := _read(meter, m)) is not None)
    return (
        f"{cores_of(n)} cost least under {made.policy}: {best.value:.7g} per hour for cores and jobs "
        f"({', '.join(beside)})."
    )


def _rented(made: Plan) -> str:
    burst = made.burst
    if burst is None:
        return ""
    if burst.hours == 0.0:
        return f"On {cores_of(made.cores or 0)} no hour is worth a rented core at {number(burst.price)}."
    return (
        f"For {number(burst.hours)} of {number(burst.span)} hours a core is worth more than "
        f"{number(burst.price)}: one rented for these saves at most {number(burst.saving)} beyond its price."
    )


def _worth(made: Plan, meter: Meter, _: Target) -> str:
    """The answer where a core has a price."""
    price = f"{number(made.core_price)} per hour"
    if made.cores is None and made.status == "interrupted":
        return f"On all numbers of cores that were tried one more saves more than the {price} that it costs."
    if made.cores is None:
        return f"Up to {cores_of(made.most)} every core saves more than the {price} that it costs."
    good = _read(meter, made.cores)
    saves = "" if good is None else f": one more would save {_shown(good)}"
    return (
        f"{cores_of(made.cores)} are worth their {price} under {made.policy}, and no more are"
        f"{saves}{_below(made, meter)}."
    )


def _below(made: Plan, meter: Meter) -> str:
    """What is known of fewer cores, and how sure all of it is."""
    n, misses = made.cores or 0, made.misses or 0
    if misses < 1:
        return ""
    bad = _read(meter, misses)
    below = f"on {misses} it is {_shown(bad)}" if bad is not None else f"{misses} are too few"
    close = "" if n - misses < 2 else f", {misses + 1} is too close to tell"
    if n - misses > 2:
        close = f", {misses + 1} to {n - 1} are too close to tell"
    if made.confidence is None:
        sure = "" if made.status == "interrupted" else ", as far as the runs can tell"
    else:
        sure = "" if made.confidence == 1.0 else f" ({made.confidence:.4g} confidence)"
    return f"; {below}{close}{sure}"


def _read(meter: Meter, cores: int) -> Reading | None:
    found = meter.known.get(cores)
    return found if found is not None and math.isfinite(found.value) else None


def _shown(reading: Reading) -> str:
    half = 0.5 * (reading.high - reading.low)
    return f"{number(reading.value)} ± {half:.2g}" if 0.0 < half < math.inf else number(reading.value)


def _beside(made: Plan, present: int) -> str:
    """What there is now, beside what is needed, or worth its price."""
    more, priced = (made.cores or 0) - present, made.metric in PRICED
    if more == 0:
        return f"There are {present} now: just enough."
    count = "1 more is" if more == 1 else f"{more} more are"
    if more > 0:
        return f"There are {present} now: {count} {'worth the price' if priced else 'needed'}."
    idle = "1 is" if more == -1 else f"{-more} are"
    if priced:
        return f"There are {present} now: {idle} not worth the price."
    return f"There are {present} now, which meet it already: {idle} not needed."


def _certificate(made: Plan, target: Target) -> str:
    cores, bound = made.certificate or (0, 0.0)
    if not math.isfinite(bound):
        return f"On {cores_of(cores)} or fewer the work that arrives does not fit."
    return (
        f"No policy can do it on {cores_of(cores)} or fewer: there {target.name} is at least {number(bound)}."
    )
