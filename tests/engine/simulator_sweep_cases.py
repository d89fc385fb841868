"""Sweeps in numba's CUDA simulator; `test_gpu_sweep.py` runs this file in a process of its own."""

from __future__ import annotations

import numpy as np
import pytest

from malleable.contracts import Policy
from malleable.engine.gpu import run as gpu_run
from malleable.engine.gpu import sweep as gpu_sweep
from malleable.engine.gpu.backends import Simulator
from malleable.engine.gpu.cohort import Options
from malleable.engine.gpu.kernels import simulated
from malleable.engine.gpu.run import GpuRun
from malleable.engine.gpu.sweep import Asked, packs, sweep
from malleable.model import Workload, paper_workload
from malleable.simulation import program

assert simulated(), "set NUMBA_ENABLE_CUDASIM=1"
FIELDS = ("departures", "response", "arrivals", "area", "present", "duration", "used", "overload")
JOBS, REPLICATIONS = 100, 2


@pytest.fixture(autouse=True)
def few_records(monkeypatch):
    """The simulator takes long to start a kernel, and every record starts one."""
    monkeypatch.setattr(gpu_sweep, "RECORDS", 2)
    monkeypatch.setattr(gpu_run, "RECORDS", 2)


def two_classes(scv, costs):
    """Two classes of different speedups, sizes and holding costs."""
    sizes = (
        {"kind": "exponential", "mean": 1.0},
        {"kind": "erlang", "stages": 2, "mean": 2.0}
        if scv < 1.0
        else {"kind": "hyperexponential", "probabilities": [0.8, 0.2], "rates": [2.0, 0.4]},
    )
    speedups = ({"kind": "power", "exponent": 0.6}, {"kind": "usl", "contention": 0.1, "coherency": 0.001})
    rows = [
        {
            "name": f"c{i}",
            "arrivals": {"kind": "poisson", "rate": 1.0 + i},
            "size": sizes[i],
            "speedup": speedups[i],
            "holding_cost": costs[i],
        }
        for i in range(2)
    ]
    return Workload.from_dict({"name": "two", "classes": rows})


def settings():
    """Workloads of two and three classes on several numbers of cores at several loads."""
    return [
        (paper_workload(4, 0.9), 4),
        (paper_workload(8, 0.5), 8),
        (paper_workload(6, 0.25), 6),
        (two_classes(0.5, (1.0, 4.0)).at(3, 0.8), 3),
        (two_classes(2.0, (3.0, 1.0)).at(5, 0.6), 5),
    ]


def asked(policies=("wham", "equi", "greedy"), chosen=None):
    return [
        Asked(workload, n, program(Policy.of(name), workload, n), 7 + k, REPLICATIONS + k % 2, JOBS)
        for k, (workload, n) in enumerate(chosen or settings())
        for name in policies
    ]


def swept(rows, **options):
    """Outcomes in the order asked for."""
    found = {}
    sweep(rows, backend=Simulator(), keep=found.__setitem__, **options)
    assert sorted(found) == list(range(len(rows)))
    return [found[i] for i in range(len(rows))]


def alone(one):
    """The same setting in a run of its own."""
    run = GpuRun(
        one.workload, one.cores, one.program, jobs=one.jobs, seed=one.seed, replications=one.replications,
        backend=Simulator(), options=Options(statistics=False, rule_on_device=True),
    )  # fmt: skip
    run.extend(one.jobs)
    return run.outcome()


def same(outcome, expected):
    """Group by group and record by record; tables that the device fills differ in the last digit."""
    assert outcome.jobs == expected.jobs
    assert len(outcome.groups) == len(expected.groups) >= REPLICATIONS
    for got, own in zip(outcome.groups, expected.groups, strict=True):
        for field in FIELDS:
            np.testing.assert_allclose(
                getattr(got, field), getattr(own, field), rtol=1e-9, atol=1e-12, err_msg=field
            )


@pytest.mark.parametrize(
    ("policies", "chosen"),
    [
        (("wham", "equi"), slice(0, 3)),
        pytest.param(("wham", "equi", "greedy"), slice(None), marks=pytest.mark.slow),
    ],
    ids=["few", "all"],
)
def test_a_sweep_is_the_runs_one_by_one(policies, chosen):
    """Settings (n, load, policy, workload) in shared launches leave the sums that their own runs leave."""
    rows = asked(policies, settings()[chosen])
    items = [gpu_sweep._item(i, one) for i, one in enumerate(rows)]
    together = list(packs(items))
    assert len(together) < len(rows)
    assert sorted(item.position for one in together for item in one) == list(range(len(rows)))
    for outcome, one in zip(swept(rows), rows, strict=True):
        same(outcome, alone(one))


def test_pools_in_a_sweep():
    """Slots of fixed width, which no table and no rule is asked about."""
    rows = asked(("fw-cam",), [(paper_workload(64, 0.25), 64), (paper_workload(96, 0.3), 96)])
    for outcome, one in zip(swept(rows), rows, strict=True):
        same(outcome, alone(one))


@pytest.mark.parametrize("name", ["wham", pytest.param("equi", marks=pytest.mark.slow)])
def test_settings_that_need_more_are_simulated_again(name, monkeypatch):
    """With rooms, queues and tables for few jobs settings stop, come back, and leave the same sums."""
    rows = asked((name,), settings()[:2])
    expected = [alone(one) for one in rows]
    tries = []
    plain = gpu_sweep._item

    def tight(position, one):
        item = plain(position, one)._replace(room=3, queue_room=2, by_rule=False)
        tries.append(item)
        return item._replace(setting=gpu_sweep.reaching(item.setting, np.ones(3, dtype=np.int64)))

    enlarged = gpu_sweep._enlarged
    monkeypatch.setattr(gpu_sweep, "_item", tight)
    monkeypatch.setattr(gpu_sweep, "_enlarged", lambda *a: tries.append(a[1]) or enlarged(*a))
    for outcome, own in zip(swept(rows), expected, strict=True):
        same(outcome, own)
    assert len(tries) > 4


def test_by_the_rule_beyond_the_table(monkeypatch):
    """Where tables may have few states only, the rule decides beyond them; the sums are the same."""
    monkeypatch.setattr(gpu_sweep, "MOST_STATES", dict.fromkeys(gpu_sweep.MOST_STATES, 8))
    rows = asked(("wham", "equi"), settings()[2:4])
    for outcome, one in zip(swept(rows), rows, strict=True):
        same(outcome, alone(one))


def test_packs_keep_to_the_memory():
    """A pack takes no more memory than it may, unless one setting alone does."""
    items = [gpu_sweep._item(i, one) for i, one in enumerate(asked(("wham",)) * 3)]
    least = max(item.bytes for item in items)
    for together in packs(items, least):
        assert len(together) == 1 or sum(item.bytes for item in together) <= least
    assert sum(len(one) for one in packs(items, least)) == len(items)
