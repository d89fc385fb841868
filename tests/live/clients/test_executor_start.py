"""What an Executor does until its first outcome: what it loads, and how often it waits for its broker."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from contextlib import contextmanager

import pytest
from websockets.sync.server import unix_serve

from malleable.live import Executor
from malleable.live.workers import Pool
from support import pool_units as units
from support.broker_process import BrokerProcess
from support.broker_server import short_folder
from support.living import assert_gone, fork_servers, wait_until
from support.shell import environment

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the pool runs on Linux")
HEAVY = {
    "annotated_types", "asyncio", "concurrent.futures.process", "email", "importlib.metadata",
    "malleable.catalog", "malleable.live.core.scheduler", "multiprocessing.connection", "numpy",
    "random", "scipy", "ssl", "tempfile", "urllib.request", "websockets",
}  # fmt: skip
"""Each takes as long to load as a tenth of all that an Executor needs, or more."""
AFTER_LAUNCH = {"cloudpickle", "hashlib", "malleable.live.broker.remote", "pathlib"}
"""Loaded while the processes of the pool start."""
FIRST = """
import sys
from malleable.live import Executor
print(*sys.modules)
with Executor() as executor:
    print(*executor.submit(eval, "list(__import__('sys').modules)").result())
    print(*sys.modules)
"""


def test_an_executor_loads_little(tmp_path):
    """Before the first outcome through a running broker, neither script nor worker loads what is heavy."""
    with BrokerProcess(tmp_path) as broker:
        there = {key: value for key, value in environment().items() if key != "MALLEABLE_BROKER"}
        done = subprocess.run(
            [sys.executable, "-c", FIRST], env={**there, "MALLEABLE_HOME": str(broker.home)},
            capture_output=True, encoding="utf-8", timeout=120, check=False,
        )  # fmt: skip
    assert done.stderr == ""
    imported, worker, first = (set(line.split()) for line in done.stdout.splitlines())
    assert imported & (HEAVY | AFTER_LAUNCH) == set()
    assert worker & (HEAVY | {"hashlib", "pathlib", "subprocess", "threadpoolctl"}) == set()
    assert first & HEAVY == set()
    assert first >= AFTER_LAUNCH  # it was the broker of the machine, and these are the names


@contextmanager
def broker_that(talk):
    """Something that answers on a socket as a broker does; yields its path."""
    with short_folder() as folder, unix_serve(talk, str(folder / "s"), compression=None) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield str(folder / "s")
        finally:
            server.shutdown()
            thread.join()


def order(cores, number):
    return json.dumps({"kind": "order", "cores": cores, "number": number, "cpus": []})


def test_one_question_before_the_first_outcome():
    """A broker that hears one message, and answers it, has done all that a unit waits for."""
    heard = []
    done = threading.Event()

    def talk(connection):
        heard.append(json.loads(connection.recv())["kind"])
        connection.send(json.dumps({"kind": "joined", "job": "x"}))
        connection.send(order(1, 0))
        assert done.wait(60.0)
        heard.extend(json.loads(text)["kind"] for text in connection)

    with broker_that(talk) as path, Executor(broker=path) as executor:
        assert executor.submit(units.square, 3).result(60.0) == 9
        done.set()
    assert heard[0] == "join"
    assert set(heard[1:]) <= {"confirmed", "progressed", "finished"}


def test_workers_can_be_forked_before_there_is_a_core():
    """What forks workers is ready while the unit waits for its turn, and no worker is there yet."""
    turn = threading.Event()

    def talk(connection):
        connection.recv()
        connection.send(json.dumps({"kind": "joined", "job": "x"}))
        connection.send(order(0, 0))
        assert turn.wait(60.0)
        connection.send(order(1, 1))
        list(connection)

    with broker_that(talk) as path, Executor(broker=path) as executor:
        future = executor.submit(units.square, 3)
        server = executor._workers._manager._server
        wait_until(lambda: server.control is not None, "the fork server")
        assert not server.workers
        (before,) = fork_servers()
        turn.set()
        assert future.result(60.0) == 9
        assert fork_servers() == [before]


def test_a_pool_without_units_leaves_nothing():
    """Its fork server begins with it, and ends with it although it was never told what to do."""
    with Pool(1):
        wait_until(fork_servers, "the fork server")
        begun = fork_servers()
    assert_gone(begun)


def test_workers_see_the_process_as_it_was_at_the_first_unit(tmp_path, monkeypatch):
    """Variables, folder and path may be changed after the pool was made."""
    with Pool(1) as pool:
        wait_until(fork_servers, "the fork server")
        monkeypatch.setenv("SEEN_BY_UNITS", "yes")
        monkeypatch.delenv("HOME", raising=False)
        monkeypatch.chdir(tmp_path)
        monkeypatch.syspath_prepend(str(tmp_path / "modules"))
        (tmp_path / "modules").mkdir()
        (tmp_path / "modules" / "only_here.py").write_text(
            "def folder():\n    import os\n    return os.getcwd()\n"
        )
        import only_here

        assert pool.submit(only_here.folder).result(60.0) == str(tmp_path)
        assert pool.submit(os.getenv, "SEEN_BY_UNITS").result(60.0) == "yes"
        assert pool.submit(os.getenv, "HOME").result(60.0) is None
        assert pool.submit(os.getenv, "OMP_NUM_THREADS").result(60.0) == "1"
