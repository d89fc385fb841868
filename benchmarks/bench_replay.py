"""Logs and replays: a million rows read, events per second under WHAM, and the NASA log to its last figure.

Goals: a million-row SWF in at most 5 s; WHAM at 2 million events per second or more; the NASA log with six
policies, bound and report in at most 30 s on two cores.
"""

import tempfile
import time
from pathlib import Path

import numpy as np

from malleable import api
from malleable.replays import replay

ROWS = 10**6
NASA = Path(__file__).parents[2] / "shared" / "data" / "traces" / "NASA-iPSC-1993-3.1-cln.swf.gz"
POLICIES = "wham,easy,fcfs,equi,hesrpt,greedy"
CORES = 1024


def write(path: Path) -> None:
    """A log of a million jobs, with a load of about one half."""
    rng = np.random.default_rng(0)
    submit = np.cumsum(rng.exponential(30.0, ROWS)).astype(int)
    run = rng.lognormal(5.0, 1.5, ROWS).astype(int) + 1
    width = 2 ** rng.integers(0, 6, ROWS)
    columns = np.column_stack([submit, run, width]).tolist()
    lines = (
        f"{i} {a} -1 {t} {k} -1 -1 {k} {2 * t} -1 1 {i % 200} 1 {i % 30} 0 -1 -1 -1"
        for i, (a, t, k) in enumerate(columns, 1)
    )
    path.write_text(f"; Version: 2.2\n; MaxProcs: {CORES}\n" + "\n".join(lines) + "\n")


def timed(work):
    started = time.perf_counter()
    return work(), time.perf_counter() - started


def run() -> list[dict]:
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "million.swf"
        write(log)
        trace, seconds = timed(lambda: api.read_trace(log))
        rows.append({"what": "a million rows of SWF read", "seconds": seconds, "goal": 5.0})
        jobs, seconds = timed(lambda: api.malleabilise(trace, classes="application", cores=CORES))
        rows.append({"what": "made malleable", "seconds": seconds, "goal": ""})
        replay(jobs, CORES, "wham", bound=False)  # compiles
        for name in ("wham", "equi", "fcfs"):
            found = replay(jobs, CORES, name, bound=False).schedules[0]
            rate = found.events / found.seconds
            rows.append(
                {"what": f"events per second, {name}", "seconds": rate, "goal": 2e6 if name == "wham" else ""}
            )
        if NASA.is_file():
            page = Path(folder) / "nasa.html"
            _, seconds = timed(lambda: api.report(api.replay(NASA, 128, POLICIES), page))
            rows.append({"what": "NASA: six policies, bound and report", "seconds": seconds, "goal": 30.0})
    return rows
