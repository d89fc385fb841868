"""A process of its own: seconds until the first answer, cold and with cached code, and its peak memory."""

import json
import os
import subprocess
import sys
import tempfile

FIRST = """
import json, time
start = time.perf_counter()
from malleable import simulate
simulate("paper", 64, {policy!r}, load=0.25, jobs=1000)
print(json.dumps({{"seconds": time.perf_counter() - start}}))
"""
LARGE = """
import json, time
from pathlib import Path
from malleable import simulate
start = time.perf_counter()
simulate("paper", {cores}, "wham", load=0.25, jobs={jobs})
# Not getrusage: its maximum starts from that of the process that forked this one.
status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
peak = int(status["VmHWM"].split()[0]) / 1024
print(json.dumps({{"seconds": time.perf_counter() - start, "peak": peak}}))
"""


def run_in_process(code: str, cache: str | None = None) -> dict:
    there = dict(os.environ) if cache is None else {**os.environ, "NUMBA_CACHE_DIR": cache}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=there, check=True)
    return json.loads(done.stdout)


def run() -> list[dict]:
    rows = []
    for policy in ("wham", "hesrpt"):
        with tempfile.TemporaryDirectory() as cache:
            for state in ("cold", "cached"):
                found = run_in_process(FIRST.format(policy=policy), cache)
                rows.append({"what": f"first call, {policy}, {state}", "seconds": found["seconds"], "MB": ""})
    for cores, jobs in ((64, 1_000_000), (1_000_000, 10_000_000)):
        found = run_in_process(LARGE.format(cores=cores, jobs=jobs))
        what = f"wham on {cores} cores, {jobs} jobs"
        rows.append({"what": what, "seconds": found["seconds"], "MB": found["peak"]})
    return rows
