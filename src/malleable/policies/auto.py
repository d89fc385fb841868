"""The policy that costs least on a workload and a number of cores, found by a short race.

Which policy is best depends on the cores, the load, the speedups and the spread of sizes and weights. So
`auto` tries: WHAM, `wham-discounted`, `clearing` at three prices of a core and a fitted improvement meet on
the same simulated jobs (`base.racing`), and what is cheapest there is the policy. WHAM wins unless another
one is cheaper beyond its standard error. The winner must then not lose to WHAM where the world is not as
told: at a load a fifth higher or lower, and with another law of sizes. If it does, the next one is tried.

The race takes a second or two, once for a workload and a number of cores, and always has the same answer.
Results say in a note what was chosen and why. With unknown sizes the policies are tried on what a scheduler
then knows, with resizes that cost something on machines where they do.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple

from malleable.distributions.exponential import Exponential
from malleable.distributions.lognormal import Lognormal
from malleable.engine.kernels.class_kernel import AREA
from malleable.engine.machines import machine
from malleable.errors import InfeasibleError, UnsupportedError
from malleable.model import ConditionWarning, checked_cores
from malleable.policies.base import ANY, Need, Policy, Program, memoized
from malleable.policies.base.asking import simulated
from malleable.policies.base.paired_trial import PairedRun, Trial, relative
from malleable.policies.base.racing import BATCHES, WARM_UP, jobs_for, race
from malleable.policies.clearing import Clearing
from malleable.policies.improved.size_value_fit import unknowns
from malleable.policies.wham import Wham
from malleable.policies.wham_fitted import WhamFitted
from malleable.sources import stream

if TYPE_CHECKING:
    from malleable.contracts import Distribution
    from malleable.model import Workload

YARDSTICK = "wham"
CLEARINGS = ("clearing:factor=0.3,order=best", "clearing:order=best", "clearing:factor=3,order=best")
KNOWN = ("wham-discounted", *CLEARINGS)
UNKNOWN = ("wham-improved:headroom=1", "wham-discounted", *CLEARINGS)
"""Who races beside WHAM."""
SEED = 26_111_926
SECONDS = 0.5
"""Of the race, on an idle core."""
PILOT = 2_000
"""Jobs under WHAM that say how many are present at once."""
CROWDED = 400.0
"""With more jobs present than this the race would take too long; WHAM is nearly optimal then."""
FIT_WORK, MOST_MOMENTS, MOST_JOBS = 1.5e9, 60_000, 1_000_000
"""Multiplications that a fit may take, and the most moments that it looks at and jobs present at these."""
MOST_CLASSES = 8
"""With more classes there is no fit."""
DRIFT, HEAVY = 1.2, 0.95
"""The load may be off by this factor, up to a heavy one."""
LOSS, SURE = 0.005, 2.0
"""The most that a policy may then cost more than WHAM, and the standard errors by which it must cost more to
be refused: at high loads a short run says little."""
SECOND_CHOICES = 3
"""Policies that are tried at other loads before it is WHAM."""


class Choice(NamedTuple):
    """What was chosen, and why."""

    name: str
    why: str
    trials: tuple[tuple[str, Trial, int], ...] = ()
    """Who raced: difference from WHAM and its error, and the jobs it was tried on."""


@dataclass(frozen=True)
class Auto(Policy):
    """The policy that is cheapest here: the winner of a short race of simulations, found once."""

    needs = "speedups, rates, laws of sizes; work left where sizes are known; in a broker, no rates"
    sharing: ClassVar[bool] = True
    blocking: ClassVar[bool] = False
    by_price: ClassVar[bool] = False
    sizes: Literal["known", "unknown"] | None = None

    def choice(self, workload: Workload, cores: float) -> Choice:
        """What was chosen for a workload and a number of cores, and why."""
        return _chosen(workload, checked_cores(cores), self.sizes != "unknown")

    def knowing(self, *, sizes: bool) -> Auto:
        """For a run with known or unknown sizes, unless the option says which."""
        return replace(self, sizes=self.sizes or ("known" if sizes else "unknown"))

    def without_rates(self) -> Policy:
        """There is nothing to simulate: the jobs present are cleared at the price that cores have had."""
        return Clearing(order="best")

    def policy(self, workload: Workload, cores: float) -> Policy:
        """The policy that was chosen."""
        return Policy.of(self.choice(workload, cores).name)

    def program(self, workload: Workload, cores: float, need: Need = ANY) -> Program | None:
        return self.policy(need.arrivals(workload), cores).program(workload, cores, need)

    def in_effect(self, workload: Workload, cores: float) -> Policy:
        return self.policy(workload, cores).in_effect(workload, cores)

    def notes(self, workload: Workload, cores: float) -> tuple[str, ...]:
        found = self.choice(workload, cores)
        return (f"auto is {found.name} here: {found.why}",)


@memoized
def _chosen(workload: Workload, cores: float, sizes_known: bool) -> Choice:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConditionWarning)
        return _choose(workload, cores, sizes_known)


def _choose(workload: Workload, cores: float, sizes_known: bool) -> Choice:
    hopeless = _hopeless(workload, cores)
    if hopeless:
        return Choice(YARDSTICK, hopeless)
    present = _mean_present(workload, cores)
    if present > CROWDED:
        return Choice(YARDSTICK, f"with {present:.0f} jobs present at once WHAM is nearly optimal")
    entrants = _entrants(workload, cores, sizes_known, present)
    first = jobs_for(SECONDS, len(entrants) - 1, present)
    names, programs = tuple(entrants), tuple(entrants.values())
    found = race(workload, cores, programs, first, SEED, sizes_known=sizes_known)
    trials = tuple(zip(names, found.trials, found.jobs, strict=True))
    refused: list[str] = []
    for number in found.order[:SECOND_CHOICES]:
        if number == 0:
            break
        where = _loses(workload, cores, (programs[0], programs[number]), 3 * first, sizes_known)
        if not where:
            gain, error = -100.0 * found.trials[number].difference, 100.0 * found.trials[number].error
            why = (
                f"{gain:.1f} % cheaper than wham (standard error {error:.1f} %) on {found.jobs[number]} jobs"
            )
            return Choice(names[number], "; ".join([why, *refused]), trials)
        refused.append(f"{names[number]} would lose {where}")
    why = "; ".join(refused) or "no other policy is cheaper beyond a standard error"
    return Choice(YARDSTICK, why, trials)


def _hopeless(workload: Workload, cores: float) -> str:
    """Why there is nothing to race for, if so."""
    from malleable.engine.compiling import can_compile  # noqa: PLC0415 - loads numba

    if workload.load(cores) >= 1.0:
        return "the load is 1 or more"
    return "" if can_compile() else "without compiled code a race would take minutes"


def _mean_present(workload: Workload, cores: float) -> float:
    """Jobs present at once under WHAM, from a short run."""
    one = machine(workload, cores, simulated(Wham(), workload, cores, plain=True))
    jobs = stream(workload, SEED, PILOT).take()
    one.feed(jobs, 0, jobs.size)
    return float(one.collect()[0][AREA].sum() / jobs.times[-1])


def _entrants(workload: Workload, cores: float, sizes_known: bool, present: float) -> dict[str, Program]:
    """Names and programs of those who race, the yardstick first."""
    policies: dict[str, Policy] = {YARDSTICK: Wham()}
    policies |= {name: Policy.of(name) for name in (KNOWN if sizes_known else UNKNOWN)}
    if not workload.plain:
        policies["wham-steady"] = Policy.of("wham-steady")
    elif sizes_known and len(workload.classes) <= MOST_CLASSES:
        most = MOST_MOMENTS, FIT_WORK / unknowns(len(workload.classes)) ** 2, MOST_JOBS / max(present, 1.0)
        moments = int(min(most))
        fitted = WhamFitted(moments=moments, trial=False)
        if fitted.improvement(workload, cores).numbers is not None:
            policies[f"wham-fitted:moments={moments},trial=false"] = fitted
    programs = {}
    for name, policy in policies.items():
        try:
            programs[name] = simulated(policy, workload, cores, plain=sizes_known)
        except (InfeasibleError, UnsupportedError):
            continue
    return programs


def _loses(
    workload: Workload,
    cores: float,
    programs: tuple[Program, ...],
    jobs: int,
    sizes_known: bool,
) -> str:
    """Where the second program costs more than the first, if the world is not as told."""
    load = workload.load(cores)
    others = {
        "at a higher load": workload.at(cores, min(DRIFT * load, max(HEAVY, load))),
        "at a lower load": workload.at(cores, load / DRIFT),
        "with another law of sizes": replace(
            workload, classes=tuple(replace(one, size=_other_law(one.size)) for one in workload.classes)
        ),
    }
    for number, (where, other) in enumerate(others.items()):
        batch = jobs // BATCHES
        run = PairedRun(
            other, cores, programs, stream(other, SEED + 1 + number, batch), sizes_known=sizes_known
        )
        run.extend(batch, BATCHES)
        found = relative(*run.costs[::-1, BATCHES // WARM_UP :])
        if found.difference > LOSS + SURE * found.error:
            return where
    return ""


def _other_law(law: Distribution) -> Distribution:
    """A law of the same mean and another spread."""
    return Lognormal(law.mean, 1.3) if law.scv < 1.5 else Exponential(1.0 / law.mean)
