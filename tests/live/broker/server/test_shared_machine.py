"""Two builds and a parallel search at once share the cores of one broker: never more run than there are."""

from __future__ import annotations

import shutil
import sys

import pytest

from malleable.live.broker.http_client import BrokerClient
from support.broker_server import serve_process
from support.living import running, wait_until
from support.shell import PATIENCE

CORES = 2
UNITS = 12
UNIT = """\
#!/bin/sh
echo start >> log
sleep 0.1
echo end >> log
: > "$1"
"""
SEARCH = """\
import time
import malleable.live.joblib
from joblib import Parallel, delayed, parallel_config
from pathlib import Path

def note(what):
    with open("log", "a") as log:
        log.write(what + "\\n")

def unit(i):
    note("start")
    Path("searching").touch()
    time.sleep(0.1)
    note("end")
    return i

with parallel_config(backend="malleable", job_class="search"):
    print(Parallel(batch_size=1)(delayed(unit)(i) for i in range(UNITS)))
"""
MAKEFILE = """\
all: $(foreach n,NUMBERS,made-$(n))
made-%:
\t@sh unit.sh $@
"""


def most_at_once(log):
    """The most units that ran at a time; each notes its start after it has begun, its end before it ends."""
    running = most = 0
    for line in log.read_text().splitlines():
        running += 1 if line == "start" else -1
        most = max(most, running)
    return most


@pytest.mark.skipif(not shutil.which("make"), reason="there is no make")
def test_builds_and_a_search_share_the_cores():
    """make, ninja and joblib at once: all their units are done, and never do more than two run.

    The builds are never paused: commands that a pause caught go on together, on the cores there are then.
    """
    numbers, more = ([str(n) for n in range(times * UNITS)] for times in (1, 3))
    with serve_process("--no-bind", "--cores", str(CORES)) as broker, BrokerClient(broker.path) as client:
        folder = broker.state.parent / "work"
        folder.mkdir()
        (folder / "unit.sh").write_text(UNIT)
        (folder / "Makefile").write_text(MAKEFILE.replace("NUMBERS", " ".join(more)))
        builds = "".join(f"build built-{n}: work\n" for n in numbers)
        (folder / "build.ninja").write_text(f"rule work\n  command = sh unit.sh $out\n{builds}")
        (folder / "search.py").write_text(SEARCH.replace("UNITS", str(UNITS)))

        def submit(build):
            known = {"folder": str(folder), "environment": broker.environment, "never_pause": True}
            return client.submit({"command": [build], **known})

        jobs = [submit("make")]
        with running(sys.executable, "search.py", cwd=folder, env=broker.environment) as search:
            wait_until((folder / "searching").exists, "the search")
            jobs.append(submit("ninja"))
            out, err = search.communicate(timeout=PATIENCE)
        assert out.strip() == str([*range(UNITS)]), err
        for job in jobs:
            wait_until(lambda job=job: client.job(job)["state"] == "finished", f"the end of job {job}")
        for name, made in (("made", more), ("built", numbers)):
            assert {path.name for path in folder.glob(f"{name}-*")} == {f"{name}-{n}" for n in made}
        assert (folder / "log").read_text().split().count("end") == 5 * UNITS
        assert most_at_once(folder / "log") == CORES
