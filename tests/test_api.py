"""The facade: every question takes a workload in any form, and takes along only what it needs."""

from __future__ import annotations

import ast
import inspect
import io
import subprocess
import sys
from pathlib import Path

import pytest

from malleable import api, paper_workload
from malleable.errors import MalleableError, ParameterError
from malleable.model import builtin_workloads

VERBS = (
    "allocate", "bound", "bound_for_jobs", "broker_trace", "check_report", "compare", "describe", "draw",
    "explain", "fit_sizes", "fit_speedup", "fit_workload", "listing", "malleabilise", "mean_field", "measure",
    "plan", "play", "read_jobs", "read_trace", "read_workload", "replay", "report", "reproduce", "sweep",
    "write_trace",
)  # fmt: skip
JOBS = [{"id": "a", "class": "class-1", "remaining": 1.0}]
TINY = {"load": 0.25, "jobs": 200, "interpreted": True}
QUESTIONS = {
    "bound": lambda workload: api.bound(workload, 64, 0.25).bound,
    "allocate": lambda workload: api.allocate(workload, JOBS, 4).cores.tolist(),
    "mean_field": lambda workload: api.mean_field(workload, 64, 0.25, starts=0).cost,
    "simulate": lambda workload: api.simulate(workload, 4, **TINY).cost.mean,
    "sweep": lambda workload: api.sweep([(workload, 4, 0.25)], "wham,equi", jobs=200)[0].costs[1].mean,
    "compare": lambda workload: [r.cost.mean for r in api.compare(workload, 4, "wham,equi", **TINY).results],
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_every_question_takes_a_workload_in_any_form(question, monkeypatch):
    """A workload, the name of one, the path of its file and its text on standard input say the same."""
    ask = QUESTIONS[question]
    expected = ask(paper_workload())
    path = builtin_workloads()["paper"]
    assert ask("paper") == ask(path) == ask(str(path)) == expected
    monkeypatch.setattr(sys, "stdin", io.StringIO(path.read_text(encoding="utf-8")))
    assert ask("-") == expected


@pytest.mark.parametrize("question", QUESTIONS)
def test_every_question_refuses_a_workload_that_does_not_exist(question):
    """The sentence is the same whoever is asked."""
    with pytest.raises(MalleableError, match="there is no workload or file 'papr'"):
        QUESTIONS[question]("papr")


def test_a_workload_at_a_load():
    """A load scales the workload to a number of cores, and means nothing without one."""
    assert api.read_workload("paper", 64, 0.5) == paper_workload(64, 0.5)
    assert api.read_workload("paper", 64) == api.read_workload("paper") == paper_workload()
    with pytest.raises(ParameterError, match="share of a number of cores"):
        api.read_workload("paper", load=0.5)


def test_jobs_from_standard_input(monkeypatch):
    """Jobs come from a file or, as -, from standard input."""
    monkeypatch.setattr(sys, "stdin", io.StringIO("id,class,remaining\na,class-1,1.0\n"))
    assert api.read_jobs(paper_workload(), "-").ids == ("a",)


def test_an_effort_that_does_not_exist(tmp_path):
    """The effort of a reproduction goes by its name; another name is an error of ours."""
    with pytest.raises(ParameterError, match="there is no effort 'quik'"):
        api.reproduce(tmp_path, "quik")


def test_every_verb_is_documented():
    """The public functions of the facade are its verbs, each with a docstring."""
    tree = ast.parse(Path(api.__file__).read_text(encoding="utf-8"))
    names = [node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name[0] != "_"]
    assert {*VERBS, "simulate", "ray_executor"} == set(names)
    assert all(inspect.getdoc(getattr(api, name)) for name in names)


def test_allocate_is_light():
    """Asking who gets how many cores now imports neither numba nor SciPy, nor the simulator or the paper."""
    heavy = ("numba", "scipy", "matplotlib", "malleable.simulation", "malleable.paper")
    code = (
        f"import sys, malleable; malleable.allocate('paper', {JOBS!r}, 4); "
        f"print([name for name in {heavy!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=True)
    assert done.stdout.strip() == "[]"
