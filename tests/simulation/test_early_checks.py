"""What will not do is refused before anything runs; what was found is shown even if it cannot be saved."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from unittest import mock

import pytest

from malleable import Result, compare, simulate
from malleable.errors import MalleableError, ParameterError
from malleable.results import files
from support.shell import malleable

FAST = ("paper", "--cores", "16", "--load", "0.25", "--jobs", "4000")
GRID = (*FAST, "--policies", "wham,equi")


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    """Every test in a folder of its own, with a folder and a file in it."""
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    Path("file").write_text("")


@pytest.fixture
def nothing_runs():
    """Fail if a simulation is begun."""
    error = AssertionError("something ran")
    with mock.patch.object(import_module("malleable.simulation.carry_out"), "run_task", side_effect=error):
        yield


LATE = {
    "simulate --confidence 0": "confidence must lie between 0 and 1, got 0.0",
    "simulate --confidence 1": "confidence",
    "simulate --confidence nan": "confidence",
    "simulate --warmup 4000": "warm-up of 4000 jobs leaves nothing of a run of 4000 jobs",
    "simulate --jobs 4003 --warmup 4000": "warm-up of 4000 jobs leaves nothing of a run of 4000 jobs",
    "simulate --workers 0": "workers must be a whole number of at least 1, got 0",
    "simulate --workers many": "workers must be a whole number",
    "simulate --out /proc/x": "cannot write '/proc/x.json'",
    "simulate --out file/run": "cannot write 'file/run.json'",
    "simulate --out=": "no name",
    "simulate --out folder": "'folder' is a folder",
    "simulate --out folder/": "'folder/' is a folder",
    "simulate --out absent/": "'absent/' is a folder",
    f"simulate --out {'a' * 300}": "cannot write",
    "compare --baseline knee": "'knee' is not one of the policies",
    "compare --confidence 0": "confidence",
    "compare --warmup 4000": "warm-up",
    "compare --out /proc/x": "cannot write '/proc/x/comparison.json'",
    "compare --out file": "cannot write 'file/comparison.json'",
    "compare --out=": "no name",
    "compare --load .3,half": "load must be a number, got 'half'",
}


@pytest.mark.parametrize(("command", "problem"), LATE.items(), ids=[key[:40] for key in LATE])
@pytest.mark.usefixtures("nothing_runs")
def test_refused_before_anything_runs(command, problem):
    """One line and at most a hint, exit 1, nothing run and nothing written."""
    verb, *options = command.split()
    done = malleable(verb, *(GRID if verb == "compare" else FAST), *options)
    assert (done.status, done.out) == (1, "")
    assert problem in done.err.splitlines()[0]
    assert sorted(path.name for path in Path.cwd().rglob("*")) == ["file", "folder"]


@pytest.mark.usefixtures("nothing_runs")
@pytest.mark.parametrize("options", [{"confidence": 0}, {"confidence": 1.5}, {"warmup": 1000}])
def test_library_refuses_first(options):
    """`simulate` and `compare` check before they run, too."""
    with pytest.raises(ParameterError):
        simulate("paper", 16, load=0.25, jobs=1000, **options)
    with pytest.raises(ParameterError):
        compare("paper", 16, ["wham", "equi"], load=0.25, jobs=1000, **options)


@pytest.mark.usefixtures("nothing_runs")
def test_library_refuses_a_baseline():
    with pytest.raises(ParameterError, match="did you mean 'equi'"):
        compare("paper", 16, ["wham", "equi"], load=0.25, jobs=1000, baseline="eqi")


def test_warmup_longer_than_the_first_stage():
    """With a precision the first look waits for the warm-up to be over."""
    found = simulate("paper", 16, load=0.25, precision=0.05, warmup=200_000)
    assert found.precision_reached
    assert found.warmup >= 200_000


def test_interrupted_within_the_warmup():
    """Whoever stops a run within its warm-up is told that it was stopped, not that it was too short."""

    def stop(done: int, _: int) -> None:
        if done > 1000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        simulate("paper", 16, load=0.25, jobs=100_000, warmup=50_000, progress=stop)


@pytest.mark.parametrize("form", [[], ["--json"]], ids=["table", "json"])
@pytest.mark.parametrize("verb", ["simulate", "compare"])
def test_result_that_cannot_be_saved_is_shown(verb, form):
    """A disk that fills up during the run costs the file, not the numbers; the error follows, exit 1."""
    full = OSError(28, "No space left on device")
    with mock.patch.object(files, "replace_file", side_effect=full):
        done = malleable(verb, *(GRID if verb == "compare" else FAST), *form, "--out", "kept")
    assert done.status == 1
    assert done.err.startswith("error: cannot write 'kept")
    assert "No space left" in done.err
    if form:
        assert json.loads(done.out)
    else:
        assert "wham" in done.out
        assert "saved" not in done.out


def test_result_that_cannot_be_shown_is_saved():
    """Nor is it lost when its reader leaves before the end."""
    with mock.patch("malleable.cli.simulate.print_json", side_effect=BrokenPipeError):
        assert malleable("simulate", *FAST, "--json", "--out", "kept").status == 0
    assert Result.read("kept").jobs == 4000


@pytest.mark.parametrize("place", ["", "folder", "folder/", "absent/", "."])
def test_library_never_writes_beside_a_folder(place):
    """`save` takes the name of a file; a folder is no name, and nothing is written beside it."""
    result = simulate("paper", 16, load=0.25, jobs=1000)
    with pytest.raises(MalleableError, match=r"folder|no name"):
        result.save(place)
    assert sorted(path.name for path in Path.cwd().rglob("*")) == ["file", "folder"]


def test_writable_place_leaves_no_trace():
    """Seeing whether a file can be written makes no folders and no files."""
    files.check(Path("new/folders/run.json"))
    assert sorted(path.name for path in Path.cwd().rglob("*")) == ["file", "folder"]


def test_name_that_is_no_text():
    """A policy's file whose name is no UTF-8 can be saved and read back."""
    result = simulate("paper", 16, load=0.25, jobs=1000)
    odd = type(result)(**{**vars(result), "policy": "caf\udce9.py:mine"})
    assert Result.read(odd.save("odd")).policy == "caf\udce9.py:mine"
