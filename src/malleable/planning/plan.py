"""How many cores for this target: the answer, with a certificate where there is none.

A bound rules out all numbers of cores up to one, theory guesses where the target is met, `planning.search`
finds the smallest number and proves it. With a price of a core-hour the question is from how many cores on
one more costs more than it saves; holding costs are then money per hour (or `job_price` for every job), and
since both sides are per hour, the unit of time does not matter.
"""

from __future__ import annotations

import html
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from malleable.catalog import split_policies
from malleable.contracts import Policy
from malleable.errors import ParameterError
from malleable.numerics.json_numbers import finite
from malleable.planning import page, plan_words
from malleable.planning.reasons import number
from malleable.planning.search import Found, cheapest, find
from malleable.planning.targets import MONEY, SAVING, Target, read_target

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from malleable.planning.search import Meter

MOST = 1 << 20
"""Cores up to which a plan looks unless it is told another number."""
MONEY_METRICS = dict(zip((SAVING, MONEY), plan_words.PRICED, strict=True))
"""What the metrics of plans by prices are called."""
CURVE = 16
"""Numbers of cores at which the curve has what theory says, beside those that were run."""


class Point(NamedTuple):
    """One number of cores: what it costs, and what the target's metric is."""

    cores: int
    cost: float | None = None
    """Mean holding cost per job, as it was run."""
    bound: float | None = None
    """No policy costs less."""
    mean_field: float | None = None
    refined: float | None = None
    """The mean field with its 1/n correction, where it applies."""
    value: float | None = None
    """The metric of the target."""
    low: float | None = None
    high: float | None = None


class Change(NamedTuple):
    """The same question about something that changed, and what that is worth in cores."""

    what: str
    cores: int | None
    more: int | None
    """Cores more (or, negative, fewer) than without the change."""


class Burst(NamedTuple):
    """Cores that are rented by the hour: for how long one is worth its price, and what it saves."""

    price: float
    """Money per core-hour."""
    hours: float
    """How long the price path lies above it."""
    span: float
    """Hours of the log."""
    saving: float
    """What the first core that is rented in these hours saves at most, by the bound."""


@dataclass(frozen=True)
class Plan:
    """How many cores meet a target, how sure that is, and what rules out fewer."""

    name: str
    """Of the workload or the log."""
    target: str
    policy: str
    cores: int | None
    """The fewest that meet it; None if none of those asked about does."""
    misses: int | None
    """The most cores below these that miss it."""
    reached: bool
    confidence: float | None
    """Of both statements together; 1 where nothing is left to chance; None where they could not be told."""
    certificate: tuple[int, float] | None
    """The most cores that the bound rules out, whatever the policy, and the bound there."""
    curve: tuple[Point, ...]
    most: int
    """Up to how many cores it was asked."""
    words: tuple[str, ...] = ()
    changes: tuple[Change, ...] = ()
    metric: str = "cost"
    limit: float | None = None
    core_price: float | None = None
    others: tuple[tuple[str, int | None], ...] = ()
    """All policies that were asked about, and the cores that they need."""
    jobs: int = 0
    """Jobs that were run to find it."""
    status: str = "complete"
    burst: Burst | None = None
    assumptions: tuple[str, ...] = ()
    """What was taken for granted of the jobs of a log."""

    @property
    def title(self) -> str:
        """What it is about."""
        return f"{self.name}: {self.target}"

    def to_dict(self) -> dict[str, Any]:
        """The JSON document of `malleable plan`."""
        names = ("cores", "bound")
        certificate = None if self.certificate is None else dict(zip(names, self.certificate, strict=True))
        document: dict[str, Any] = finite(
            {
                "name": self.name,
                "target": self.target,
                "policy": self.policy,
                "cores": self.cores,
                "reached": self.reached,
                "confidence": self.confidence,
                "misses": self.misses,
                "certificate": certificate,
                "curve": [point._asdict() for point in self.curve],
                "most": self.most,
                "changes": [change._asdict() for change in self.changes],
                "policies": [{"policy": name, "cores": cores} for name, cores in self.others],
                "core_price": self.core_price,
                "burst": None if self.burst is None else self.burst._asdict(),
                "assumptions": list(self.assumptions),
                "words": list(self.words),
                "jobs": self.jobs,
                "status": self.status,
            }
        )
        return document

    def table(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """Headings, and a row for each number of cores, as text."""
        names = ("cores", self.metric, "±", "cost", "bound", "mean field", "with 1/n")
        rows = [_row(point) for point in self.curve]
        shown = [k for k in range(len(names)) if any(row[k] not in {"", "–"} for row in rows)]
        shown = [k for k in shown if not (names[k] == "cost" and k > 1 and self.metric == "cost")]
        return tuple(names[k] for k in shown), [tuple(row[k] for k in shown) for row in rows]

    def changes_table(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """The same for what changes are worth."""
        rows: list[tuple[str, ...]] = [(c.what, _whole(c.cores), _whole(c.more, "+d")) for c in self.changes]
        return ("change", "cores", "difference"), rows

    def __str__(self) -> str:
        return "\n".join(self.words)

    def _repr_html_(self) -> str:
        said = "".join(f"<p>{html.escape(sentence)}</p>" for sentence in self.words)
        return f"{said}{page.table(*self.table())}{page.table(*self.changes_table()) if self.changes else ''}"


def _row(point: Point) -> tuple[str, ...]:
    """A point as text."""
    half = None if point.low is None or point.high is None else 0.5 * (point.high - point.low)
    spread = f"{half:.2g}" if half is not None and 0.0 < half < math.inf else ""
    numbers = (point.cost, point.bound, point.mean_field, point.refined)
    return (str(point.cores), number(point.value), spread, *map(number, numbers))


def _whole(value: int | None, form: str = "d") -> str:
    return "–" if value is None else format(value, form)


def check_price(name: str, price: float | None) -> None:
    """Refuse a price that is none."""
    if price is not None and not 0.0 < price < math.inf:
        raise ParameterError(
            f"the {name} must be positive and finite, got {price:g}", f"for example --{name} 0.05"
        )


def read_policies(policy: str | Policy | Sequence[str | Policy]) -> list[str | Policy]:
    """One policy or several, checked: a name that is wrong is told before anything runs."""
    listed = split_policies(policy) if isinstance(policy, str) else policy
    found: list[str | Policy] = [listed] if isinstance(listed, Policy) else list(listed)
    for one in found:
        Policy.of(one)
    return found


def question(
    target: Target | str | None, classes: Sequence[str], core_price: float | None, prices: str = SAVING
) -> Target:
    """The target: that which is given, or what is asked where cores have a price and there is none."""
    check_price("core-price", core_price)
    if target is not None:
        return read_target(target, classes)
    if core_price is None:
        raise ParameterError("there is nothing to plan for", 'give --target "cost < 3", or --core-price 0.05')
    return Target(prices, core_price, text=f"cores worth {core_price:g} per hour")


def planned(
    name: str,
    target: Target,
    meters: Iterator[Meter],
    *,
    most: int | None = None,
    present: int | None = None,
    core_price: float | None = None,
    changes: Sequence[tuple[str, Callable[[str], Meter]]] = (),
    rented: Callable[[int], Burst] | None = None,
) -> Plan:
    """A plan from what meters say, one for each policy; the first Ctrl-C leaves what is known so far."""
    highest = MOST if most is None else most
    if highest < 1:
        raise ParameterError(f"the most cores must be at least 1, got {highest}", "for example --most 1024")
    best, needs, status = None, [], "complete"
    try:
        for meter in meters:
            search = _Search(meter, target, highest)
            best = search if best is None else best
            search.run()
            needs.append((meter.policy_name, search.found.meets if search.found else None))
            best = min(best, search, key=lambda one: one.needed)
    except KeyboardInterrupt:
        if best is None or best.found is None:
            raise
        status = "interrupted"
    if best is None or best.found is None:
        raise ParameterError("there is nothing to plan with", "name at least one policy")
    made = best.plan(name, core_price, status)
    rows = []
    try:
        for what, meter_of in changes if status == "complete" and made.reached else ():
            other = _Search(meter_of(made.policy), target, highest)
            cores = other.run().meets
            rows.append(Change(what, cores, None if cores is None else cores - (made.cores or 0)))
    except KeyboardInterrupt:
        status = "interrupted"
    burst = rented(made.cores) if rented is not None and made.cores is not None else None
    others = tuple(needs) if len(needs) > 1 else ()
    made = replace(made, changes=tuple(rows), status=status, others=others, burst=burst)
    return replace(made, words=plan_words.words(made, best.meter, target, present))


class _Search:
    """One question, asked of one meter."""

    def __init__(self, meter: Meter, target: Target, most: int) -> None:
        self.meter, self.target, self.most = meter, target, most
        self.found: Found | None = None
        self.certificate: tuple[int, float] | None = None

    @property
    def needed(self) -> float:
        """Cores found to be enough, as far as the search has come."""
        return math.inf if self.found is None or self.found.meets is None else self.found.meets

    def run(self) -> Found:
        """Look for the fewest cores."""
        if self.target.metric == MONEY:
            self.found = cheapest(self.meter, most=self.most, seen=self._seen)
            return self.found
        self.certificate = self.meter.ruled_out(self.most)
        above = self.certificate[0] if self.certificate else 0
        self.found = find(self.meter, self.target.limit, most=self.most, above=above, seen=self._seen)
        return self.found

    def _seen(self, found: Found) -> None:
        self.found = found

    def plan(self, name: str, core_price: float | None, status: str) -> Plan:
        """What was found, without its words."""
        meter, found = self.meter, self.found or Found(None, None, clear=False)
        ruled_out = found.meets is None and self.certificate is not None and self.certificate[0] >= self.most
        confidence = 1.0 if ruled_out or (found.clear and meter.stages == 1) else meter.confidence
        return Plan(
            name=name,
            target=str(self.target),
            policy=meter.policy_name,
            cores=found.meets,
            misses=found.misses,
            reached=found.meets is not None,
            confidence=confidence if found.clear and status == "complete" else None,
            certificate=self.certificate,
            curve=tuple(self._curve(found)),
            most=self.most,
            metric=MONEY_METRICS.get(self.target.metric, self.target.name),
            limit=None if self.target.metric == MONEY else self.target.limit,
            core_price=core_price,
            jobs=meter.ran,
        )

    def _curve(self, found: Found) -> list[Point]:
        """The numbers of cores that were run, and around them what theory says."""
        meter, centre = self.meter, found.meets or found.misses or self.meter.least
        low = max(meter.least, math.floor(0.8 * centre))
        high = min(max(math.ceil(1.3 * centre), 4), self.most)
        grid = set(np.linspace(low, high, CURVE).astype(int).tolist()) if low <= high else set()
        run = {n: one for n, one in meter.known.items() if math.isfinite(one.value)}
        points = []
        for n in sorted(grid | set(run)):
            known, one = Point(n, None, *meter.theory(n)), run.get(n)
            if one is not None:
                known = known._replace(cost=one.cost, value=one.value, low=one.low, high=one.high)
            points += [known] if any(value is not None for value in known[1:]) else []
        return points
