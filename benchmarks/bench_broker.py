"""A broker in a process of its own: what it takes when idle, how fast it accepts programs and misses clients.

Goals: idle below 1 % of a core and 100 MB; 10,000 queued programs accepted and held; the cores of a killed
client are another job's within 0.5 s. No program is started: there are no cores while they are submitted.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from statistics import median

import psutil

from malleable.live.broker.http_client import BrokerClient
from malleable.live.broker.membership import JobRequest
from malleable.live.broker.remote import connect

PROGRAMS = 10_000
CLIENTS = 20
IDLE_SECONDS = 10.0
CLIENT = """\
import sys, threading
from malleable.live.broker.membership import JobRequest
from malleable.live.broker.remote import connect
ready = threading.Event()
def obey(order):
    ready.wait()
    seat.confirm(order.cores, order.number)
    print(order.cores, flush=True)
seat = connect(None, JobRequest("bench", job=sys.argv[1]), obey)
ready.set()
threading.Event().wait()
"""


def busy_seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system


def idle(process: psutil.Process, when: str) -> list[dict]:
    before = busy_seconds(process)
    time.sleep(IDLE_SECONDS)
    share = (busy_seconds(process) - before) / IDLE_SECONDS
    return [
        {"what": f"% of a core when idle, {when}", "value": 100.0 * share},
        {"what": f"MB, {when}", "value": process.memory_info().rss / 1e6},
    ]


def missed() -> list[dict]:
    """From SIGKILL for a client to the order that gives its cores to another."""
    orders: list[int] = []
    ready = threading.Event()

    def obey(order):
        ready.wait()
        orders.append(order.cores)
        seat.confirm(order.cores, order.number)

    seat = connect(None, JobRequest("bench", job="other"), obey)
    ready.set()
    times = []
    for number in range(CLIENTS):
        command = [sys.executable, "-c", CLIENT, f"killed-{number}"]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as client:
            client.stdout.readline()
            while orders[-1] != 2:
                time.sleep(0.001)
            start = time.perf_counter()
            client.send_signal(signal.SIGKILL)
            while orders[-1] != 4:
                time.sleep(0.0005)
            times.append(1e3 * (time.perf_counter() - start))
    seat.end("finished")
    what = "ms from the death of a client until its cores are another's"
    return [
        {"what": f"{what}, median", "value": median(times)},
        {"what": f"{what}, longest of {CLIENTS}", "value": max(times)},
    ]


def accepted(client: BrokerClient) -> list[dict]:
    request = {"command": ["true"], "folder": "/", "class": "bench", "weight": 1.0}
    client.change_machine({"cores": 0})
    start = time.perf_counter()
    for _ in range(PROGRAMS):
        client.submit(request)
    middle = time.perf_counter()
    held = client.status()["present"]
    return [
        {"what": "programs accepted and held", "value": held},
        {"what": "ms to accept a program", "value": 1e3 * (middle - start) / PROGRAMS},
        {"what": "ms for the status of all of them", "value": 1e3 * (time.perf_counter() - middle)},
    ]


def run():
    folder = Path(tempfile.mkdtemp(prefix="m-"))
    os.environ |= {"MALLEABLE_HOME": str(folder / "home"), "MALLEABLE_STATE": str(folder / "state")}
    command = [sys.executable, "-m", "malleable", "serve", "--no-bind", "--cores", "4", "--policy", "equi"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as broker:
        try:
            broker.stdout.readline()
            process = psutil.Process(broker.pid)
            rows = [*idle(process, "no job"), *missed()]
            with BrokerClient() as client:
                rows += accepted(client)
            rows += idle(process, "many programs queued")
        finally:
            broker.terminate()
    shutil.rmtree(folder)
    rows.append({"what": "load of the machine, last minute", "value": os.getloadavg()[0]})
    return rows
