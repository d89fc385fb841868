"""What a broker gains on real cores over doing nothing: weighted mean response, in twelve mixes of jobs.

Each mix is run with the broker (Executors, `malleable submit`) and plainly: every script has a
`ProcessPoolExecutor` of all cores, builds are `make -j` of all cores, programs just run, and the operating
system shares. Both have the same random jobs; which side comes first alternates. The broker has met the
classes once, except in the mixes that are about first meetings, where each run has a broker of its own.

    python -m benchmarks.bench_gain                        all mixes, five runs each: ten minutes on two cores
    python -m benchmarks.bench_gain --quick --mixes equal,builds
    python -m benchmarks.bench_gain --show out/gain.json --markdown      the table of the documentation

A result is Σ w·(end − arrival) / Σ w over the jobs of a run, over the same of the plain side; its logarithm
has a t interval over the runs. All computes and nothing sleeps, so the machine must be idle otherwise.
"""

import argparse
import json
import math
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from benchmarks import gain_job
from benchmarks.__main__ import machine, show
from benchmarks.gain_mixes import MIXES, Job, unit_seconds
from malleable.live.system.process_tree import environment, processes
from malleable.statistics.intervals import t_quantile

RUNS, QUICK_RUNS = 5, 2
QUICK_SCALE = 0.35
SEED = 20_261_118
CONFIDENCE = 0.95
BROKER, PLAIN = "broker", "plain"
JOB_SECONDS = 120.0
"""Seconds after which a job that has not ended is an error."""
ENDING_SECONDS = 20.0
"""Seconds that a broker has to end."""
BUSY = 0.3
"""A load of the machine above this is said: other processes take cores, and not the same from both sides."""
SPIN = str(Path(gain_job.__file__).resolve())
MAKEFILE = "all: $(addprefix unit-,$(UNITS))\nunit-%:\n\t@$(SPIN) $*\n.PHONY: all\n"


class Played(NamedTuple):
    """A job as it was carried out: seconds from the start of its run."""

    job_class: str
    weight: float
    arrival: float
    end: float

    @property
    def response(self) -> float:
        return self.end - self.arrival


class Started(NamedTuple):
    """A job that can be carried out: how many steps its units have on this machine."""

    job: Job
    steps: tuple[int, ...]


class Options(NamedTuple):
    """How to measure: runs of each mix, how long they are, and how fast this machine computes."""

    runs: int
    seed: int
    scale: float
    speed: float
    policy: str | None


def steps_per_second() -> float:
    """How fast this machine computes, at its best of some attempts."""
    steps, best = 200_000, math.inf
    for _ in range(20):
        started = time.perf_counter()
        gain_job.spin(steps)
        best = min(best, time.perf_counter() - started)
    return steps / best


def drawn(mix: str, seed: int, scale: float, speed: float) -> list[Started]:
    """The jobs of one run of a mix, the same for every side that is played."""
    rng = np.random.default_rng([*mix.encode(), seed])
    cores = os.cpu_count() or 1
    return [
        Started(
            replace(job, arrival=job.arrival * scale),
            tuple(max(1, round(seconds * scale * speed)) for seconds in unit_seconds(rng, job, cores)),
        )
        for job in MIXES[mix].draw(rng)
    ]


def command(started: Started, side: str, folder: Path) -> list[str]:
    """What someone would type."""
    job, steps = started
    if job.form == "sweep":
        declared = None if job.declared is None else max(1, round(job.declared * len(steps)))
        told = {
            "class": job.job_class, "weight": job.weight, "units": steps, "lazy": job.lazy,
            "declared": declared, "workers": job.workers,
        }  # fmt: skip
        return [sys.executable, SPIN, side, json.dumps(told)]
    if job.form == "program":
        words = [sys.executable, SPIN, "spin", str(steps[0])]
    else:
        # A number per command that no other has: make runs each target once.
        units = " ".join(f"{each + i}" for i, each in enumerate(sorted(steps)))
        words = ["make", "-C", str(folder), f"UNITS={units}", f"SPIN={sys.executable} -S {SPIN} spin"]
        if side == PLAIN:
            words.append(f"-j{os.cpu_count()}")
    if side == PLAIN:
        return words
    submit = [sys.executable, "-m", "malleable", "submit", "--wait", "--class", job.job_class]
    return [*submit, "--weight", str(job.weight), "--", *words]


class Process:
    """A job's process, started at its time; a thread waits for each."""

    def __init__(self, words: list[str], delay: float) -> None:
        self._words, self._delay = words, delay
        self._over = threading.Event()
        self.process: subprocess.Popen[str] | None = None
        self.end, self.problem = math.nan, ""
        self.thread = threading.Thread(target=self._live, daemon=True)

    def _live(self) -> None:
        if self._over.wait(self._delay):
            return
        self.process = subprocess.Popen(
            self._words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            start_new_session=True,
        )  # fmt: skip
        try:
            _, said = self.process.communicate(timeout=JOB_SECONDS)
        except subprocess.TimeoutExpired:
            self.problem = f"it has not ended after {JOB_SECONDS:g} s"
            return
        self.end = time.perf_counter()
        if self.process.returncode:
            self.problem = f"it ended with {self.process.returncode}: {said.strip()[-300:]}"

    def stop(self) -> None:
        """End it, if it runs, and start it no more."""
        self._over.set()
        if self.process is not None and self.process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)


def play(jobs: list[Started], side: str, folder: Path) -> list[Played]:
    """Start all jobs at their times and wait for them; none is left behind, whatever happens."""
    begun = time.perf_counter()
    running = [Process(command(each, side, folder), each.job.arrival) for each in jobs]
    try:
        for each in running:
            each.thread.start()
        for each in running:
            each.thread.join()
    finally:
        for each in running:
            each.stop()
    for each, (job, _) in zip(running, jobs, strict=True):
        if each.problem:
            raise RuntimeError(f"a job of class {job.job_class} ({side}): {each.problem}")
    return [
        Played(job.job_class, job.weight, job.arrival, each.end - begun)
        for each, (job, _) in zip(running, jobs, strict=True)
    ]


@contextmanager
def broker(policy: str | None) -> Iterator[Path]:
    """A broker that has met nothing, in folders of its own; at the end nothing of it is left."""
    folder = Path(tempfile.mkdtemp(prefix="m-"))
    (folder / "Makefile").write_text(MAKEFILE)
    before = dict(os.environ)
    os.environ |= {"MALLEABLE_HOME": str(folder / "home"), "MALLEABLE_STATE": str(folder / "state")}
    os.environ.pop("MALLEABLE_BROKER", None)
    words = [sys.executable, "-m", "malleable", "serve", *(["--policy", policy] if policy else [])]
    try:
        with (
            (folder / "log").open("w") as log,
            subprocess.Popen(
                words, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True
            ) as process,
        ):
            if not process.stdout.readline():  # type: ignore[union-attr]
                raise RuntimeError(f"the broker does not start: {(folder / 'log').read_text()[-300:]}")
            try:
                yield folder
            finally:
                process.terminate()
                with suppress(subprocess.TimeoutExpired):
                    process.wait(ENDING_SECONDS)
                process.kill()
    finally:
        end_all(folder)
        os.environ.clear()
        os.environ.update(before)
        shutil.rmtree(folder, ignore_errors=True)


def end_all(folder: Path) -> None:
    """End what has this folder in its environment: supervisors and programs outlive a broker."""
    mark = f"MALLEABLE_HOME={folder / 'home'}".encode()
    for process in processes():
        if process.pid != os.getpid() and mark in environment(process.pid):
            with suppress(ProcessLookupError, PermissionError):
                os.kill(process.pid, signal.SIGKILL)


def weighted(played: list[Played]) -> float:
    """Weighted mean response."""
    return sum(one.weight * one.response for one in played) / sum(one.weight for one in played)


def pair(mix: str, run: int, folder: Path, options: Options) -> dict:
    """Both sides of one run, the one first in even runs and the other in odd ones."""
    jobs = drawn(mix, options.seed + run, options.scale, options.speed)
    sides = (BROKER, PLAIN) if run % 2 == 0 else (PLAIN, BROKER)
    found = {side: play(jobs, side, folder) for side in sides}
    return {"mix": mix, "run": run} | {
        side: [one._asdict() for one in found[side]] for side in (BROKER, PLAIN)
    }


def measured(mix: str, options: Options, step: Callable[[], None]) -> Iterator[dict]:
    """All runs of a mix."""
    if MIXES[mix].first_ever:
        for run in range(options.runs):
            with broker(options.policy) as folder:
                yield pair(mix, run, folder, options)
            step()
        return
    with broker(options.policy) as folder:
        play(drawn(mix, options.seed - 1, options.scale, options.speed), BROKER, folder)
        for run in range(options.runs):
            yield pair(mix, run, folder, options)
            step()


def measure(mixes: list[str], options: Options) -> Iterator[dict]:
    """All runs of all mixes, with a bar on the way."""
    columns = [TextColumn("{task.description:16}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()]
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=len(mixes) * options.runs)
        for mix in mixes:
            bar.update(task, description=mix)
            yield from measured(mix, options, lambda: bar.advance(task))


class Ratio(NamedTuple):
    """A mean of logarithms of ratios, as a ratio, and its interval; none of one run."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        interval = "" if math.isnan(self.low) else f" ({self.low:.2f} – {self.high:.2f})"
        return f"{self.mean:.2f}{interval}"


def ratio(logarithms: list[float]) -> Ratio:
    """The geometric mean, with its t interval."""
    count, mean = len(logarithms), statistics.fmean(logarithms)
    half = math.nan
    if count > 1:
        half = t_quantile(count - 1, CONFIDENCE) * statistics.stdev(logarithms) / math.sqrt(count)
    return Ratio(math.exp(mean), math.exp(mean - half), math.exp(mean + half))


def gain(pair: dict) -> float:
    """Logarithm of the broker's weighted mean response over the plain one."""
    return math.log(weighted(sides(pair)[0]) / weighted(sides(pair)[1]))


def sides(pair: dict) -> tuple[list[Played], list[Played]]:
    """The jobs of a run with the broker, and the same jobs without."""
    return [Played(**one) for one in pair[BROKER]], [Played(**one) for one in pair[PLAIN]]


def worst(pair: dict) -> float:
    """Logarithm of the largest ratio of a job's responses."""
    return math.log(max(ours.response / theirs.response for ours, theirs in zip(*sides(pair), strict=True)))


def longest(pair: dict) -> float:
    """Logarithm of the ratio of the times at which all was done."""
    ours, theirs = (max(one.end for one in side) for side in sides(pair))
    return math.log(ours / theirs)


def described(mix: str, pairs: list[dict]) -> dict:
    """A row of the table: what the mix is, both weighted means, and their ratio."""
    ours, theirs = (statistics.fmean(weighted(sides(each)[side]) for each in pairs) for side in range(2))
    return {
        "mix": mix,
        "what": MIXES[mix].what,
        "plain, s": round(theirs, 2),
        "broker, s": round(ours, 2),
        "ratio": str(ratio([gain(each) for each in pairs])),
        "worst job": round(math.exp(statistics.fmean(map(worst, pairs))), 2),
        "all done": round(math.exp(statistics.fmean(map(longest, pairs))), 2),
    }


def together(pairs: list[dict], *, first_ever: bool) -> Ratio | None:
    """The geometric mean over mixes; each run of all of them counts as one measurement."""
    runs: dict[int, list[float]] = {}
    for each in pairs:
        if MIXES[each["mix"]].first_ever == first_ever:
            runs.setdefault(each["run"], []).append(gain(each))
    most = max(map(len, runs.values()), default=0)
    whole = [statistics.fmean(logarithms) for logarithms in runs.values() if len(logarithms) == most]
    return ratio(whole) if whole else None


def table(pairs: list[dict]) -> list[dict]:
    """A row for each mix that was run, and the geometric means."""
    names = dict.fromkeys(each["mix"] for each in pairs)
    rows = [described(mix, [each for each in pairs if each["mix"] == mix]) for mix in names]
    for what, first_ever in (("classes that the broker has met", False), ("first meetings", True)):
        found = together(pairs, first_ever=first_ever)
        if found is not None:
            rows.append(dict.fromkeys(rows[0], "") | {"mix": "together", "what": what, "ratio": str(found)})
    return rows


def markdown(rows: list[dict]) -> str:
    """The table for the documentation."""
    lines = [f"| {' | '.join(rows[0])} |", f"|{'---|' * len(rows[0])}"]
    return "\n".join(lines + [f"| {' | '.join(map(str, row.values()))} |" for row in rows])


def options_for(runs: int, seed: int, scale: float, policy: str | None) -> Options:
    """Options for this machine, as idle as it is."""
    load = os.getloadavg()[0]
    if load > BUSY:
        print(
            f"the load of the machine is {load:.1f}: others compute, too, and ratios mean little",
            file=sys.stderr,
        )
    return Options(runs, seed, scale, steps_per_second(), policy)


def run() -> list[dict]:
    return table(list(measure([*MIXES], options_for(RUNS, SEED, 1.0, None))))


def chosen_mixes(text: str) -> list[str]:
    """Names with commas between them; an unknown one is said with all that there are."""
    names = text.split(",")
    for name in names:
        if name not in MIXES:
            raise argparse.ArgumentTypeError(f"no mix {name!r}; there are {', '.join(MIXES)}")
    return names


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--mixes", type=chosen_mixes, default=[*MIXES], help="names, with commas between them"
    )
    parser.add_argument(
        "--runs", type=int, default=None, help=f"of each mix; {RUNS}, or {QUICK_RUNS} if quick"
    )
    parser.add_argument(
        "--quick", action="store_true", help="smaller jobs and fewer runs: does it work at all?"
    )
    parser.add_argument("--policy", default=None, help="of the broker; its default otherwise")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--out", type=Path, default=Path("out") / "gain.json", help="all that was measured")
    parser.add_argument(
        "--show", type=Path, default=None, metavar="FILE", help="measure nothing, and show this"
    )
    parser.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    return parser.parse_args()


def main() -> None:
    asked = parsed()
    if asked.show is not None:
        pairs = json.loads(asked.show.read_text())["runs"]
    else:
        scale, runs = (QUICK_SCALE, QUICK_RUNS) if asked.quick else (1.0, RUNS)
        options = options_for(asked.runs or runs, asked.seed, scale, asked.policy)
        about = {"machine": machine(), "load": os.getloadavg()[0], "options": options._asdict()}
        pairs = []
        asked.out.parent.mkdir(parents=True, exist_ok=True)
        for each in measure(asked.mixes, options):
            pairs.append(each)
            asked.out.write_text(json.dumps({**about, "table": table(pairs), "runs": pairs}, indent=1))
    rows = table(pairs)
    if asked.markdown:
        print(markdown(rows))
    else:
        show(f"gain: {__doc__.splitlines()[0]}", rows)


if __name__ == "__main__":
    main()
