"""A broker whose disk is full: one clear line, nothing lost, and all is well when there is room again."""

from __future__ import annotations

import sys
import time

import pytest

from malleable.live.broker.state import Store
from support.broker_process import BrokerError, BrokerProcess
from support.disks import small_disk
from support.living import wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="supervisors need Linux")
WAIT = "while [ ! -e {}/go ]; do sleep 0.01; done; exit 4"


def fill(disk):
    """Leave no room at all."""
    with (disk / "ballast").open("ab", buffering=0) as ballast:
        while True:
            try:
                ballast.write(b"x" * 512)
            except OSError:
                return


def refusal(broker):
    """What is said when a program is not accepted; some may be before."""
    for _ in range(1000):
        try:
            broker.submit("true")
        except BrokerError as error:
            return error.args
    raise AssertionError("it has taken them all")


def test_a_full_disk(tmp_path):
    """What runs ends, and its code is known; what is new is refused in one line, and accepted later."""
    with small_disk(tmp_path / "disk") as disk, BrokerProcess(tmp_path, 4, state=disk / "state") as broker:
        (disk / "room").write_bytes(b"x" * 100_000)
        running = broker.submit("sh", "-c", WAIT.format(tmp_path))
        wait_until(lambda: broker.job(running)["state"] == "running", "the start")
        fill(disk)
        status, said = refusal(broker)
        assert status == 507
        assert "the disk is full" in said
        assert "\n" not in said
        (tmp_path / "go").touch()
        wait_until(lambda: broker.folder(running).result() is not None, "the result")
        wait_until(lambda: broker.job(running)["granted"] == 0, "its cores")
        (disk / "room").unlink()
        (disk / "ballast").unlink()
        assert broker.wait([running])[0]["exit_code"] == 4
        after = broker.submit("sh", "-c", "exit 5")
        assert broker.wait([after])[0]["exit_code"] == 5
        with Store(broker.state) as store:
            assert store.integrity() == []
            jobs = [job.job for job in store.jobs()]
        assert [job["state"] for job in broker.wait(jobs)[1:-1]] == ["finished"] * (len(jobs) - 2)


def test_whoever_waits_hears_of_a_full_disk(tmp_path):
    """While it is full, ends are known, also of what is cancelled, and why others wait. The log is short."""
    with (
        small_disk(tmp_path / "disk") as disk,
        BrokerProcess(tmp_path, 1, policy="fcfs", state=disk / "state") as broker,
    ):
        running = broker.submit("sh", "-c", WAIT.format(tmp_path))
        queued, unwanted = broker.submit("sh", "-c", "exit 5"), broker.submit("true")
        wait_until(lambda: broker.job(running)["state"] == "running", "the start")
        fill(disk)
        (tmp_path / "go").touch()
        assert broker.wait([running])[0]["exit_code"] == 4
        wait_until(lambda: "No space left" in broker.job(queued)["reason"], "the reason")
        broker.ask("DELETE", f"/v1/jobs/{unwanted}")
        assert broker.wait([unwanted])[0]["state"] == "cancelled"
        with pytest.raises(BrokerError, match="has not ended"):
            broker.ask("DELETE", f"/v1/jobs/{unwanted}")
        assert {job["id"] for job in broker.ask("GET", "/v1/jobs")["jobs"]} == {running, queued, unwanted}
        time.sleep(3.0)
        log = (tmp_path / "broker.log").read_text()
        assert log.count("cannot note the end") == 1
        assert log.count("cannot go on") == 1
        (disk / "ballast").unlink()
        assert broker.wait([queued])[0]["exit_code"] == 5
        assert broker.job(queued)["reason"] == ""
        wait_until(lambda: Store(broker.state).counts() == {"failed": 2, "cancelled": 1}, "the disk")
