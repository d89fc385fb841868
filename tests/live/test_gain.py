"""What `benchmarks/bench_gain` makes of jobs and times; the measuring itself needs an idle machine."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from malleable.live.system.process_tree import environment, processes
from support.broker_server import short_folder
from support.living import wait_until

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))
from benchmarks import bench_gain as gain  # noqa: E402 - the root was not on the path
from benchmarks.gain_mixes import MIXES  # noqa: E402 - ditto

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the pool runs on Linux")
SPEED = 1e7
COMMAND = [
    sys.executable, "-m", "benchmarks.bench_gain", "--quick", "--runs", "1", "--mixes",
    "builds,programs,first-unequal", "--out",
]  # fmt: skip


def pair(mix, run, ours, theirs):
    """A run of two jobs, of weights 3 and 1, that come at 0 and 1."""

    def played(ends):
        return [
            {"job_class": "a", "weight": weight, "arrival": arrival, "end": end}
            for weight, arrival, end in zip((3.0, 1.0), (0.0, 1.0), ends, strict=True)
        ]

    return {"mix": mix, "run": run, "broker": played(ours), "plain": played(theirs)}


@pytest.mark.parametrize("mix", MIXES)
def test_both_sides_have_the_same_jobs(mix):
    """Jobs depend on the mix and the seed only; half the scale is half the work, at half the distances."""
    jobs = gain.drawn(mix, 7, 1.0, SPEED)
    assert jobs == gain.drawn(mix, 7, 1.0, SPEED)
    assert jobs != gain.drawn(mix, 8, 1.0, SPEED)
    half = gain.drawn(mix, 7, 0.5, SPEED)
    for one, other in zip(jobs, half, strict=True):
        assert other.job.arrival == one.job.arrival / 2
        assert sum(other.steps) == pytest.approx(sum(one.steps) / 2, rel=1e-3)
        assert len(other.steps) == len(one.steps)
    assert min(job.arrival for job, _ in jobs) >= 0.0
    assert sum(sum(steps) for _, steps in jobs) / SPEED < 6.0 * (os.cpu_count() or 1)


@pytest.mark.parametrize("mix", MIXES)
def test_commands_differ_in_what_is_compared_only(mix, tmp_path):
    """With the broker a job is an Executor, or is submitted; without it is a pool, or the command itself."""
    for started in gain.drawn(mix, 0, 1.0, SPEED):
        ours, theirs = (gain.command(started, side, tmp_path) for side in ("broker", "plain"))
        if started.job.form == "sweep":
            assert ours[:2] == theirs[:2]
            assert (ours[2], theirs[2]) == ("broker", "plain")
            assert ours[3:] == theirs[3:]
            assert json.loads(ours[3])["units"] == list(started.steps)
        else:
            words = ours[ours.index("--") + 1 :]
            assert theirs[: len(words)] == words
            assert theirs[len(words) :] == ([f"-j{os.cpu_count()}"] if started.job.form == "build" else [])


def test_a_build_has_a_target_for_each_unit():
    """Make runs a target once, so no two units of a build have the same number of steps."""
    (build,) = [started for started in gain.drawn("builds", 0, 1.0, SPEED) if started.job.form == "build"]
    words = gain.command(build, "broker", Path("there"))
    units = next(word for word in words if word.startswith("UNITS=")).removeprefix("UNITS=").split()
    assert len(set(units)) == len(units) == len(build.steps)


def test_ratios_by_hand():
    """Weighted means of responses, their ratio over runs with its interval, the worst job, and all mixes."""
    pairs = [pair("equal", 0, (1.0, 3.0), (2.0, 3.0)), pair("equal", 1, (2.0, 5.0), (2.0, 3.0))]
    # Responses: 1 and 2, or 2 and 4, against 2 and 2.
    assert [gain.weighted(gain.sides(each)[0]) for each in pairs] == [1.25, 2.5]
    assert [math.exp(gain.gain(each)) for each in pairs] == pytest.approx([0.625, 1.25])
    assert [math.exp(gain.worst(each)) for each in pairs] == pytest.approx([1.0, 2.0])
    assert [math.exp(gain.longest(each)) for each in pairs] == pytest.approx([1.0, 5.0 / 3.0])
    found = gain.ratio([gain.gain(each) for each in pairs])
    half = 12.706204736 * math.log(2.0) / 2.0  # t for one degree of freedom, times the standard error
    assert found.mean == pytest.approx(math.sqrt(0.625 * 1.25))
    assert math.log(found.high / found.mean) == pytest.approx(half)
    assert math.log(found.mean / found.low) == pytest.approx(half)
    others = [pair("queries", run, (4.0, 5.0), (2.0, 3.0)) for run in range(2)]
    assert gain.together(pairs + others, first_ever=False).mean == pytest.approx(math.sqrt(found.mean * 2.0))
    assert gain.together(pairs, first_ever=True) is None


def test_the_table_is_written_not_typed(tmp_path):
    """Shown from a file, as Markdown: a row for each mix, and the means of both kinds."""
    pairs = [pair(mix, run, (1.0, 3.0), (2.0, 3.0)) for mix in ("equal", "first-unequal") for run in range(2)]
    kept = tmp_path / "gain.json"
    kept.write_text(json.dumps({"runs": pairs}))
    command = [sys.executable, "-m", "benchmarks.bench_gain", "--show", str(kept), "--markdown"]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=120, check=False, cwd=ROOT)
    assert done.stderr == ""
    head, rule, *rows = done.stdout.splitlines()
    assert head.startswith("| mix | what | plain, s | broker, s | ratio |")
    assert rule.count("|") == head.count("|")
    assert [row.split(" | ")[0].strip("| ") for row in rows] == [
        "equal",
        "first-unequal",
        "together",
        "together",
    ]
    assert " 0.62 (0.62 – 0.62) " in rows[0]


def test_an_unknown_mix_is_named():
    """A name that is wrong: one line with all names, before anything is measured."""
    with pytest.raises(gain.argparse.ArgumentTypeError, match="no mix 'queues'; there are unequal, "):
        gain.chosen_mixes("equal,queues")


@pytest.mark.slow
@pytest.mark.parametrize("stopped", [False, True])
def test_a_mix_is_played_and_nothing_is_left(stopped):
    """Sweeps, programs and builds on both sides; after the end, or Ctrl-C, no process of them is there."""
    with short_folder() as folder:
        out = folder / "gain.json"
        there = {**os.environ, "TMPDIR": str(folder)}
        with subprocess.Popen([*COMMAND, str(out)], env=there, cwd=ROOT, stderr=subprocess.PIPE) as process:
            try:
                if stopped:
                    wait_until(lambda: len(left(folder)) > 5, "jobs that run")
                    process.send_signal(signal.SIGINT)
                _, said = process.communicate(timeout=500.0)
            finally:
                process.kill()
        assert left(folder) == []
        assert [*folder.glob("m-*")] == []
        if stopped:
            assert process.returncode != 0
            return
        assert process.returncode == 0, said
        found = json.loads(out.read_text())["runs"]
    assert [(one["mix"], len(one["broker"])) for one in found] == [
        ("builds", 3),
        ("programs", 6),
        ("first-unequal", 3),
    ]
    for one in found:
        assert all(job["end"] > job["arrival"] for side in ("broker", "plain") for job in one[side])


def left(folder):
    """Processes that know of a broker in a folder."""
    mark = f"MALLEABLE_HOME={folder}/".encode()
    return [one.pid for one in processes() if any(mark in word for word in environment(one.pid))]
