"""The same log as more and more of it becomes malleable: costs of the policies, and the least possible."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from malleable.catalog import split_policies
from malleable.errors import MalleableError, ParameterError
from malleable.model import checked_cores
from malleable.replays.running import run_policy
from malleable.theory.price_path import bound_for_jobs
from malleable.traces import malleabilise

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from malleable.model.job_list import JobList
    from malleable.traces import Study, Trace

ELLIPSES = ("…", "...")
HINT = "write percentages such as 0,50,100 or 0,20,…,100"


class ShareCurve(NamedTuple):
    """Mean costs of a job, by share of the jobs that are malleable; None where a policy cannot run them."""

    shares: tuple[float, ...]
    policies: tuple[str, ...]
    costs: tuple[tuple[float | None, ...], ...]
    """For each share, the cost under each policy."""
    bounds: tuple[float | None, ...]
    interrupted: bool = False

    def to_dict(self) -> list[dict[str, Any]]:
        """The JSON document: an entry for each share."""
        return [
            {"share": share, "bound": bound, "costs": dict(zip(self.policies, costs, strict=True))}
            for share, bound, costs in zip(self.shares, self.bounds, self.costs, strict=True)
        ]


def read_shares(text: str) -> tuple[float, ...]:
    """Percentages separated by commas; an ellipsis goes on as the two before it, up to the one behind it."""
    parts = [part.strip() for part in text.split(",")]
    found: list[float] = []
    for place, part in enumerate(parts):
        if part not in ELLIPSES:
            found.append(_percentage(part))
            continue
        if len(found) < 2 or place + 1 >= len(parts):
            raise ParameterError(f"cannot go on from {text!r:.60}", HINT)
        step, last = found[-1] - found[-2], _percentage(parts[place + 1])
        if step <= 0.0:
            raise ParameterError(f"shares must rise, got {text!r:.60}", HINT)
        while found[-1] + step < last - 1e-9:
            found.append(found[-1] + step)
    return tuple(one / 100.0 for one in found)


def _percentage(text: str) -> float:
    try:
        value = float(text.removesuffix("%"))
    except ValueError:
        value = -1.0
    if not 0.0 <= value <= 100.0:
        raise ParameterError(f"a share must be from 0 to 100 %, got {text!r:.40}", HINT)
    return value


def share_curve(
    trace: Trace,
    cores: float,
    policies: str | Sequence[Any],
    shares: Sequence[float],
    study: Study | None = None,
    *,
    bound: bool = True,
    progress: Callable[[int, int], None] | None = None,
    **changes: Any,
) -> ShareCurve:
    """Replay the log once for each share of malleable jobs; the others stay as the study says."""
    cores = checked_cores(cores)
    chosen = split_policies(policies) if isinstance(policies, str) else list(policies)
    names = tuple(str(one) for one in chosen)
    costs: list[tuple[float | None, ...]] = []
    bounds: list[float | None] = []
    total, done = len(shares) * (len(chosen) + bound), 0

    def tell(*_: Any) -> None:
        if progress is not None:
            progress(done, total)

    try:
        for share in shares:
            jobs = malleabilise(trace, study, **{**changes, "malleable": share, "cores": cores})
            lowest = bound_for_jobs(jobs, cores, on_progress=tell).per_job if bound else None
            done += bound
            row: list[float | None] = []
            for policy in chosen:
                row.append(_cost(policy, jobs, cores, tell))
                done += 1
                tell()
            costs.append(tuple(row))
            bounds.append(lowest)
    except KeyboardInterrupt:  # the shares that were done are kept
        return ShareCurve(tuple(shares[: len(costs)]), names, tuple(costs), tuple(bounds), interrupted=True)
    return ShareCurve(tuple(shares), names, tuple(costs), tuple(bounds))


def _cost(policy: Any, jobs: JobList, cores: float, tell: Callable[..., None]) -> float | None:
    """The mean cost of a job; None for a policy that cannot run these."""
    try:
        found = run_policy(policy, jobs, cores, progress=tell)
    except MalleableError:
        return None
    if found is None:
        raise KeyboardInterrupt
    return found.cost
