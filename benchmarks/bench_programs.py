"""What a trivial program costs beside starting Python, what it leaves, and what one of 10,000 jobs costs.

Goals: a `true` takes less CPU time, broker and supervisor together, than to start Python and import asyncio;
it leaves nothing but its row in the database; questions and events about one of 10,000 jobs cost as much as
about one of 100. Ratios are of one run: the machine may be busy.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from statistics import median

import psutil

from malleable.live.broker.broker import Broker
from malleable.live.broker.http_client import BrokerClient
from malleable.live.broker.server.client_record import ClientRecord
from malleable.live.broker.server.service import Service
from malleable.live.broker.state import ProgramRequest, Store
from malleable.live.core.events import Confirmed, CoresChanged, Registered
from malleable.live.core.scheduler import Scheduler

PROGRAMS = 40
ROUNDS = 3
FEW, MANY = 100, 10_000
REPEATS = 200


def waited_for() -> float:
    used = getrusage(RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def python_alone() -> float:
    """CPU seconds of a Python that imports asyncio and ends."""
    before = waited_for()
    subprocess.run([sys.executable, "-c", "import asyncio"], check=True)
    return waited_for() - before


def busy_seconds(broker: psutil.Process) -> float:
    """CPU time of a broker, of what it has started, and of all that those have waited for."""
    return sum(sum(process.cpu_times()[:4]) for process in (broker, *broker.children()))


def trivial(client: BrokerClient, broker: psutil.Process) -> tuple[float, float]:
    """CPU seconds and seconds for each of many programs that do nothing."""
    before, start = busy_seconds(broker), time.perf_counter()
    for _ in range(PROGRAMS):
        client.submit({"command": ["true"], "folder": "/"})
    while client.status()["present"]:
        time.sleep(0.05)
    passed = time.perf_counter() - start
    time.sleep(0.5)  # until supervisors have ended, and were waited for
    return (busy_seconds(broker) - before) / PROGRAMS, passed / PROGRAMS


def bytes_below(folder: Path) -> int:
    return sum(path.lstat().st_blocks * 512 for path in folder.rglob("*"))


def programs(folder: Path) -> list[dict]:
    os.environ |= {"MALLEABLE_HOME": str(folder / "home"), "MALLEABLE_STATE": str(folder / "state")}
    command = [sys.executable, "-m", "malleable", "serve", "--no-bind", "--cores", "2", "--policy", "equi"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as broker:
        try:
            broker.stdout.readline()
            process = psutil.Process(broker.pid)
            with BrokerClient() as client:
                trivial(client, process)
                before = bytes_below(folder / "state" / "jobs")
                found = [(python_alone(), *trivial(client, process)) for _ in range(ROUNDS)]
                left = bytes_below(folder / "state" / "jobs") - before
        finally:
            broker.terminate()
    alone, busy, passed = map(min, zip(*found, strict=True))
    return [
        {"what": "CPU ms of a trivial program", "value": 1e3 * busy},
        {"what": "CPU ms of Python that imports asyncio", "value": 1e3 * alone},
        {"what": "ratio of the two", "value": median(b / a for a, b, _ in found)},
        {"what": "ms per trivial program, on two cores", "value": 1e3 * passed},
        {"what": "kB that each leaves in folders", "value": left / 1e3 / PROGRAMS / ROUNDS},
    ]


def one_of(jobs: int, folder: Path) -> tuple[float, float]:
    """Seconds to ask for one of so many jobs, and to confirm what it uses; best of many."""
    folder.mkdir()
    with ExitStack() as stack:
        record = ClientRecord(folder)
        for number in range(jobs):
            stack.enter_context(record.seat(f"job-{number}", None))
        broker = Broker(Scheduler(None, 2, "equi"), before_orders=record.note)
        stack.callback(broker.close)
        record.expect(broker)
        broker.tell(CoresChanged(0))
        orders = []
        for number in range(jobs):
            broker.join(Registered(f"job-{number}", "x"), orders.append)
        broker.tell(CoresChanged(2))
        last = next(order for order in reversed(orders) if order.job == "job-0")
        service = Service(broker, stack.enter_context(Store(folder)), None)
        asked, told = [], []
        for _ in range(REPEATS):
            start = time.perf_counter()
            service.job("job-0")
            middle = time.perf_counter()
            broker.tell(Confirmed("job-0", last.cores, last.number))
            asked.append(middle - start)
            told.append(time.perf_counter() - middle)
    return min(asked), min(told)


def many_jobs(folder: Path) -> list[dict]:
    few, many = (one_of(jobs, folder / str(jobs)) for jobs in (FEW, MANY))
    rows = []
    for what, small, large in zip(("ask for one job", "confirm a width"), few, many, strict=True):
        rows += [
            {"what": f"ms to {what} of {MANY}", "value": 1e3 * large},
            {"what": f"ratio to the same of {FEW}", "value": large / small},
        ]
    return rows


def openings(folder: Path) -> list[dict]:
    """How long a store of many ended programs takes to be opened."""
    with Store(folder) as store:
        for _ in range(FEW):
            store.mark_ended(store.add(ProgramRequest(("true",), "/")).job, "finished", 0)
        names = "state, request, ticket, submitted, ended"
        copy = f"INSERT INTO jobs ({names}) SELECT {names} FROM jobs"
        for _ in range((MANY // FEW).bit_length()):
            store._writer.connection.execute(copy)  # noqa: SLF001 - one by one takes minutes

    def seconds() -> float:
        start = time.perf_counter()
        store = Store(folder)
        found = time.perf_counter() - start
        store.close()
        return found

    clean = min(seconds() for _ in range(5))
    times = []
    for _ in range(5):
        (folder / "jobs.sqlite").touch()  # as if someone had written to it
        times.append(seconds())
    return [
        {"what": f"ms to open a store of {MANY} ended programs", "value": 1e3 * clean},
        {"what": "the same after an unclean end, times as long", "value": min(times) / clean},
    ]


def run():
    folder = Path(tempfile.mkdtemp(prefix="m-"))
    try:
        rows = [*programs(folder), *many_jobs(folder), *openings(folder / "opened")]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    rows.append({"what": "load of the machine, last minute", "value": os.getloadavg()[0]})
    return rows
