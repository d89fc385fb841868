"""The mean field of a class rule: fixed point, stability, attraction, and the correction at finite n.

The fluid equation (`theory.fluid`) has one fixed point, where WHAM's cost is the lower bound V*. That the
system's cost converges to it needs more: every trajectory must end there. The paper conjectures this; for
monotone rules it is proved (`theory.attractor`), and the result says whether the theorem applies. It also has
the eigenvalues of the linearised equation (all with negative real part: the point is stable), and how many of
some trajectories end at the fixed point: from the empty system, the full one, all jobs in one phase, and
random mixtures.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from malleable import notebooks
from malleable.contracts import called
from malleable.errors import ParameterError, UnsupportedError
from malleable.theory.attractor import Attractor, Certificate, Trajectory, certificate, study, trajectory
from malleable.theory.best_first_order import FirstOrder, best_first_order
from malleable.theory.count_fluid import fluid_of
from malleable.theory.fluid import Fluid
from malleable.theory.refined_mean_field import Refined, linearise, refine

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    from malleable.contracts import Policy
    from malleable.model import Workload


STIFFEST = 1e13
"""Ratio of rates of change beyond which no step is small for one and long for the other."""


class ClassPoint(NamedTuple):
    """One class at the fixed point: mean number of jobs present, and cores for each of them."""

    name: str
    jobs: float
    cores: float


@dataclass(frozen=True)
class MeanField:
    """The mean field of a policy on a workload."""

    policy: str
    cores: float
    load: float
    classes: tuple[ClassPoint, ...]
    state: tuple[float, ...]
    """Jobs of each phase at the fixed point, class after class."""
    price: float
    cost: float
    """Mean holding cost per job in the limit of many cores."""
    eigenvalues: tuple[complex, ...]
    """Of the linearised equation, fastest decay first."""
    refined: Refined
    first_order: FirstOrder
    """The best possible coefficient of 1/n beside WHAM's own."""
    attractor: Attractor
    certificate: Certificate
    """Whether the fixed point is proved to attract every trajectory."""
    fluid: Fluid = field(repr=False, compare=False)

    @property
    def stable(self) -> bool:
        """Whether small deviations from the fixed point die out."""
        return all(value.real < 0.0 for value in self.eigenvalues)

    def trajectory(self, start: ArrayLike, times: ArrayLike) -> Trajectory:
        """The fluid path from `start` (jobs by phase) at times[0], at the given times."""
        return trajectory(self.fluid, start, times)

    def _repr_html_(self) -> str:
        facts = (
            ("cost per job, n → ∞", f"{self.cost:.10g}"),
            (f"cost per job, n = {self.cores:g} (1/n correction)", self.refined.cost),
            ("locally stable", "yes" if self.stable else "no"),
        )
        title = f"{self.policy} on {self.fluid.workload.name}, {self.cores:g} cores, load {self.load:.4g}"
        rows = [(c.name, c.cores, c.jobs) for c in self.classes]
        return notebooks.table(title, ("class", "cores per job", "jobs present"), rows, facts)

    def to_dict(self) -> dict[str, Any]:
        """The JSON document of `malleable meanfield`; an eigenvalue is a number, or [re, im] if complex."""
        return {
            "workload": self.fluid.workload.name,
            "policy": self.policy,
            "cores": self.cores,
            "load": self.load,
            "price": self.price,
            "fixed_point": [c._asdict() for c in self.classes],
            "cost": self.cost,
            "stable": self.stable,
            "eigenvalues": [v.real if v.imag == 0.0 else [v.real, v.imag] for v in self.eigenvalues],
            "refined": self.refined.to_dict(),
            "first_order": self.first_order.to_dict(),
            "attractor": {**self.attractor._asdict(), **self.certificate.to_dict()},
        }


def mean_field(
    workload: Workload,
    cores: float,
    policy: Policy,
    *,
    starts: int = 25,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> MeanField:
    """Fixed point, stability, 1/n correction, and whether the fixed point attracts every trajectory.

    With `starts`, as many trajectories are followed, and two more that hold all others between them.
    `progress(done, starts)` is called after every trajectory.
    """
    _check_count("starts", starts)
    _check_count("seed", seed)
    fluid = fluid_of(workload, policy, cores)
    point = fluid.fixed_point()
    linear = linearise(fluid, point)
    eigenvalues = linear.eigenvalues
    _check_rates(eigenvalues, starts)
    rows = zip(workload.class_names, point.jobs.tolist(), point.widths.tolist(), strict=True)
    order = np.lexsort((eigenvalues.imag, eigenvalues.real))
    refined = refine(fluid, point, linear)
    slowest = float(eigenvalues.real.max())
    return MeanField(
        policy=_name(policy),
        cores=fluid.cores,
        load=workload.load(fluid.cores),
        classes=tuple(ClassPoint(*row) for row in rows),
        state=tuple(point.state.tolist()),
        price=point.price,
        cost=point.cost,
        eigenvalues=tuple(map(complex, eigenvalues[order].tolist())),
        refined=refined,
        first_order=best_first_order(fluid, point, linear, refined),
        attractor=study(fluid, point, slowest, starts, seed, progress),
        certificate=certificate(fluid, point, slowest, bracket=starts > 0),
        fluid=fluid,
    )


def _name(policy: Policy) -> str:
    """The policy as it is written on the command line: `greedy:weight=cmu`."""
    options = ",".join(f"{key}={value}" for key, value in policy.parameters().items())
    return f"{called(policy)}:{options}" if options else called(policy)


def _check_rates(eigenvalues: NDArray[np.complex128], starts: int) -> None:
    """Refuse trajectories that take more digits than there are from their fastest to their slowest change."""
    rates = np.abs(eigenvalues)
    if starts and not rates.max() <= STIFFEST * rates.min():
        raise UnsupportedError(
            f"rates of change from {rates.min():.2g} to {rates.max():.2g} are too far apart for trajectories",
            "leave the trajectories out with --starts 0 (starts=0)",
        )


def _check_count(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0:
        raise ParameterError(f"{name} must be a whole number, 0 or more, got {value!r:.60}")
