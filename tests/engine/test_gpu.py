"""The GPU engine without a GPU: its kernels in numba's simulator, its random numbers, and who runs what."""

from __future__ import annotations

import importlib
import os
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import special

import malleable
from malleable.contracts import Distribution, Policy
from malleable.engine.gpu import availability, cuda_api
from malleable.engine.gpu import run as gpu_run
from malleable.engine.gpu.arrivals import draws, philox
from malleable.engine.gpu.cohort import placement
from malleable.engine.gpu.kernels import DEVICE, LOCAL, SHARED
from malleable.engine.gpu.laws import components, encode_laws, log_inverse, tabulate, variate
from malleable.engine.gpu.run import replications_for
from malleable.engine.gpu.setting import make_setting
from malleable.errors import ParameterError, UnsupportedError
from malleable.model import paper_workload
from malleable.paper import simulation_cells
from malleable.simulation import program, run_task
from malleable.simulation.engine_choice import EngineWarning, with_engine
from malleable.simulation.settings import Settings
from malleable.simulation.task import checked_task
from malleable.sources import Drawn
from malleable.theory.fw_cam import plan
from support.cuda_simulator import check_cases
from support.size_laws import EXAMPLES

CASES = Path(__file__).with_name("simulator_cases.py")


def test_the_kernels_in_the_simulator():
    """The cases of `simulator_cases.py` pass: job by job as the CPU engine, all disciplines, overload."""
    check_cases(CASES)


@pytest.mark.slow
def test_more_cases_in_the_simulator():
    """So do the same cases under other policies."""
    check_cases(CASES, "slow")


# --- random numbers --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("counter", "key", "words"),
    [
        ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        (
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            (0xA4093822, 0x299F31D0),
            (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
        ),
    ],
)
def test_philox_known_answers(counter, key, words):
    """The generator is Philox4x32-10: the test vectors that its authors publish with Random123."""
    assert tuple(int(word) for word in philox(*(np.uint64(c) for c in (*counter, *key)))) == words


def uniform(count, stream=0, replication=0, key=1):
    """The draws of the first jobs, all at once."""
    return draws(np.arange(count), stream, replication, key)


def test_uniform_numbers():
    """All three are uniform, uncorrelated with one another and with those of the next job and replication."""
    count = 200_000
    columns = [*uniform(count), uniform(count, replication=1)[0], uniform(count, stream=1)[0]]
    columns.append(np.roll(columns[0], 1))
    for column in columns:
        ordered = np.sort(column)
        assert ordered[0] >= 0.0
        assert ordered[-1] < 1.0
        distance = np.abs(ordered - (np.arange(count) + 0.5) / count).max()
        assert special.kolmogorov(np.sqrt(count) * distance) > 1e-4
    correlations = np.corrcoef(columns) - np.eye(len(columns))
    assert np.abs(correlations).max() < 5.0 / np.sqrt(count)


SEPARATE = {"deterministic", "empirical"}
LAWS = [(kind, i) for kind, examples in sorted(EXAMPLES.items()) for i in range(len(examples))]


@pytest.mark.parametrize(("kind", "example"), LAWS)
def test_draws_of_every_law(kind, example):
    """Draws have the law's mean, and pass a test of Kolmogorov and Smirnov at 1e-5."""
    law = Distribution.of({"kind": kind, **EXAMPLES[kind][example]})
    parts = components(law)
    encoded = encode_laws([part for _, part in parts])
    assert encoded.error < 1e-6
    count = 5000
    _, second, coin = uniform(count, key=example + 17)
    bounds = np.cumsum([p for p, _ in parts])[:-1]
    chosen = np.searchsorted(bounds, coin, side="right")
    values = np.array(
        [variate(encoded.encoded, int(i), float(u)) for i, u in zip(chosen, second, strict=True)]
    )
    assert (values > 0.0).all()
    if np.isfinite(law.moment(2)):
        error = np.sqrt(max(law.moment(2) - law.mean**2, 1e-24) / count)
        assert abs(values.mean() - law.mean) < 5.0 * error + 1e-9 * law.mean
    if kind not in SEPARATE and len(np.unique(values)) > count // 2:
        levels = 1.0 - law.survival(np.sort(values))
        distance = np.abs(levels - (np.arange(count) + 0.5) / count).max()
        assert special.kolmogorov(np.sqrt(count) * distance) > 1e-5


def test_the_table_of_an_inverse_is_as_good_as_it_says():
    """Between knots, the tabulated inverse is off by no more than its stated error."""
    law = Distribution.of({"kind": "gamma", "shape": 2.5, "mean": 2.0})
    table, encoded = tabulate(law), encode_laws([law])
    assert 0.0 < table.error < 1e-8
    exponentials = np.exp(np.random.default_rng(1).uniform(np.log(1e-5), np.log(30.0), 400))
    true = np.exp(log_inverse(law, exponentials))
    got = np.array([variate(encoded.encoded, 0, float(np.exp(-e))) for e in exponentials])
    assert np.abs(got / true - 1.0).max() <= 2.0 * table.error + 1e-12


def test_laws_on_separate_values():
    """Laws without a density are drawn from a list of their values, each as often as it is due."""
    law = Distribution.of({"kind": "scipy", "law": "binom", "parameters": {"n": 4, "p": 0.3, "loc": 1}})
    encoded = encode_laws([law])
    values = np.array([variate(encoded.encoded, 0, float(u)) for u in uniform(20_000)[1]])
    found, counts = np.unique(np.round(values, 6), return_counts=True)
    assert found.tolist() == [1.0, 2.0, 3.0, 4.0, 5.0]
    expected = special.binom(4, np.arange(5)) * 0.3 ** np.arange(5) * 0.7 ** np.arange(4, -1, -1)
    assert counts / 20_000 == pytest.approx(expected, abs=0.02)


# --- replications ----------------------------------------------------------------------------------------


def test_the_number_of_replications():
    """As many as the jobs are enough for, in whole groups, up to what fills the device, for every policy."""
    assert replications_for(jobs=1000, least=4096, most=270336) == 1
    assert replications_for(jobs=4096 * 31, least=4096, most=270336) == 31
    assert replications_for(jobs=4096 * 100, least=4096, most=270336) == 96
    assert replications_for(jobs=10**12, least=4096, most=270336) == 270336
    assert replications_for(jobs=10**12, least=4096, most=64) == 64


@pytest.mark.parametrize("beta", [0.76, 0.9])
def test_rooms_follow_the_busiest_pool(beta):
    """The load that rooms are made for is the machine's, or with pools the utilisation of the fullest."""
    workload = paper_workload(64, 0.25)
    fixed = Policy.of(f"fw-cam:beta={beta}")
    utilisation = max(pool.utilisation for pool in plan(workload, 64, beta).pools)
    assert make_setting(workload, 64, program(fixed, workload, 64)).load == pytest.approx(utilisation)
    assert make_setting(workload, 64, program(Policy.of("wham"), workload, 64)).load == pytest.approx(0.25)


def test_what_threads_keep_where():
    """Marks go to shared memory as far as they fit, then to local memory, and at last to the device's."""
    chosen = {"statistics": False, "named": False}
    assert placement(3, 20, SHARED, **chosen) == (SHARED, 8, 128, 80)
    assert placement(3, 20, SHARED, **chosen, queues=True).registers == 96
    assert placement(3, 48, SHARED, **chosen) == (SHARED, 12, 128, 128)
    assert placement(3, 112, SHARED, **chosen) == (SHARED, 24, 64, 128)
    assert placement(3, 4, SHARED, **chosen).hot == 4
    assert placement(20, 20, SHARED, **chosen) == (SHARED, 6, 32, 128)
    assert placement(100, 20, SHARED, **chosen).memory == LOCAL
    assert placement(3, 4096, SHARED, **chosen).memory == DEVICE
    assert placement(3, 20, SHARED, statistics=True, named=False) == (SHARED, 0, 128, None)
    assert placement(3, 20, SHARED, **chosen, hot=2, registers=64) == (SHARED, 2, 128, 64)


# --- which engine runs -----------------------------------------------------------------------------------


def tasks(*policies, **settings):
    """Tasks on the paper's workload."""
    workload = paper_workload()
    return [checked_task(workload, 16, policy, 0.25, Settings(**settings)) for policy in policies]


def engines(*policies, **settings):
    """The engines they run on."""
    return [task.engine for task in with_engine(tasks(*policies, **settings))]


def test_auto_takes_the_gpu_where_it_pays(monkeypatch):
    """Long runs of class rules, or narrow intervals, if there is a GPU; everything else goes to the CPU."""
    monkeypatch.setattr(availability, "why_not", lambda: "")
    assert engines("wham", "equi", engine="auto", jobs=100_000_000) == ["gpu", "gpu"]
    assert engines("wham", engine="auto", precision=1e-4) == ["gpu"]
    assert engines("wham", engine="auto", jobs=1_000_000) == ["cpu"]
    assert engines("wham", "hesrpt", engine="auto", jobs=100_000_000) == ["cpu", "cpu"]
    assert engines("wham", engine="auto", jobs=100_000_000, widths=True) == ["cpu"]
    assert engines("wham", jobs=100_000_000) == ["cpu"]
    monkeypatch.setattr(availability, "why_not", lambda: "there is none")
    assert engines("wham", engine="auto", jobs=100_000_000) == ["cpu"]


def test_job_rules_go_to_the_cpu_and_one_line_says_so(monkeypatch):
    """A policy that looks at single jobs takes all that it is compared with along."""
    monkeypatch.setattr(availability, "why_not", lambda: "")
    with pytest.warns(EngineWarning, match="hesrpt looks at single jobs, so this runs on the CPU"):
        assert engines("wham", "hesrpt", engine="gpu") == ["cpu", "cpu"]


def test_without_a_gpu_one_line_and_a_hint(monkeypatch):
    """`engine="gpu"` on a machine without one says so before anything runs; other names are refused."""
    monkeypatch.setattr(availability, "why_not", lambda: "no CUDA device was found")
    with pytest.raises(UnsupportedError) as caught:
        malleable.simulate("paper", 16, load=0.25, engine="gpu")
    assert caught.value.problem == "the GPU engine cannot run: no CUDA device was found"
    assert "malleable[gpu]" in caught.value.hint
    with pytest.raises(ParameterError, match="there is no engine 'abacus'"):
        malleable.simulate("paper", 16, load=0.25, engine="abacus")
    one = tasks("wham")[0]
    assert with_engine([replace(one, engine="mine.py:Engine")])[0].engine == "mine.py:Engine"


@dataclass(frozen=True)
class Halved:
    """A user's source: the jobs of a seed, half as large. It and its streams have an attribute `seed`."""

    seed: int = 0

    def stream(self, workload):
        jobs = Drawn(self.seed).stream(workload)
        halved = SimpleNamespace(seed=self.seed)
        halved.take = lambda: (chunk := jobs.take())._replace(sizes=0.5 * chunk.sizes)
        return halved


def test_a_device_draws_no_jobs_in_place_of_a_users(monkeypatch):
    """Jobs of a source of one's own are refused on a GPU, also where it has a seed; drawn ones get there."""

    def reached():
        raise NotImplementedError("a device is asked for")

    monkeypatch.setattr(availability, "why_not", lambda: "")
    monkeypatch.setattr(gpu_run, "default_backend", reached)
    task = replace(tasks("wham", jobs=1000)[0], engine="gpu")
    with pytest.raises(NotImplementedError):
        run_task(task)
    with pytest.raises(UnsupportedError, match="jobs that are given, not drawn"):
        run_task(replace(task, source=Halved()))


def test_numpy_stays_as_it_is(monkeypatch, tmp_path):
    """Importing the GPU engine adds nothing to NumPy: only the module that asks for `row_stack` sees it."""
    monkeypatch.delattr(np, "row_stack", raising=False)
    (tmp_path / "np").mkdir()
    (tmp_path / "np" / "__init__.py").touch()
    (tmp_path / "np" / "arrayobj.py").write_text("import numpy\nSEEN = numpy.row_stack\n", encoding="utf-8")
    monkeypatch.setattr(cuda_api.numba.cuda, "__path__", [str(tmp_path)])
    package = "numba.cuda.np"
    try:
        importlib.reload(cuda_api)
        assert sys.modules[f"{package}.arrayobj"].SEEN is np.vstack
        assert not hasattr(np, "row_stack")
    finally:
        for name in (f"{package}.arrayobj", package):
            sys.modules.pop(name, None)


def test_the_papers_cells_run_on_the_engine_named(monkeypatch):
    """Workers learn of the engine from the environment, which is as before afterwards; names are checked."""
    monkeypatch.delenv(simulation_cells.ENGINE_VARIABLE, raising=False)
    with simulation_cells.simulated_by("auto"):
        assert os.environ[simulation_cells.ENGINE_VARIABLE] == "auto"
        with simulation_cells.simulated_by("cpu"):
            assert os.environ[simulation_cells.ENGINE_VARIABLE] == "cpu"
        assert os.environ[simulation_cells.ENGINE_VARIABLE] == "auto"
    assert simulation_cells.ENGINE_VARIABLE not in os.environ
    with pytest.raises(ParameterError, match="there is no engine"), simulation_cells.simulated_by("abacus"):
        pass
