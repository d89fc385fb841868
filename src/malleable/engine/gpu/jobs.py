"""When each of the given jobs leaves: the device's events, job by job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from malleable.engine.enforcement import refusal
from malleable.engine.gpu import layout as L  # noqa: N812
from malleable.engine.gpu.backends import default_backend
from malleable.engine.gpu.cohort import FIRST_QUEUE, MORE, Cohort, Options
from malleable.engine.gpu.setting import Setting, make_setting
from malleable.engine.rule_interface import BINS, DONE, GROW

if TYPE_CHECKING:
    from malleable.contracts import FloatArray
    from malleable.engine.gpu.backends import Backend
    from malleable.engine.rule_interface import Program
    from malleable.errors import PolicyError
    from malleable.model import Workload


def common_arrays(setting: Setting, backend: Backend, seed: int, copies: int = 1) -> dict[str, Any]:
    """What all cohorts of a run share."""
    m, upload = setting.classes, backend.upload
    return {
        "n": setting.cores,
        "key": seed,
        "mean_gap": 1.0 / setting.workload.total_rate,
        "costs": upload(np.asarray(setting.workload.holding_costs, dtype=float)),
        "bounds": upload(setting.bounds),
        "kinds": upload(setting.kinds.astype(np.int64)),
        "laws": upload(setting.laws.encoded),
        "speeds": upload(setting.table.rows),
        "limits": upload(setting.table.limits),
        "fixed": upload(setting.fixed),
        "slots_of": upload(np.array(setting.program.slots or (0,) * m, dtype=np.int64)),
        "encoded": upload(setting.encoded),
        **nothing_given(m, backend, copies),
    }


def nothing_given(classes: int, backend: Backend, copies: int = 1) -> dict[str, Any]:
    """Histograms that are empty, and what a launch has where jobs are drawn and not given."""
    upload = backend.upload
    return {
        "given_times": upload(np.zeros((1, 1))),
        "given_classes": upload(np.zeros((1, 1), dtype=np.int64)),
        "given_sizes": upload(np.zeros((1, 1))),
        "histogram": upload(np.zeros((copies, classes * 2 * BINS), dtype=np.uint32)),
        "log": upload(np.zeros((1, 1))),
    }


def departures(
    workload: Workload,
    cores: float,
    program: Program,
    jobs: Any,
    *,
    backend: Backend | None = None,
    room: int | None = None,
    queue_room: int = FIRST_QUEUE,
    rows: int | None = None,
    options: Options | None = None,
) -> FloatArray:
    """Departure time of each of the given jobs (a `Chunk`), as `engine.run.departures` has it."""
    chosen = default_backend() if backend is None else backend
    setting = make_setting(workload, cores, program, given=True, rows=rows)
    common = common_arrays(setting, chosen, 0)
    upload = chosen.upload
    common["given_times"] = upload(jobs.times[None, :])
    common["given_classes"] = upload(jobs.classes[None, :])
    common["given_sizes"] = upload(jobs.sizes[None, :])
    common["log"] = upload(np.full((1, max(jobs.size, 1)), np.nan))
    kept = (options or Options(rule_on_device=True))._replace(logged=True)
    cohort = Cohort.fresh(setting, chosen, kept, common, np.zeros(1, dtype=np.int64), room, queue_room)
    while True:
        cohort.advance(jobs.size, drain=True)
        status = int(chosen.download(cohort.arrays["whole"])[L.STATUS, 0])
        if status == DONE:
            return np.asarray(chosen.download(common["log"])[0, : jobs.size])
        if status != GROW:
            raise refusal(status, float(cores), "with the given jobs", "see the policy's rule")
        state = cohort.extract(np.zeros(1, dtype=np.int64))
        cohort = Cohort.of(cohort, state, MORE * cohort.room, MORE * cohort.queue_room)


def policy_error(setting: Setting, cohort: Cohort, column: int, status: int) -> PolicyError:
    """What to say of a replication whose policy cannot be obeyed."""
    state = cohort.extract(np.array([column]))
    counts = state.whole[L.WHOLE + L.PRESENT :: L.COUNTERS, 0].astype(float)
    width = np.zeros(len(counts))
    with np.errstate(all="ignore"):
        setting.program.rule(counts, setting.cores, setting.program.table.copy(), width)
    names = zip(setting.workload.class_names, counts, strict=True)
    held = ", ".join(f"{count:g} of {name}" for name, count in names)
    place = f"at time {state.reals[L.NOW, 0]:.6g} with {held}"
    return refusal(status, setting.cores, place, "cores per job " + ", ".join(f"{k:g}" for k in width))
