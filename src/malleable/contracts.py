"""The extension points on one page.

To add a kind, write one file in the folder of its family with one frozen dataclass that implements the
contract below; the catalog, the command line, the reference docs and the conformance tests find it there.

Arrays go through every numeric method element by element, and a family whose methods are plain NumPy
expressions of its parameters may hold *arrays* as parameters (`stack`), so that thousands of jobs with
their own speedups are priced in one call.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from malleable import catalog
from malleable.catalog.families import is_ours
from malleable.catalog.spec import Spec
from malleable.errors import ParameterError, UnsupportedError
from malleable.numerics import residual_life

if TYPE_CHECKING:
    from collections.abc import Sequence

    from malleable.engine.rule_interface import Program
    from malleable.model import Workload
    from malleable.model.jobs import Jobs
    from malleable.theory.market import Buyers

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
BoolArray = NDArray[np.bool_]
SMALL, LARGE = 1e-150, 1e150
"""Numbers whose squares are far from the limits of floats."""


class Speedup(Spec, ABC):
    """How much faster a job runs on k cores than on one: s(k), with s(1) = 1.

    A family gives `speed` on k ≥ 1 and its demand; below one core s(k) = k (a time-shared core). It may have
    `formulas` for the compiler and a `fit`, as class attributes (`speedups.base.family`).
    """

    vectorised: ClassVar[bool] = False
    """Whether the parameters may be arrays, one entry per job (see `stack`)."""

    @abstractmethod
    def speed(self, cores: FloatArray) -> FloatArray:
        """s(k) for k ≥ 1."""

    @abstractmethod
    def derivatives(self, cores: ArrayLike) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """s and its first three right derivatives, for k ≥ 1."""

    @abstractmethod
    def demand(self, price: ArrayLike, weight: ArrayLike = 1.0) -> Any:
        """argmin over k ≥ 1 of (weight + price·k)/s(k): the width worth buying at a price per core.

        Where the minimum is shared by an interval (a linear piece), any of its points may be returned.
        """

    @abstractmethod
    def work_demand(self, price: ArrayLike, weight: ArrayLike = 1.0) -> Any:
        """argmax over k ≥ most_efficient of weight·s(k) − price·k: what GREEDY buys at that price."""

    @property
    @abstractmethod
    def peak(self) -> Any:
        """The smallest width of the highest speed; more cores do not help. May be infinite."""

    @property
    def most_efficient(self) -> Any:
        """The largest width with the highest s(k)/k: no job should run on less if cores are scarce."""
        return 1.0

    @property
    def concave(self) -> bool:
        """Whether s is concave on k ≥ 1, so that every width between two good ones is good."""
        return True

    def __call__(self, cores: ArrayLike) -> Any:
        """s(k) for any k ≥ 0."""
        k = np.asarray(cores, dtype=float)
        return np.where(k < 1.0, k, self.speed(np.maximum(k, 1.0)))[()]

    def slope(self, cores: ArrayLike) -> Any:
        """The right derivative of s; 1 below one core."""
        k = np.asarray(cores, dtype=float)
        return np.where(k < 1.0, 1.0, self.derivatives(np.maximum(k, 1.0))[1])[()]

    def efficiency(self, cores: ArrayLike) -> Any:
        """Work done per core: s(k)/k, which is 1 up to one core."""
        k = np.asarray(cores, dtype=float)
        return (self(k) / np.where(k > 0.0, k, 1.0) + (k <= 0.0))[()]

    def capped(self, cores: float) -> Speedup:
        """The same speedup where no job may use more than `cores`.

        For a concave s the demand under a cap is the smaller of demand and cap, so there is nothing to do.
        """
        return self

    @classmethod
    def stack(cls, members: Sequence[Self]) -> Speedup:
        """One speedup whose parameters are arrays, entry j being member j."""
        stacked = object.__new__(cls)
        for f in dataclasses.fields(cast("Any", cls)):
            object.__setattr__(stacked, f.name, np.array([getattr(one, f.name) for one in members]))
        return stacked

    @classmethod
    def of(cls, value: Any) -> Speedup:
        """Read a speedup: a `Speedup`, a table with a `kind`, or any Python callable s(k)."""
        if isinstance(value, Speedup):
            return value
        if callable(value):
            return cast("Speedup", catalog.find("speedups", "custom")(function=value))  # type: ignore[call-arg]
        return cast("Speedup", catalog.from_document("speedups", value))


class Distribution(Spec, ABC):
    """A law of positive random times: job sizes (run time on one core) or inter-arrival times."""

    if TYPE_CHECKING:
        mean: float
    else:
        # A non-data descriptor, so that families may have a field called `mean` (declare it `= field()`).
        mean = cached_property(lambda self: self.moment(1))

    @abstractmethod
    def moment(self, order: int) -> float:
        """E[X^order], infinite where it does not exist."""

    @abstractmethod
    def sample(self, rng: np.random.Generator, size: int) -> FloatArray:
        """Draw `size` independent values."""

    @abstractmethod
    def scaled(self, factor: float) -> Distribution:
        """The law of factor·X."""

    def phase_type(self) -> tuple[FloatArray, FloatArray] | None:
        """(p, Q): initial phase probabilities and sub-generator, where the law has this form."""
        return None

    def survival(self, x: FloatArray) -> FloatArray:
        """P(X > x), element by element, with all its digits in the tail."""
        raise UnsupportedError(
            f"the law {self.kind} does not say how likely a job is to need more than some time",
            "give it a method survival(x) that returns P(X > x)",
        )

    def mean_remaining(self, done: FloatArray) -> FloatArray:
        """E[X − a | X > a] at a = done ≥ 0, element by element; 0 where nothing is that large.

        This is what a scheduler that knows the work done, but not the size, expects to remain. Unless a law
        has a formula, `survival` is integrated.
        """
        ages = np.asarray(done, dtype=float)
        if not np.isfinite(self.mean):
            return np.where(self.survival(ages) > 0.0, np.inf, 0.0)
        return self._residual_life.mean(self.survival, ages)

    @cached_property
    def _residual_life(self) -> residual_life.ResidualLife:
        return residual_life.tabulate(self.survival, self.mean)

    @property
    def scv(self) -> float:
        """Squared coefficient of variation, Var X / (E X)²."""
        second = self.moment(2)
        if SMALL < second < LARGE and SMALL < self.mean < LARGE:
            return second / self.mean**2 - 1.0
        # A matter of units, perhaps: ask for the second moment of X/E[X].
        return self.scaled(1.0 / self.mean).moment(2) - 1.0

    @property
    def third_moment(self) -> float:
        """E[X³], infinite where it does not exist."""
        return self.moment(3)

    @classmethod
    def of(cls, value: Any) -> Distribution:
        """Read a law: a `Distribution`, a table with a `kind`, or a frozen `scipy.stats` law."""
        if isinstance(value, Distribution):
            return value
        if hasattr(value, "rvs") and hasattr(value, "moment"):
            return cast("Distribution", catalog.find("distributions", "scipy")(law=value))  # type: ignore[call-arg]
        return cast("Distribution", catalog.from_document("distributions", value))


class Arrivals(Spec, ABC):
    """When jobs of a class arrive: a stream of independent inter-arrival times."""

    # Kinds have these as a field or as a property, so neither can be declared here at run time.
    if TYPE_CHECKING:

        @property
        def rate(self) -> float:
            """Arrivals per unit of time."""

        @property
        def interval(self) -> Distribution:
            """The law of the time between two arrivals."""

    @property
    def poisson(self) -> bool:
        """Whether it is a Poisson process, whose streams merge into one and have no memory."""
        return False

    @abstractmethod
    def faster(self, factor: float) -> Arrivals:
        """The same process with its rate multiplied by `factor`."""

    @classmethod
    def of(cls, value: Any) -> Arrivals:
        """Read an arrival process: `Arrivals` or a table with a `kind`."""
        if isinstance(value, Arrivals):
            return value
        return cast("Arrivals", catalog.from_document("arrivals", value))


class Changes(NamedTuple):
    """Times at which the number of cores changes, what it is from then on, and up to when all is known."""

    times: FloatArray
    cores: FloatArray
    known_until: float


class CoreChanges(Protocol):
    """The changes of the number of cores during one run, handed out in order."""

    cores_at_start: float

    def take(self) -> Changes:
        """The next changes."""
        ...


class Capacity(Spec, ABC):
    """How many of a machine's n cores there are, over time."""

    @abstractmethod
    def check_on(self, cores: float) -> None:
        """Raise a `ParameterError` if it does not fit a machine of so many cores."""

    @abstractmethod
    def mean_cores(self, cores: float) -> float:
        """The long-run average, which the lower bound needs; where there is none, the most there ever are."""

    @abstractmethod
    def changes(self, cores: float, seed: int) -> CoreChanges:
        """The changes during one run."""

    def most_cores(self, cores: float) -> float:
        """The most cores there ever are, which every job must be able to start on."""
        return cores

    @classmethod
    def of(cls, value: Any) -> Capacity:
        """Read a capacity: a `Capacity`, a table with a `kind`, or text: `failures:nodes=8,up=99,down=1`."""
        if isinstance(value, str):
            value = catalog.build("capacities", value, Capacity)
        if isinstance(value, Capacity):
            return value
        return cast("Capacity", catalog.from_document("capacities", value))


class Allocation(NamedTuple):
    """Cores for each job, in the order of the jobs, and the price that cleared the market (if any)."""

    cores: FloatArray
    price: float | None


class Own(NamedTuple):
    """Jobs that bring speedups or limits of their own are taken as classes of their own."""

    workload: Workload
    """The workload that arrives."""
    of_class: tuple[int, ...]
    """For each of the classes present, the class that it is of there."""


class Need(NamedTuple):
    """What is needed of a policy's program, beside the workload and the number of cores."""

    by_job: bool = False
    """That its rule sees single jobs: machines may demand more of jobs than class counts can tell."""
    whole: bool = False
    """That it gives whole cores, where there is a rule for these; what is not whole is rounded."""
    weighed: bool = False
    """That a job counts with the weight that it brings, which may not be that of its class."""
    own: Own | None = None
    """What the classes of the workload really are, where the jobs present bring speedups of their own."""

    def arrivals(self, workload: Workload) -> Workload:
        """The workload whose jobs arrive."""
        return workload if self.own is None else self.own.workload


ANY = Need()


class Policy(Spec, ABC):
    """Who gets how many cores, now. A frozen value: everything it needs comes with the call."""

    to_write: ClassVar[str] = "define a subclass of Policy there, or a function f(jobs, cores, table, out)"
    needs: ClassVar[str] = ""
    """What it has to know of jobs and classes, weights aside; `malleable list policies` says it."""

    whole_cores: ClassVar[bool] = False
    """Whether it always gives whole cores, in simulations too; its cost is then held against the bound for
    whole cores."""
    sharing: ClassVar[bool] = False
    """Whether it may give a job a part of one core, which then runs at that part of its speed. A rule that
    does so without saying is refused."""
    sees_all: ClassVar[bool] = False
    """Whether it is asked about jobs that cannot move now (rigid ones that run, say), too. Otherwise it
    divides the cores that these leave among the jobs that can."""
    blocking: ClassVar[bool] = True
    """Whether a large job can keep others waiting. The cost then depends on the squares of sizes, and heavy
    tails need longer runs. A policy that shares or serves small jobs first may say False."""
    uses_speedups: ClassVar[bool] = True
    """Whether it reads the class of a job only to find its speedup and widths, so that jobs that bring these
    are taken as classes of their own. Otherwise they are of the classes that arrive, whatever they bring."""
    by_price: ClassVar[bool] = True
    """Whether the class counts act through one price alone, as `buyers` says. A class rule with buyers that
    looks at the counts in other ways says False, and its fluid equation asks the rule itself."""

    def __post_init__(self) -> None:
        if type(self).lacks() and (lacking := catalog.incomplete(type(self))):
            raise lacking
        super().__post_init__()

    @classmethod
    def lacks(cls) -> dict[str, str]:
        if cls.program is not Policy.program or cls.allocate is not Policy.allocate:
            return super().lacks()
        written = "def allocate(self, jobs, cores, *, integer=False) -> Allocation"
        return super().lacks() | {"an `allocate` method": written}

    def program(self, workload: Workload, cores: float, need: Need = ANY) -> Program | None:
        """Who gets how many cores: a rule on numbers, with everything slow done once for a number of cores.

        All else asks it: `allocate`, the live scheduler and the simulator (`policies.base.asking`). None for
        a policy that gives only `allocate`, which is then asked at every event, interpreted and slowly. A
        policy whose answer is the same whatever is needed may leave `need` out.
        """
        return None

    def allocate(self, jobs: Jobs, cores: float, *, integer: bool = False) -> Allocation:
        """Cores for each of the jobs present, at most `cores` in total."""
        import malleable.policies.base.asking  # noqa: PLC0415 - an import upwards, as the one below

        return malleable.policies.base.asking.by_program(self, jobs, cores, cores, integer=integer)

    def buyers(self, workload: Workload) -> Buyers | None:
        """The demand of each class at a price, for which the mean field has formulas; None if there is none.

        The rule of the program says the same, and is asked where there are no buyers. A policy that looks at
        single jobs raises `not_a_class_rule`.
        """
        return None

    def in_effect(self, workload: Workload, cores: float) -> Policy:
        """The policy that this one amounts to on the workload: itself, or another that it stands back for."""
        return self

    def knowing(self, *, sizes: bool) -> Policy:
        """The policy for a scheduler that knows the sizes of jobs, or only their laws and the work done."""
        return self

    def without_rates(self) -> Policy:
        """The policy where nothing is said of how often jobs arrive, as on a live machine."""
        return self

    def notes(self, workload: Workload, cores: float) -> tuple[str, ...]:
        """What to know of the policy on this workload, one sentence each: that it steps back, say."""
        return ()

    @classmethod
    def of(cls, value: Any) -> Policy:
        """Read a policy: a `Policy`, a name with options such as `fw-cam:beta=0.8`, or a bare function."""
        if isinstance(value, str):
            value = catalog.build("policies", value, Policy)
        if isinstance(value, Policy):
            return value
        if callable(value) and not isinstance(value, type):
            # An import upwards, which the linter knows of. Digests of cells follow `from` imports only: a
            # cell names its policy, so none of them depends on this.
            import malleable.policies.base.function_policy  # noqa: PLC0415 - that module needs this one

            return malleable.policies.base.function_policy.Function(value)
        if isinstance(value, type) and issubclass(value, Policy):
            lacking = catalog.incomplete(value)
            hint = f"give one of it: {value.__name__}()"
            raise lacking or ParameterError(f"not a policy: the class {value.__name__}", hint)
        raise ParameterError(f"not a policy: {value!r:.80}", "give a name such as 'wham', or a Policy")


def called(policy: Policy) -> str:
    """What to call a policy that was not named: its kind, or the class or function of a user's file."""
    if not is_ours(type(policy)):
        return type(policy).__name__
    return str(getattr(policy, "name", "")) or catalog.display("policies", policy.kind)


def not_a_class_rule(policy: Policy) -> UnsupportedError:
    """What to say of a policy that looks at more than how many jobs of each class there are."""
    problem = f"{called(policy)} is not a class rule, so it has no mean-field equation"
    return UnsupportedError(problem, "use wham, greedy, equi, or a class rule of yours")
