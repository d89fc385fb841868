"""The GPU's kernels in numba's CUDA simulator; `test_gpu.py` runs this file in a process of its own."""

from __future__ import annotations

import numpy as np
import pytest

import malleable
from malleable.contracts import Policy
from malleable.engine.gpu import layout as L  # noqa: N812 - as in the engine
from malleable.engine.gpu import reductions
from malleable.engine.gpu import run as gpu_run
from malleable.engine.gpu.arrivals import poisson_job, renewal_draws
from malleable.engine.gpu.backends import Processor, Simulator
from malleable.engine.gpu.cohort import Options
from malleable.engine.gpu.cuda_api import cuda
from malleable.engine.gpu.jobs import departures as device_departures
from malleable.engine.gpu.kernels import plain_kernel, simulated
from malleable.engine.gpu.layout import histogram_bin
from malleable.engine.gpu.run import GpuRun
from malleable.engine.gpu.setting import make_setting
from malleable.engine.kernels.class_kernel import histogram_bin as processor_bin
from malleable.engine.machines import machine
from malleable.engine.rule_interface import COUNTS, SHARE, ClassProgram
from malleable.engine.run import departures
from malleable.errors import PolicyError
from malleable.model import Workload, paper_workload
from malleable.simulation import program
from malleable.sources import Chunk
from malleable.statistics.estimates import difference, estimate
from malleable.statistics.warmup import Warmup
from support import random_jobs as gen

assert simulated(), "set NUMBA_ENABLE_CUDASIM=1"
MODES = {
    "shared, by table": {"rows": 2000, "options": Options(rule_on_device=True)},
    "device memory, by table": {"rows": 2000, "options": Options(memory="device", rule_on_device=True)},
    "local, by rule": {"rows": 1, "options": Options(memory="local", rule_on_device=True)},
    "device memory, by rule": {"rows": 1, "options": Options(memory="device", rule_on_device=True)},
}


def others(*names):
    """Policies that only the slow tests run."""
    return (pytest.param(name, marks=pytest.mark.slow) for name in names)


@pytest.fixture(autouse=True)
def few_records(monkeypatch):
    """The simulator takes long to start a kernel, and every record starts one."""
    monkeypatch.setattr(gpu_run, "RECORDS", 10)


def agree(name, workload, cores, jobs, **options):
    """Whether all jobs leave when the CPU engine says so; rooms are so small that they are outgrown."""
    made = program(Policy.of(name), workload, cores)
    if made.sees != COUNTS:
        pytest.skip("a job rule")
    expected = departures(workload, cores, made, jobs, interpreted=True)
    got = device_departures(workload, cores, made, jobs, room=4, queue_room=2, **options)
    np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-12)


# --- job by job ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["wham", "greedy", "equi", "fcfs"])
def test_class_rules_job_by_job(name, mode):
    """Departures as on the CPU to 1e-9, at loads around 1, by index c/x, FIFO and sharing."""
    for seed in (200, 203):
        load = np.random.default_rng(seed).uniform(0.7, 1.2)
        one = gen.instance(seed, 60, kinds=("power", "amdahl"), most_cores=8, load=load)
        agree(name, *one, **MODES[mode])


@pytest.mark.parametrize("name", ["wham", "greedy", "equi"])
def test_mixed_speedups_job_by_job(name):
    """Rules that search for a price agree too, from the table and on the device."""
    for seed in (1,):
        for mode in ("shared, by table", "device memory, by rule"):
            agree(
                name, *gen.instance(seed, 40, kinds=("power", "amdahl", "usl"), most_cores=12), **MODES[mode]
            )


@pytest.mark.parametrize("seed", [1, 11])
def test_pools_job_by_job(seed):
    """Slots of fixed width, first come first served in each class; for most other seeds there is no plan."""
    agree("fw-cam", *gen.instance(seed, 40, kinds=("power",), least_cores=60, most_cores=64, load=0.15))


@pytest.mark.parametrize("name", ["wham", "greedy", "fcfs", "equi"])
def test_equal_jobs_keep_the_order_of_arrival(name):
    """Deterministic sizes, equal costs and batches make jobs tie everywhere: the earlier goes first."""
    rng = np.random.default_rng(3)
    rows = [
        {
            "name": f"c{i}",
            "arrivals": {"kind": "poisson", "rate": 1.0},
            "size": {"kind": "deterministic", "value": [1.0, 0.7][i]},
            "speedup": {"kind": "power", "exponent": 0.5},
            "holding_cost": 1.0,
        }
        for i in range(2)
    ]
    workload = Workload.from_dict({"name": "equal", "classes": rows}).at(3, 1.1)
    times = np.sort(rng.uniform(0.0, 12.0, 20)).repeat(3)
    jobs = Chunk(times, rng.integers(0, 2, 60), np.empty(60))
    jobs.sizes[:] = workload.mean_sizes[jobs.classes]
    agree(name, workload, 3, jobs)


# --- runs ------------------------------------------------------------------------------------------------


def drawn(workload, replication, count, seed):
    """The jobs that a replication draws, as arrays."""
    made = program(Policy.of("equi"), workload, 4)
    setting = make_setting(workload, 4, made)
    shared = setting.bounds, setting.kinds, setting.laws.encoded
    if setting.source == L.POISSON:
        mean = 1.0 / workload.total_rate
        rows = [poisson_job(k, replication, seed, mean, *shared) for k in range(count)]
        gaps, classes, sizes = (np.array(column) for column in zip(*rows, strict=True))
        return Chunk(np.cumsum(gaps), classes.astype(np.int64), sizes)
    jobs = []
    for i in range(setting.classes):
        pairs = np.array([renewal_draws(k, i, replication, seed, *shared) for k in range(count)])
        jobs += [(time, i, size) for time, size in zip(np.cumsum(pairs[:, 0]), pairs[:, 1], strict=True)]
    times, classes, sizes = (np.array(column) for column in zip(*sorted(jobs)[:count], strict=True))
    return Chunk(times, classes.astype(np.int64), sizes)


def renewal_workload(load):
    gaps = ({"kind": "erlang", "stages": 2, "mean": 1.0}, {"kind": "uniform", "low": 0.5, "high": 1.0})
    sizes = ({"kind": "lognormal", "mean": 1.0, "sigma": 0.7}, {"kind": "weibull", "shape": 0.8, "mean": 2.0})
    rows = [
        {
            "name": f"c{i}",
            "arrivals": {"kind": "renewal", "interval": gaps[i]},
            "size": sizes[i],
            "speedup": {"kind": "power", "exponent": 0.4},
            "holding_cost": 1.0 + i,
        }
        for i in range(2)
    ]
    return Workload.from_dict({"name": "renewal", "classes": rows}).at(4, load)


@pytest.mark.parametrize("name", ["wham", "greedy", "equi"])
@pytest.mark.parametrize("source", ["poisson", "renewal"])
def test_a_run_is_the_cpu_engine_on_the_same_jobs(name, source):
    """Sums and histograms of two replications equal those of the CPU engine fed with the jobs they draw."""
    workload = paper_workload(4, 0.9) if source == "poisson" else renewal_workload(0.9)
    made = program(Policy.of(name), workload, 4)
    run = GpuRun(workload, 4, made, jobs=600, seed=7, replications=2, backend=Simulator())
    run.extend(600)
    groups = run.outcome().groups
    for replication, records in enumerate(groups):
        jobs = drawn(workload, replication, 300, 7)
        expected = machine(workload, 4, made, interpreted=True)
        expected.feed(jobs, 0, 300)
        sums, scalars = expected.collect()
        for row, field in enumerate(("departures", "response", "slowdown", "arrivals", "work", "area")):
            np.testing.assert_allclose(getattr(records, field).sum(axis=0), sums[row], rtol=1e-9)
        got = (records.duration.sum(), records.used.sum(), records.overload.sum())
        np.testing.assert_allclose(got, scalars[:3], rtol=1e-9)
        np.testing.assert_array_equal(records.present[-1], expected.counts)
    assert groups[0].response_histogram.sum() == sum(one.departures.sum() for one in groups)


def sums_of(run):
    records = run.outcome().records
    return {name: array.sum(axis=0) for name, array in records.arrays().items() if "histogram" not in name}


@pytest.mark.parametrize("name", ["wham", *others("greedy", "equi")])
def test_replications_that_outgrow_their_room_go_on(name):
    """With rooms for a few jobs most replications move, some twice, and every sum stays what it was."""
    workload = paper_workload(4, 0.95)
    made = program(Policy.of(name), workload, 4)
    options = {"jobs": 450, "seed": 3, "replications": 3, "backend": Simulator()}
    wide, tight = GpuRun(workload, 4, made, **options), GpuRun(workload, 4, made, **options)
    cohort = tight.cohorts[0]
    tight.cohorts = [
        type(cohort).fresh(
            cohort.setting, cohort.backend, cohort.options, cohort.common, np.arange(3), 3, queue_room=2
        )
    ]
    tight.cohorts[0].aligned = True
    for run in (wide, tight):
        run.extend(450)
    assert len(tight.cohorts) > 1
    for field, expected in sums_of(wide).items():
        np.testing.assert_allclose(sums_of(tight)[field], expected, rtol=1e-12, err_msg=field)


def test_states_beyond_the_table():
    """The table grows to where replications get, or the rule takes over: the sums are the same."""
    workload = paper_workload(8, 0.8)
    made = program(Policy.of("wham"), workload, 8)
    options = {"jobs": 400, "seed": 3, "replications": 2, "backend": Simulator()}
    plain, grown, asked = (GpuRun(workload, 8, made, **options) for _ in range(3))
    for run in (grown, asked):
        setting = make_setting(workload, 8, made, rows=8)
        object.__setattr__(run.setting, "table", setting.table)
        for name, array in zip(("speeds", "limits"), setting.table, strict=True):
            run._common[name] = array
    asked._rows_allowed = 8
    for run in (plain, grown, asked):
        run.extend(400)
    assert (grown.setting.table.limits > 1).all()
    assert asked.cohorts[0].options.rule_on_device
    for run in (grown, asked):
        for field, expected in sums_of(plain).items():
            np.testing.assert_allclose(sums_of(run)[field], expected, rtol=1e-9, err_msg=field)


@pytest.mark.parametrize("name", ["fcfs", *others("wham", "equi")])
def test_areas_only(name):
    """Without statistics the areas are the same and stand for the response times, wherever marks are."""
    workload = paper_workload(4, 0.9)
    made = program(Policy.of(name), workload, 4)
    runs = []
    for options in (Options(), Options(statistics=False), Options(statistics=False, hot=2)):
        runs.append(
            GpuRun(workload, 4, made, jobs=400, seed=3, replications=2, backend=Simulator(), options=options)
        )
        runs[-1].extend(400)
    assert [run.cohorts[0].placed.hot for run in runs][0::2] == [0, 2]
    full, *others = (run.outcome().records for run in runs)
    for lean in others:
        for field in ("area", "arrivals", "departures", "used", "overload", "present"):
            np.testing.assert_allclose(getattr(lean, field), getattr(full, field), rtol=1e-12, err_msg=field)
        np.testing.assert_array_equal(lean.response, lean.area)
    # Sizes are counted as jobs come; those that have not left are taken out at their mean.
    came = [drawn(workload, replication, 200, 3) for replication in range(2)]
    expected = sum(np.bincount(jobs.classes, jobs.sizes, minlength=3) for jobs in came)
    still_there = (others[0].arrivals - others[0].departures).sum(axis=0) * workload.mean_sizes
    np.testing.assert_allclose(others[0].work.sum(axis=0) + still_there, expected, rtol=1e-12)


@pytest.mark.slow
def test_statistics_of_some_warps(monkeypatch):
    """If one warp in two keeps statistics, the mean slowdown is that of its jobs; areas are of all jobs."""
    monkeypatch.setattr(gpu_run, "RECORDS", 2)
    workload = paper_workload(4, 0.7)
    made = program(Policy.of("wham"), workload, 4)
    found = []
    for replications, every in ((64, 2), (64, 1), (32, 1)):
        run = GpuRun(
            workload, 4, made, jobs=5 * replications, seed=3, replications=replications,
            backend=Simulator(), options=Options(every=every),
        )  # fmt: skip
        run.extend(5 * replications)
        found.append(run)
    assert [len(run.cohorts) for run in found] == [2, 1, 1]
    some, every, first = (run.outcome().groups for run in found)
    for one, other in zip(some, every, strict=True):
        for field in ("area", "arrivals", "departures", "duration", "used", "overload", "present"):
            np.testing.assert_allclose(getattr(one, field), getattr(other, field), rtol=1e-12, err_msg=field)
        np.testing.assert_array_equal(one.response, one.area)
    for one, other in zip(some, first, strict=True):
        left = other.departures.sum(axis=0) > 0.0
        got = one.slowdown.sum(axis=0)[left] / one.departures.sum(axis=0)[left]
        expected = other.slowdown.sum(axis=0)[left] / other.departures.sum(axis=0)[left]
        np.testing.assert_allclose(got, expected, rtol=1e-12)
    np.testing.assert_array_equal(some[0].response_histogram.sum(), first[0].response_histogram.sum())


def test_policies_see_the_same_jobs(monkeypatch):
    """Replications and records do not depend on the policy: differences are of the same jobs, and narrow."""
    monkeypatch.setattr(Simulator, "most_replications", 6)
    workload = paper_workload(4, 0.7)
    runs = []
    for name in ("wham", "equi"):
        made = program(Policy.of(name), workload, 4)
        runs.append(GpuRun(workload, 4, made, jobs=1200, seed=3, least_jobs=150, backend=Simulator()))
        runs[-1].extend(1200)
    assert [run.replications for run in runs] == [6, 6]
    ours, theirs = (run.outcome().groups for run in runs)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(a.arrivals, b.arrivals)
        np.testing.assert_allclose(a.duration, b.duration, rtol=1e-12)
    paired = difference(ours, theirs, workload, warmup=0, controls=False)
    left_out = Warmup(cuts=(0,) * 6, jobs=0)
    apart = [estimate(side, workload, left_out, controls=False).cost for side in (ours, theirs)]
    assert paired.mean == pytest.approx(apart[0].mean - apart[1].mean, rel=1e-9)
    assert paired.half_width < 0.75 * np.hypot(apart[0].half_width, apart[1].half_width)


def test_records_are_joined_when_a_run_goes_on():
    """A run that is extended far keeps a bounded number of records, and loses nothing."""
    workload = paper_workload(2, 0.5)
    made = program(Policy.of("wham"), workload, 2)
    once, often = (
        GpuRun(workload, 2, made, jobs=jobs, seed=3, replications=1, backend=Simulator())
        for jobs in (400, 100)
    )
    once.extend(400)
    often.extend(100)
    often.extend(400)
    assert often.outcome().records.size < 20
    for field in ("arrivals", "departures", "area", "duration"):
        a, b = (getattr(run.outcome().records, field)[:1].shape for run in (once, often))
        assert a[1:] == b[1:]
        np.testing.assert_allclose(sums_of(once)[field], sums_of(often)[field], rtol=1e-9)


def test_a_rule_that_cannot_be_obeyed_is_named():
    """More cores than there are: the same error as on the CPU, with the state."""

    def greedy_rule(counts, cores, table, out):
        for i in range(len(counts)):
            out[i] = 2.0 * cores

    workload = paper_workload(4, 0.5)
    made = ClassProgram(greedy_rule, np.zeros(4), SHARE)
    run = GpuRun(workload, 4, made, jobs=100, seed=3, replications=1, backend=Simulator())
    with pytest.raises(PolicyError, match="gave out more than 4 cores at time"):
        run.extend(100)


# --- the whole library -----------------------------------------------------------------------------------


def test_simulate_and_compare_on_the_device():
    """`engine="gpu"`: results name the device, policies see the same jobs, and Ctrl-C keeps what is done."""
    result = malleable.simulate("paper", 4, "wham", load=0.6, jobs=1500, engine="gpu")
    assert result.versions["device"] == "numba's CUDA simulator"
    assert abs(result.classes[0].little) < 0.1
    found = malleable.compare("paper", 4, "wham,equi", load=0.6, jobs=1500, engine="gpu")
    assert len(found.differences) == 1
    assert found.results[0].cost == result.cost

    def stop(done, total):
        assert total >= done
        if done > 500:
            raise KeyboardInterrupt

    stopped = malleable.simulate("paper", 4, "wham", load=0.6, jobs=1500, engine="gpu", progress=stop)
    assert str(stopped.status) == "interrupted"
    assert 500 < stopped.jobs < 1500


def test_bins_are_those_of_the_cpu_engine():
    """Histograms have the same bins, at their edges and beyond their range too."""
    edges = np.ldexp(1.0 + np.arange(64) / 64.0, -3)
    values = np.concatenate([edges, np.nextafter(edges, 0.0), [1e-300, 1e-13, 1.0, 3.7, 2.0**40, 1e30]])
    assert [histogram_bin(float(x)) for x in values] == [processor_bin(float(x)) for x in values]


def test_sums_over_groups():
    """The small kernels do what NumPy does: sums over groups, histograms, columns, retirement."""
    rng = np.random.default_rng(1)
    sums, whole = rng.random((3, 10)), np.zeros((L.WHOLE + L.COUNTERS, 10), dtype=np.int64)
    whole[L.WHOLE + L.PRESENT] = np.arange(10)
    whole[L.STATUS, 3] = 5
    expected, status = Processor().sum_groups(sums.copy(), whole, 2)
    partial, trouble = np.zeros((4, reductions.CHUNKS, 2)), np.zeros(1, dtype=np.int64)
    plain_kernel(reductions.sum_groups)[4, 64](sums, whole, partial, trouble)
    np.testing.assert_allclose(partial.sum(axis=1), expected.sum(axis=1))
    assert not sums.any()
    assert trouble[0] == status == 5
    histogram, total = rng.integers(0, 9, (3, 5)).astype(np.uint32), np.ones(5, dtype=np.int64)
    counted = 1 + histogram.sum(axis=0)
    plain_kernel(reductions.fold_histogram)[1, 8](histogram, total)
    assert total.tolist() == counted.tolist()
    assert not histogram.any()
    out = np.zeros((whole.shape[0], 2), dtype=np.int64)
    plain_kernel(reductions.take_columns)[1, out.size](whole, np.array([3, 9]), out)
    assert out.tolist() == whole[:, [3, 9]].tolist()
    plain_kernel(reductions.retire)[1, 2](whole, sums, np.array([3]))
    assert whole[L.JOB, 3] == reductions.NEVER
    assert cuda.is_available()
