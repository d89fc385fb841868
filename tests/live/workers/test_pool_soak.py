"""Random lives of a pool: widths that change, workers that are killed, units that are cancelled or fail."""

from __future__ import annotations

import random
import sys

import pytest

from malleable.live.workers import Pool
from support import pool_units as units
from support.living import children, fork_servers, kill

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the pool runs on Linux")


def kill_one(rng: random.Random) -> None:
    """Kill a worker, or now and then the process that starts them."""
    for server in fork_servers():
        victims = children(server) if rng.random() < 0.9 else [server]
        if victims:
            kill(rng.choice(victims))


@pytest.mark.parametrize("seed", [0, *(pytest.param(s, marks=pytest.mark.slow) for s in range(1, 20))])
def test_every_unit_ends_once(seed):
    """Whatever happens, each unit has one outcome, the right one, and no process is left."""
    rng = random.Random(seed)
    told, results, cancelled = [], {}, set()
    with Pool(2, warm_seconds=rng.choice([0.0, 0.05, 10.0]), on_width=told.append) as pool:
        futures = []
        for step in range(120):
            match rng.randrange(6):
                case 0:
                    pool.set_width(rng.randrange(5))
                case 1 if step % 4 == 0:
                    kill_one(rng)
                case 2 if futures:
                    number = rng.randrange(len(futures))
                    if futures[number].cancel():
                        cancelled.add(number)
                case _:
                    function = rng.choice([units.square, units.nap_square, units.reciprocal])
                    count = rng.randrange(20)
                    futures += [pool.submit(function, x) for x in range(count)]
                    results.update({len(results) + x: (function, x) for x in range(count)})
        pool.set_width(3)
        assert pool.done <= len(futures)
        for number, future in enumerate(futures):
            function, x = results[number]
            assert future.cancelled() == (number in cancelled)
            if number in cancelled:
                continue
            if function is units.reciprocal and x == 0:
                assert isinstance(future.exception(60), ZeroDivisionError)
            else:
                assert future.result(60) == (1 / x if function is units.reciprocal else x * x)
    assert pool.done == len(futures) - len(cancelled)
    assert fork_servers() == []
    assert max([0, *told]) <= 4
