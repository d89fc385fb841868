"""What belongs to a program, as the kernel's lists say."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from malleable.live.system import process_tree
from malleable.live.system.process_tree import family, is_at_work
from support.living import wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it reads /proc")
TREE = "sleep 60 & (sleep 60 & sleep 60) & wait"


@pytest.mark.parametrize("leads", [False, True])
def test_a_family_is_found_without_a_look_at_everything(leads, monkeypatch):
    """Of one that leads no session only the descendants are looked at; what is found is the same."""
    with subprocess.Popen(["sh", "-c", TREE], start_new_session=True) as process:
        try:
            wait_until(lambda: len(family(process.pid)) >= 4, "all of the tree")
            assert os.getsid(process.pid) == process.pid
            everything = family(process.pid)
            monkeypatch.setattr(process_tree, "_leads_a_session", lambda _pid: leads)
            if not leads:
                monkeypatch.setattr(process_tree, "processes", lambda: pytest.fail("looked at everything"))
            assert family(process.pid) == everything
        finally:
            os.killpg(process.pid, 9)


def test_without_lists_of_children_everything_is_looked_at(monkeypatch):
    """A kernel may be built without them."""
    with subprocess.Popen(["sleep", "60"]) as process:
        try:
            monkeypatch.setattr(process_tree, "threads", lambda _pid: [-1])
            assert family(process.pid) == {process.pid}
            monkeypatch.setattr(process_tree, "_lists_children", lambda: False)
            assert process_tree._descendants(process.pid) is None
            assert family(process.pid) == {process.pid}
        finally:
            process.kill()


def test_what_is_at_work():
    """A process that runs, or would if there were a CPU, also in a thread of its own; not one that waits."""
    burning = "import threading\nthreading.Thread(target=lambda: [None for _ in iter(int, 1)]).start()"
    with subprocess.Popen([sys.executable, "-c", burning]) as busy, subprocess.Popen(["sleep", "60"]) as idle:
        try:
            wait_until(lambda: is_at_work(busy.pid), "work")
            wait_until(lambda: not is_at_work(idle.pid), "sleep")
            busy.send_signal(signal.SIGSTOP)
            wait_until(lambda: not is_at_work(busy.pid), "the stop")
        finally:
            busy.kill()
            idle.kill()
    assert not is_at_work(busy.pid)
