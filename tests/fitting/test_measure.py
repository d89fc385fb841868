"""`measure`: what a program is told, what is kept, and that nothing of it is left."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import pytest

from malleable import api
from malleable.errors import MalleableError
from malleable.fitting import read_measurements
from malleable.fitting import running as run_module
from malleable.fitting.running import VARIABLES, processors
from support.json_keys import keys
from support.living import MALLEABLE, assert_gone, running, wait_until
from support.shell import malleable

REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "json.md"
TELL = """\
import json, os, sys
with open("told", "a") as log:
    told = {name: os.environ[name] for name in sys.argv[2:]}
    log.write(json.dumps([sys.argv[1], sorted(os.sched_getaffinity(0)), told]) + "\\n")
"""
"""Notes what it was told about its cores."""
HANGS = """\
import os, subprocess, sys, time
count = len(open("pids").readlines()) if os.path.exists("pids") else 0
if count >= 2 * int(sys.argv[1]):
    if len(sys.argv) > 2:
        import signal
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])
    with open("hanging", "w") as log:
        log.write(f"{os.getpid()} {child.pid}")
    os.rename("hanging", "hangs")
    time.sleep(3600)
with open("pids", "a") as log:
    log.write("run\\n")
"""
"""Runs a few times, and then hangs with a child of its own; it may refuse to end."""
BURN = """\
import multiprocessing, sys

def burn(n):
    return sum(i * i % 7 for i in range(n))

if __name__ == "__main__":
    with multiprocessing.Pool(int(sys.argv[1])) as pool:
        pool.map(burn, [2_000_000] * 8, chunksize=1)
"""
"""Perfectly parallel work in eight parts."""
linux = pytest.mark.skipif(sys.platform != "linux", reason="it looks at processors and processes")
two = pytest.mark.skipif(len(processors()) < 2, reason="there is one processor only")
PYTHON = sys.executable
BUSY = 1.5
"""A load of the machine from which on two cores are not free; this process makes 1 of it."""


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    """Every test in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    for name, text in {"tell.py": TELL, "hangs.py": HANGS, "burn.py": BURN}.items():
        (tmp_path / name).write_text(text)


@linux
@two
def test_what_a_program_is_told():
    """Its processors, the variables and {cores} agree at every width, and ours are as before."""
    before = processors()
    found = api.measure([PYTHON, "tell.py", "cores={cores}", *VARIABLES], [1, 2], repeat=2)
    told = [json.loads(line) for line in Path("told").read_text().splitlines()]
    assert [len(bound) for _, bound, _ in told] == [1, 2, 2, 1] == [k for k, _ in found.runs]
    for text, bound, variables in told:
        assert text == f"cores={len(bound)}"
        assert set(bound) <= set(before)
        assert variables == dict.fromkeys(VARIABLES, str(len(bound)))
    assert processors() == before
    assert {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS"} < {
        *VARIABLES
    }


@linux
def test_cores_come_before_hyper_threads(monkeypatch, tmp_path):
    """Of processors in pairs that share a core, one of each core is used before the second of any."""
    for processor in range(6):
        topology = tmp_path / f"cpu{processor}" / "topology"
        topology.mkdir(parents=True)
        siblings = {0: "0-1", 1: "0-1", 2: "2,5", 5: "2,5"}.get(processor, "")
        (topology / "thread_siblings_list").write_text(siblings)
    monkeypatch.setattr(run_module, "SYSTEM_CPUS", tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {5, 4, 2, 1, 0})
    assert processors() == [0, 2, 4, 1, 5]
    monkeypatch.setattr(run_module, "SYSTEM_CPUS", tmp_path / "none")
    assert processors() == [0, 1, 2, 4, 5]


@linux
@two
def test_the_document_and_the_file():
    """The JSON has the keys of the design, all documented; the file holds every run, and `fit` reads it."""
    done = malleable("measure", "--cores", "1,2", "--repeat", "3", "--json", "--", PYTHON, "-c", "pass")
    assert (done.status, done.err) == (0, "")
    document = json.loads(done.out)
    assert {"speedup", "family", "criterion", "points"} <= set(document)
    for point in document["points"]:
        assert {"cores", "time", "speedup", "low", "high"} <= set(point)
        assert point["runs"] == 3
        assert point["low"] <= point["speedup"] <= point["high"]
        assert point["fastest"] <= point["time"] <= point["slowest"]
        assert point["efficiency"] == pytest.approx(point["speedup"] / point["cores"])
    assert document["points"][0]["speedup"] == 1.0
    (section,) = [
        s for s in REFERENCE.read_text("utf-8").split("\n## ") if s.startswith("malleable measure ")
    ]
    for key in keys(document):
        assert any(f"{before}{key}`" in section for before in "`."), key
    read = read_measurements("measurements.csv")
    assert {k: len(logs) for k, logs in read.runs.items()} == {1.0: 3, 2.0: 3}
    assert read.points.widths.tolist() == [point["cores"] for point in document["points"]]
    assert malleable("fit", "measurements.csv").status == 0


@linux
@two
def test_the_table():
    """People get run times with their spread, speedup and efficiency, the line, and where the file is."""
    done = malleable("measure", "-n", "1,2", "--repeat", "2", "--out", "a/b.csv", "--", PYTHON, "-c", "pass")
    assert done.status == 0
    for word in ("fastest", "slowest", "speedup", "efficiency", "speedup = { kind =", "saved to a/b.csv"):
        assert word in done.out


@two
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--cores", "1,2", "--", "no-such-program"), "there is no program 'no-such-program'"),
        (("--cores", "2", "--", "true"), "a speedup needs at least two numbers of cores, got 2"),
        (("--cores", "1,100000", "--", "true"), "100000 cores are more than the"),
        (("--cores", "0,2", "--", "true"), "cores must be at least 1, got 0"),
        (("--cores", "1,two", "--", "true"), "cores must be a whole number, got 'two'"),
        (("--cores", "1,2", "--repeat", "0", "--", "true"), "repeat must be at least 1, got 0"),
        (("--cores", "1,2", "--", "false"), "the command exited with status 1 on 1 core"),
        (("--cores", "1,2", "--", "/"), "there is no program '/'"),
        (("--cores", "1,2", "--out", "x/", "--", "true"), "cannot write"),
    ],
)
def test_mistakes(arguments, words):
    """One line and a hint, exit status 1, and no file."""
    Path("x").mkdir()
    before = sorted(Path().rglob("*"))
    done = malleable("measure", *arguments)
    error, hint = done.err.splitlines()
    assert (done.status, done.out) == (1, "")
    assert words in error
    assert hint.startswith("hint: ")
    assert sorted(Path().rglob("*")) == before


@linux
@two
def test_a_command_that_fails_at_one_width():
    """The error names the width and the last words; the file holds the runs before it, whole."""
    line = "import sys; sys.exit('too wide' if sys.argv[1] == '2' else 0)"
    done = malleable("measure", "--cores", "1,2", "--", PYTHON, "-c", line, "{cores}")
    assert done.status == 1
    assert done.err.splitlines()[0] == "error: the command exited with status 1 on 2 cores"
    assert "too wide" in done.err
    assert "measurements.csv holds the runs before it" in done.err
    assert Path("measurements.csv").read_text().splitlines()[1] == "cores,time"
    assert len(Path("measurements.csv").read_text().splitlines()) == 3


@linux
@two
def test_a_program_that_is_killed():
    """The signal is named."""
    with pytest.raises(MalleableError, match="was ended by SIGKILL on 1 core"):
        api.measure([PYTHON, "-c", "import os; os.kill(os.getpid(), 9)"], [1, 2])


@linux
@two
def test_what_a_program_leaves_behind_ends_with_its_run():
    """A child that outlives the program is ended, so that it does not disturb the next run."""
    line = "import subprocess as s; print(s.Popen(['sleep', '3600']).pid, file=open('left', 'a'))"
    api.measure([PYTHON, "-c", line], [1, 2], repeat=1)
    assert_gone([int(pid) for pid in Path("left").read_text().split()])


@linux
@two
@pytest.mark.parametrize(
    ("signum", "rounds"),
    [
        (signal.SIGINT, "0"),
        (signal.SIGTERM, "1"),
        pytest.param(signal.SIGHUP, "1", marks=pytest.mark.slow),
        pytest.param(signal.SIGINT, "1", marks=pytest.mark.slow),
        pytest.param(signal.SIGTERM, "0", marks=pytest.mark.slow),
        pytest.param(signal.SIGHUP, "0", marks=pytest.mark.slow),
    ],
)
def test_interrupted(signum, rounds):
    """A signal ends the program and its children; what was measured is kept and shown, exit 128 + n."""
    command = ("measure", "--cores", "1,2", "--repeat", "3", "--json", "--", PYTHON, "hangs.py", rounds)
    with running(MALLEABLE, *command) as process:
        wait_until(Path("hangs").exists, "a run that hangs")
        os.kill(process.pid, signum)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 128 + signum
    assert "Traceback" not in err
    assert_gone([int(pid) for pid in Path("hangs").read_text().split()])
    if rounds == "0":
        assert (out, err.strip()) == ("", "interrupted")
        assert not Path("measurements.csv").exists()
        return
    assert "interrupted: these are the numbers so far" in err
    document = json.loads(out)
    assert document["interrupted"]
    assert [point["runs"] for point in document["points"]] == [1, 1]
    assert read_measurements("measurements.csv").widths == (1.0, 2.0)


@linux
@two
def test_a_second_signal_ends_a_program_that_refuses():
    """A program deaf to SIGTERM, and an impatient user: nothing of either is left."""
    command = ("measure", "--cores", "1,2", "--", PYTHON, "hangs.py", "1", "deaf")
    with running(MALLEABLE, *command) as process:
        wait_until(Path("hangs").exists, "a run that hangs")
        os.kill(process.pid, signal.SIGINT)
        os.kill(process.pid, signal.SIGTERM)
        process.communicate(timeout=60)
    assert_gone([int(pid) for pid in Path("hangs").read_text().split()])
    assert read_measurements("measurements.csv").widths == (1.0, 2.0)


@pytest.mark.slow
@linux
@two
def test_a_real_program_is_faster_on_two_cores():
    """Work in eight parts for processes runs more than 1.5 times as fast on two cores.

    This is about the machine as much as about `measure`: where others use the cores, there are no two to see.
    """
    if os.getloadavg()[0] > BUSY:
        pytest.skip("other programs use the cores")
    found = api.measure([PYTHON, "burn.py", "{cores}"], [1, 2], repeat=5)
    assert found.points[1]["speedup"] > 1.5
    assert found.fit.speedup(2.0) > 1.5


@linux
@two
def test_interrupted_before_one_core_was_run():
    """One width, and not one core: times are shown, a speedup is not known, and nothing is fitted."""

    def stop_after_one(done, _):
        if done == 1:
            raise KeyboardInterrupt

    found = api.measure([PYTHON, "-c", "pass"], [2, 1], repeat=2, progress=stop_after_one)
    (point,) = found.points
    assert (point["cores"], point["speedup"], point["low"], point["efficiency"]) == (2, None, None, None)
    assert point["time"] > 0.0
    assert found.interrupted
    assert found.to_dict()["speedup"] is None
    with pytest.raises(KeyboardInterrupt):
        api.measure([PYTHON, "-c", "pass"], [2, 1], progress=lambda _, total: stop_after_one(1, total))
