"""One job of `bench_gain`, written as a script would be: `gain_job.py broker|plain JOB`, JOB as JSON.

Its units compute; how much stands in the job, so that both sides do the same. `gain_job.py spin STEPS` is a
program that computes, or a command of a build. It imports what a script would, and nothing else.
"""

import json
import sys


def spin(steps: int) -> int:
    """Compute: so many steps of plain Python."""
    total = 0
    for i in range(steps):
        total += i * i
    return total


def pool(where: str, job: dict):
    """The Executor, or Python's pool on all cores."""
    if where == "plain":
        from concurrent.futures import ProcessPoolExecutor  # noqa: PLC0415 - one side each

        return ProcessPoolExecutor(job["workers"])
    from malleable.live import Executor  # noqa: PLC0415 - one side each

    return Executor(job["class"], job["weight"], units=job["declared"], max_workers=job["workers"])


def main(what: str, job: str) -> None:
    if what == "spin":
        spin(int(job))
        return
    told = json.loads(job)
    inputs = (steps for steps in told["units"]) if told["lazy"] else told["units"]
    with pool(what, told) as executor:
        for _ in executor.map(spin, inputs):
            pass


if __name__ == "__main__":
    main(*sys.argv[1:])
