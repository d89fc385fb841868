"""The pool of worker processes beside Python's: time per empty unit, start, change of width, two cores.

The machine's load is part of what is measured: it stands in the last row.
"""

import os
import time
from concurrent.futures import ProcessPoolExecutor

from malleable.live.workers import Pool

UNITS = 5_000
ROUND_TRIPS = 1_000
SPIN = 1_500_000
REPEATS = 5
NAP = 0.02


def nothing(x=None):
    return x


def spin(_):
    total = 0
    for i in range(SPIN):
        total += i * i
    return total


def seconds(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def best(work, repeats=REPEATS):
    """The least of some timings: what other processes take away is no cost of ours."""
    return min(seconds(work) for _ in range(repeats))


def submit_all(pool):
    for future in [pool.submit(nothing) for _ in range(UNITS)]:
        future.result()


def one_by_one(pool):
    for _ in range(ROUND_TRIPS):
        pool.submit(nothing).result()


def per_unit(pool):
    """Milliseconds per empty unit: mapped, submitted all at once, and one after the other."""
    pool.submit(nothing).result()
    return {
        "mapped": best(lambda: list(pool.map(nothing, range(UNITS)))) / UNITS * 1e3,
        "submitted": best(lambda: submit_all(pool)) / UNITS * 1e3,
        "one by one": best(lambda: one_by_one(pool)) / ROUND_TRIPS * 1e3,
    }


def started(make):
    """Milliseconds until the first outcome of a new pool."""

    def work():
        with make() as pool:
            pool.submit(nothing).result()

    return best(work) * 1e3


def narrowed(pool):
    """Milliseconds from a narrower width until it is in force, while units of 20 ms run."""
    longest = 0.0
    for _ in range(REPEATS):
        pool.set_width(2)
        futures = [pool.submit(time.sleep, NAP) for _ in range(20)]
        futures[0].result()
        start = time.perf_counter()
        pool.set_width(1)
        while pool.width_in_use > 1:
            time.sleep(0.0005)
        longest = max(longest, time.perf_counter() - start)
        for future in futures:
            future.cancel()
    pool.set_width(2)
    return longest * 1e3


def speedup(one, two):
    """How much faster two workers are than one, each at its best of interleaved timings."""
    times = [(seconds(one), seconds(two)) for _ in range(REPEATS)]
    return min(time for time, _ in times) / min(time for _, time in times)


def at_width(pool, width):
    """Units that compute, on so many workers of a pool."""

    def work():
        pool.set_width(width)
        list(pool.map(spin, range(8)))

    return work


def another_worker():
    """Milliseconds from a wider width until the outcome of a worker that had to be started."""
    times = []
    for _ in range(REPEATS):
        with Pool(1) as pool:
            pool.submit(nothing).result()
            held = pool.submit(time.sleep, 0.2)
            times.append(seconds(lambda pool=pool: (pool.set_width(2), pool.submit(nothing).result())))
            held.result()
    return min(times) * 1e3


def idle(pool):
    """Share of a core that an idle pool takes, in the process that holds it."""
    before = time.process_time()
    time.sleep(1.0)
    return time.process_time() - before


def run():
    rows = []
    with ProcessPoolExecutor(2) as theirs:
        rows += [{"what": f"ms per unit, Python's, {how}", "value": t} for how, t in per_unit(theirs).items()]
    with Pool(2) as ours:
        rows += [{"what": f"ms per unit, {how}", "value": t} for how, t in per_unit(ours).items()]
        rows.append(
            {
                "what": f"ms until a narrower width is in force, units of {NAP * 1e3:g}",
                "value": narrowed(ours),
            }
        )
        gain = speedup(at_width(ours, 1), at_width(ours, 2))
        rows.append({"what": "two cores over one, units that compute", "value": gain})
        rows.append({"what": "share of a core, idle", "value": idle(ours)})
    with ProcessPoolExecutor(1) as one, ProcessPoolExecutor(2) as two:
        gain = speedup(lambda: list(one.map(spin, range(8))), lambda: list(two.map(spin, range(8))))
        rows.append({"what": "two cores over one, Python's", "value": gain})
    rows.append({"what": "ms until a worker that had to be started answers", "value": another_worker()})
    rows.append({"what": "ms until the first outcome", "value": started(lambda: Pool(1))})
    rows.append(
        {"what": "ms until the first outcome, Python's", "value": started(lambda: ProcessPoolExecutor(1))}
    )
    rows.append({"what": "load of the machine, last minute", "value": os.getloadavg()[0]})
    return rows
