"""A lone job on an idle machine, through a running broker, beside the same on Python's pool.

Each job is a script of its own, from its first import to its end. The goal is at most 2 % and 0.1 s more than
Python's. Both are run in turn, and the least time of each counts. The last rows are about pauses: how long a
job waits for its next unit when it may go on.
"""

import json
import os
import statistics
import subprocess
import sys
import time

from benchmarks.bench_gain import broker
from malleable.live import Executor
from malleable.live.broker.http_client import BrokerClient

REPEATS = 5
PAUSES = 10
UNIT_SECONDS = 0.02
SHARE, SECONDS = 0.02, 0.1
"""How much longer than Python's it may take."""
SCRIPT = """
import json, sys, time
begun = time.perf_counter()
if sys.argv[1] == "plain":
    from concurrent.futures import ProcessPoolExecutor as Pool
else:
    from malleable.live import Executor as Pool

def spin(steps):
    total = 0
    for i in range(steps):
        total += i * i
    return total

def doubled(array):
    return array * 2.0

{prepared}
with Pool() as pool:
    {work}
print(json.dumps(time.perf_counter() - begun))
"""
NUMPY = "import numpy as np"
CASES = {
    "the first outcome": ("", "pool.submit(spin, 1).result()"),
    "two units of 1 s per core": ("", "[*pool.map(spin, [20_000_000] * 4)]"),
    "300 units of 20 ms, mapped": ("", "[*pool.map(spin, [400_000] * 300)]"),
    "5,000 units of 0.5 ms, over a generator": ("", "[*pool.map(spin, (10_000 for _ in range(5_000)))]"),
    "20,000 tiny units, submitted": (
        "",
        "[future.result() for future in [pool.submit(spin, 10) for _ in range(20_000)]]",
    ),
    "100 arrays of 4 MB, there and back": (
        NUMPY,
        "[pool.submit(doubled, np.ones(500_000)).result() for _ in range(100)]",
    ),
    "100 arrays of 4 MB, mapped": (NUMPY, "[*pool.map(doubled, (np.ones(500_000) for _ in range(100)))]"),
    "2,000 arrays of 8 kB, mapped": (NUMPY, "[*pool.map(doubled, (np.ones(1_000) for _ in range(2_000)))]"),
}
"""What a script prepares, and what it does with the pool."""


def seconds(case: str, side: str) -> float:
    prepared, work = CASES[case]
    code = SCRIPT.format(prepared=prepared, work=work)
    done = subprocess.run([sys.executable, "-c", code, side], capture_output=True, text=True, check=True)
    return float(json.loads(done.stdout))


def compared(case: str) -> dict:
    """One row: seconds of both sides, each at its best of some interleaved attempts."""
    both = [(seconds(case, "plain"), seconds(case, "broker")) for _ in range(REPEATS)]
    theirs, ours = (min(column) for column in zip(*both, strict=True))
    allowed = theirs * (1.0 + SHARE) + SECONDS
    return {"what": case, "Python's, s": theirs, "s": ours, "allowed, s": allowed, "within": ours <= allowed}


def unit(_: int) -> tuple[float, float]:
    """Computes for a while; when it began, by a clock that all processes share, and when it ended."""
    begun = time.monotonic()
    while time.monotonic() - begun < UNIT_SECONDS:
        pass
    return begun, time.monotonic()


def resumed() -> dict:
    """From the word that there are cores again to the next unit: the broker decides, the pool obeys."""
    times = []
    cores = os.cpu_count() or 1
    with BrokerClient() as client, Executor("paused") as executor:
        for _ in range(PAUSES):
            futures = [executor.submit(unit, i) for i in range(10 * cores)]
            futures[0].result()
            client.change_machine({"cores": 0})
            while executor._pool.width_in_use > 0:  # noqa: SLF001 - what the broker is told
                time.sleep(0.0005)
            asked = time.monotonic()
            client.change_machine({"cores": cores})
            begun = [future.result()[0] for future in futures]
            times.append(min(moment for moment in begun if moment > asked) - asked)
    what = f"a pause: seconds until the next unit, of {UNIT_SECONDS:g} s, median of {PAUSES}"
    found = statistics.median(times)
    return {
        "what": what,
        "Python's, s": "",
        "s": found,
        "allowed, s": UNIT_SECONDS,
        "within": found <= UNIT_SECONDS,
    }


def run() -> list[dict]:
    with broker(None):
        rows = [compared(case) for case in CASES]
        rows.append(resumed())
    rows.append(
        {**dict.fromkeys(rows[0], ""), "what": "load of the machine, last minute", "s": os.getloadavg()[0]}
    )
    return rows
