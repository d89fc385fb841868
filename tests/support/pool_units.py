"""Functions that tests have workers of a pool call; they note what happens in files, which all can read."""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def square(x: int) -> int:
    return x * x


def pid_of(_: object = None) -> int:
    return os.getpid()


def nap(seconds: float) -> float:
    time.sleep(seconds)
    return seconds


def held(folder: Path, number: int) -> int:
    """Note that a unit has started, and where; wait until there is a file named `go`, or one of its own."""
    (folder / f"pid-of-{number}").write_text(str(os.getpid()))
    (folder / f"started-{number}").touch()
    while not ((folder / "go").exists() or (folder / f"go-{number}").exists()):
        time.sleep(0.005)
    (folder / f"ended-{number}").touch()
    return number


def running(folder: Path) -> int:
    """How many held units are under way."""
    return len(list(folder.glob("started-*"))) - len(list(folder.glob("ended-*")))


def die(folder: Path, times: int) -> int:
    """Kill this worker, so often; then say how often this was called."""
    call = len(list(folder.glob("call-*"))) + 1
    (folder / f"call-{call}").touch()
    if call <= times:
        os.kill(os.getpid(), signal.SIGKILL)
    return call


def lock() -> object:
    return threading.Lock()


def note_pid(folder: Path, seconds: float) -> None:
    (folder / f"pid-{os.getpid()}").touch()
    time.sleep(seconds)


def affinity() -> set[int]:
    return os.sched_getaffinity(0)


class Unreadable(Exception):  # noqa: N818 - a name like any other
    """An error that cannot be unpickled: it wants two arguments, and is given one."""

    def __init__(self, one: int, two: int) -> None:
        super().__init__(f"{one} and {two}")


def raise_unreadable() -> None:
    raise Unreadable(1, 2)


def nap_pid(seconds: float) -> int:
    time.sleep(seconds)
    return os.getpid()


def blas_threads() -> list[int]:
    """How many threads the libraries of NumPy use here."""
    import numpy as np
    import threadpoolctl

    np.ones((4, 4)) @ np.ones((4, 4))
    return [info["num_threads"] for info in threadpoolctl.threadpool_info()]


def nap_square(x: int) -> int:
    time.sleep(0.004)
    return x * x


def die_if(wish: bool) -> bool:
    if wish:
        os.kill(os.getpid(), signal.SIGKILL)
    return wish


def reciprocal(x: int) -> float:
    return 1 / x


def unseal(maker: int) -> Sealed:
    """Make a sealed thing, in the process that made it first."""
    if os.getpid() != maker:
        raise ValueError("sealed")
    return Sealed()


class Sealed:
    """What can be pickled, but not unpickled elsewhere."""

    def __reduce__(self):
        return unseal, (os.getpid(),)


def interval(seconds: float) -> tuple[float, float]:
    """When a unit was under way, by a clock that all processes share."""
    start = time.monotonic()
    time.sleep(seconds)
    return start, time.monotonic()


def nested_square(x: int) -> tuple[int, int]:
    """A square, by an Executor of the unit's own, and the cores that there are for such Executors."""
    from malleable.live import Executor
    from malleable.live.broker import embedded

    with Executor("nested") as executor:
        return executor.submit(square, x).result(), embedded.current().broker.scheduler.ledger.cores
