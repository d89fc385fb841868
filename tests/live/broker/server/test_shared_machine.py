"""Two builds and a parallel search at once share the cores of one broker: never more run than there are."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from malleable.live.broker.http_client import BrokerClient
from support.broker_server import serve_process
from support.living import wait_until
from support.shell import PATIENCE

CORES = 2
UNITS = 12
UNIT = """\
#!/bin/sh
: > "run/$$"
sleep 0.1
rm "run/$$"
: > "$1"
"""
SEARCH = """\
import os, time
from pathlib import Path
import malleable.live.joblib
from joblib import Parallel, delayed, parallel_config

def unit(i):
    mark = Path(f"run/{os.getpid()}")
    mark.touch()
    time.sleep(0.1)
    mark.unlink()
    return i

with parallel_config(backend="malleable", job_class="search"):
    print(Parallel(batch_size=1)(delayed(unit)(i) for i in range(UNITS)))
"""
MAKEFILE = """\
all: $(foreach n,NUMBERS,made-$(n))
made-%:
\t@sh unit.sh $@
"""


def running(folder):
    """Units that run: those of processes that are not stopped, or about to be."""
    return sum(_runs(mark.name) for mark in folder.iterdir())


def _runs(pid):
    try:
        lines = dict(line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    except OSError:  # it has just ended
        return False
    stopping = (int(lines["ShdPnd"], 16) | int(lines["SigPnd"], 16)) & (1 << 18)  # SIGSTOP is number 19
    return lines["State"][0] not in "TtZ" and not stopping


@pytest.mark.skipif(not shutil.which("make"), reason="there is no make")
def test_builds_and_a_search_share_the_cores():
    """make, ninja and joblib at once: all their units are done, and at most two run at any 10 ms sample.

    The builds are never paused: commands that a pause caught go on together, on the cores there are then.
    """
    numbers = [str(n) for n in range(UNITS)]
    with serve_process("--no-bind", "--cores", str(CORES)) as broker:
        folder = broker.state.parent / "work"
        (folder / "run").mkdir(parents=True)
        (folder / "unit.sh").write_text(UNIT)
        (folder / "Makefile").write_text(MAKEFILE.replace("NUMBERS", " ".join(numbers)))
        builds = "".join(f"build built-{n}: work\n" for n in numbers)
        (folder / "build.ninja").write_text(f"rule work\n  command = sh unit.sh $out\n{builds}")
        (folder / "search.py").write_text(SEARCH.replace("UNITS", str(UNITS)))
        samples, over = [], threading.Event()

        def sample():
            while not over.wait(0.01):
                samples.append(running(folder / "run"))

        sampler = threading.Thread(target=sample)
        sampler.start()
        try:
            with BrokerClient(broker.path) as client:
                known = {"folder": str(folder), "environment": broker.environment, "never_pause": True}
                jobs = [client.submit({"command": [build], **known}) for build in ("make", "ninja")]
            search = subprocess.run(
                [sys.executable, "search.py"],
                cwd=folder,
                env=broker.environment,
                capture_output=True,
                encoding="utf-8",
                timeout=PATIENCE,
                check=False,
            )
            assert search.stdout.strip() == str([*range(UNITS)]), search.stderr
            with BrokerClient(broker.path) as client:
                for job in jobs:
                    wait_until(
                        lambda job=job: client.job(job)["state"] == "finished", f"the end of job {job}"
                    )
        finally:
            over.set()
            sampler.join()
        for name in ("made", "built"):
            assert {path.name for path in folder.glob(f"{name}-*")} == {f"{name}-{n}" for n in numbers}
        assert max(samples) == CORES, max(samples)
