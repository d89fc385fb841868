"""What the command line says of machines that make no sense: one line, a hint, and nothing half-written."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.cli_checks import as_json, assert_one_line
from support.cli_files import CLASS
from support.shell import malleable

COSTS = """\
def raises(before, after):
    return 1 / 0


def nan(before, after):
    return float("nan")


def negative(before, after):
    return -1.0


def words(before, after):
    return "long"


def one_argument(before):
    return 0.0


def fine(before, after):
    return 0.1
"""
RUN = ("--jobs", "200", "--interpreted")
COMMANDS = {
    "bound": ("bound", "w.toml", "--cores", "8"),
    "simulate": ("simulate", "w.toml", "--cores", "8", *RUN, "--out", "result"),
    "compare": ("compare", "w.toml", "--cores", "8", "--policies", "wham,equi", *RUN, "--out", "result"),
    "allocate": ("allocate", "w.toml", "--cores", "8", "--jobs", "jobs.csv"),
}
MEAN_FIELD = ("meanfield", "w.toml", "--cores", "8")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A folder with jobs and costs of a resize."""
    monkeypatch.chdir(tmp_path)
    Path("jobs.csv").write_text("id,class,remaining\na,etl,1.0\nb,etl,2.0\n")
    Path("costs.py").write_text(COSTS)


def workload(*lines):
    """Write a workload of one class with more keys."""
    Path("w.toml").write_text(CLASS + "\n".join(lines) + "\n")


def refused(command, *words):
    """The command says what is wrong in one line with a hint, and writes nothing."""
    before = sorted(p.name for p in Path().iterdir() if p.name != "__pycache__")
    done = malleable(*command)
    assert_one_line(done, *words)
    assert "\nhint: " in done.err or "must be a number" in done.err
    assert sorted(p.name for p in Path().iterdir() if p.name != "__pycache__") == before


WRONG_KEYS = [
    ('widths = "wide"', "classes[0].widths: there are no widths 'wide'"),
    ("widths = []", "not a choice of widths: []"),
    ("widths = true", "not a choice of widths: True"),
    ("widths = [0]", "a width must be a whole number of at least 1, got 0"),
    ("widths = [1.5]", "a width must be a whole number of at least 1, got 1.5"),
    ("widths = { min = 4, max = 2 }", "no width lies between min = 4 and max = 2"),
    ("widths = { mim = 4 }", "widths have no key 'mim'"),
    ('shape = "rigid"', "classes[0].width: a rigid job needs its width"),
    ('shape = "rigid"\nwidth = 0', "classes[0].width: must be greater than or equal to 1, got 0"),
    ('shape = "rigid"\nwidth = 2\nwidths = [1, 2]', "a rigid job has one width, no choice of them"),
    ('shape = "moldable"\nwidth = 3', "a moldable job has no width of its own"),
    ("width = 3", "a malleable job has no width of its own"),
    ('shape = "elastic"', "must be 'malleable', 'moldable' or 'rigid', got 'elastic'"),
    ("resize = { pause = -1 }", "classes[0].resize.pause: must be greater than or equal to 0, got -1"),
    ("resize = { pause = nan }", "classes[0].resize.pause: must be a finite number, got nan"),
    ("resize = { pause = inf }", "classes[0].resize.pause: must be a finite number, got inf"),
    ("resize = { work = -1 }", "classes[0].resize.work: must be greater than or equal to 0, got -1"),
    ("resize = { puase = 1 }", "did you mean 'pause'?"),
    ("resize = 3", "classes[0].resize: must be a table, got 3"),
    ('resize = { pause = "3" }', "classes[0].resize.pause: '3' is not of the form file.py:Name"),
    ('resize = { pause = "cost.py:fine" }', "classes[0].resize.pause: there is no file 'cost.py'"),
    ('resize = { pause = "costs.py:fin" }', "costs.py defines no 'fin'"),
    ("quiet = -1", "classes[0].quiet: must be greater than or equal to 0, got -1"),
    ("wdth = 3", "a class has no key 'wdth'"),
]


@pytest.mark.parametrize(("lines", "problem"), WRONG_KEYS)
def test_keys_of_a_class(lines, problem):
    """A wrong key is named with the place where it stands, by every command."""
    workload(lines)
    for command in COMMANDS.values():
        refused(command, problem)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    "lines", ["widths = [16, 32]", 'shape = "rigid"\nwidth = 16', "widths = { min = 16 }"]
)
def test_jobs_that_do_not_fit(lines, command):
    """Jobs that need more cores than there are can never run: every command says so."""
    workload(lines)
    refused(COMMANDS[command], "class 'etl': its jobs need at least 16 cores, and there are 8")


@pytest.mark.parametrize("command", ["simulate", "compare", "allocate"])
@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("raises", "the pause from 0 to 1 cores raises ZeroDivisionError: division by zero"),
        ("nan", "the pause from 0 to 1 cores is nan"),
        ("negative", "the pause from 0 to 1 cores is -1.0"),
        ("words", "the pause from 0 to 1 cores is 'long'"),
        ("one_argument", "takes 1 positional argument but 2 were given"),
    ],
)
def test_pauses_that_are_no_times(name, problem, command):
    """What a user's function gives instead of a time is told with the widths and the class."""
    workload('widths = "whole"', f'resize = {{ pause = "costs.py:{name}" }}')
    refused(COMMANDS[command], "class 'etl': ", problem)


def test_a_pause_for_every_width():
    """A function of both widths has a table, so it needs a choice of widths."""
    workload('resize = { pause = "costs.py:fine" }')
    refused(COMMANDS["simulate"], "a pause that depends on the widths needs a choice of them")


def test_a_pause_of_ones_own_in_other_processes():
    """Replications on several processes find the user's function."""
    workload('widths = "whole"', 'resize = { pause = "costs.py:fine" }')
    run = ("simulate", "w.toml", "--cores", "8", *RUN, "--replications", "2")
    assert as_json(*run, "--workers", "2")["cost"] == as_json(*run, "--workers", "1")["cost"]


CAPACITIES = [
    ("schedule:times=0/5,cores=8/0", "schedule.cores: the schedule leaves no cores"),
    ("schedule:times=0/5,cores=9/4", "the schedule has 9 cores, the machine 8"),
    ("schedule:times=5/0,cores=8/4", "0 follows 5"),
    ("schedule:times=0/5,cores=8/2.5", "schedule.cores[1]: must be a valid integer, got 2.5"),
    ("failures:nodes=3,up=9,down=1", "8 cores cannot be divided evenly among 3 nodes"),
    ("failures:nodes=2,up=-9,down=1", "up"),
    ("failures:nodes=2,up=9", "missing key 'down'"),
    ("failures", "missing key"),
    ("faillures:nodes=2", "did you mean 'failures'?"),
]


@pytest.mark.parametrize(("capacity", "problem"), CAPACITIES)
def test_capacities(capacity, problem):
    """Cores over time that make no sense are refused by all three commands that take them."""
    workload()
    for command in ("bound", "simulate", "compare"):
        refused((*COMMANDS[command], "--capacity", capacity), problem)


@pytest.mark.parametrize("command", ["simulate", "compare"])
def test_sizes_that_may_be(command):
    """Sizes are known or unknown."""
    workload()
    refused((*COMMANDS[command], "--sizes", "maybe"), "sizes must be known or unknown, got 'maybe'")


@pytest.mark.parametrize(
    "lines",
    [
        "widths = [1, 2]",
        'shape = "rigid"\nwidth = 2',
        'shape = "moldable"',
        "resize = { work = 1 }",
        "quiet = 1",
    ],
)
def test_the_mean_field_is_of_jobs_of_any_width(lines):
    """The fluid equation knows counts alone, so it has nothing to say of such jobs."""
    workload(lines)
    refused(
        MEAN_FIELD, "class 'etl': its jobs cannot have any width at any time for free, so no fluid equation"
    )


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ("a,etl,1.0,rigid,,", "job 'a': width: a rigid job needs its width"),
        ("a,etl,1.0,elastic,,", "job 'a': shape: must be 'malleable', 'moldable' or 'rigid', got 'elastic'"),
        ("a,etl,1.0,moldable,3,", "job 'a': width: a moldable job has no width of its own"),
        ("a,etl,1.0,,x,", "jobs.csv, line 3: job 'a': 'width' must be a number, got 'x'"),
        ("a,etl,1.0,,2.5,", "job 'a': width: must be a valid integer, got 2.5"),
        ("a,etl,1.0,,,1/x", "job 'a': 'widths' must be a number, got 'x'"),
        ("a,etl,1.0,,,1/0", "job 'a': widths: a width must be a whole number of at least 1, got 0"),
        ("a,etl,1.0,,,hole", "job 'a': widths: there are no widths 'hole'"),
        ("a,etl,1.0,,16,", "job 'a' needs at least 16 cores, and there are 8"),
    ],
)
def test_limits_of_single_jobs(row, problem):
    """A mistake in the limits of a job names the job, in a CSV file."""
    workload()
    Path("jobs.csv").write_text(f"id,class,remaining,shape,width,widths\nb,etl,2.0,,,\n{row}\n")
    refused(COMMANDS["allocate"], problem)
