"""With many jobs, what concerns one of them costs as much as with few."""

from __future__ import annotations

import os
from collections import Counter

import pytest

from malleable.live.broker import status
from malleable.live.broker.broker import Broker
from malleable.live.broker.server.client_record import ClientRecord
from malleable.live.broker.server.service import Service, UnknownJobError
from malleable.live.broker.state import ProgramRequest, Store
from malleable.live.core.events import Confirmed, CoresChanged, Finished, Registered
from malleable.live.core.scheduler import Scheduler
from support.broker_server import IdlePrograms

FEW, MANY = 3, 300
REQUEST = ProgramRequest(("true",), "/")


class CountingAccounts(dict):
    """The accounts of a ledger, which count how often one is looked at."""

    looks = 0

    def get(self, job, default=None):
        self.looks += 1
        return super().get(job, default)

    def __getitem__(self, job):
        self.looks += 1
        return super().__getitem__(job)

    def values(self):
        self.looks += len(self)
        return super().values()


def crowd(jobs, record=None):
    """A broker of two cores with so many jobs; and the orders of each."""
    made = Broker(Scheduler(None, 2, "equi"), before_orders=None if record is None else record.note)
    if record is not None:
        record.expect(made)
    orders = {}
    made.tell(CoresChanged(0))  # while there are none to divide, jobs come in quickly
    for number in range(jobs):
        orders[f"job-{number}"] = mine = []
        made.join(Registered(f"job-{number}", "x"), mine.append)
    made.tell(CoresChanged(2))
    return made, orders


def looks_of_an_event(folder, jobs):
    """How many accounts the record looks at while one client confirms, ends, and another takes over."""
    record = ClientRecord(folder)
    for number in range(jobs):
        record.seat(f"job-{number}", os.getpid()).__enter__()
    broker, orders = crowd(jobs, record)
    accounts = broker.scheduler.ledger.accounts = CountingAccounts(broker.scheduler.ledger.accounts)
    noted = []
    usual = record.note

    def note(concerned):
        before = accounts.looks
        usual(concerned)
        noted.append(accounts.looks - before)

    broker._before_orders = note
    broker.tell(Confirmed("job-0", 1, orders["job-0"][-1].number))
    broker.tell(Finished("job-0"))
    broker.close()
    return noted


def test_the_record_of_clients(tmp_path):
    """An event costs the record as much as it concerns jobs, however many sessions there are."""
    few, many = tmp_path / "few", tmp_path / "many"
    few.mkdir()
    many.mkdir()
    assert looks_of_an_event(few, FEW) == looks_of_an_event(many, MANY)


@pytest.fixture
def service(tmp_path):
    broker, _ = crowd(MANY)
    with Store(tmp_path) as store:
        yield Service(broker, store, IdlePrograms(broker, store))
    broker.close()


def test_one_job(service, monkeypatch):
    """To ask for one job builds the document of one, which is what it is in the document of all."""
    built = Counter()
    usual = status._jobs

    def jobs(broker, scheduler, rows, now):
        built[len(rows)] += 1
        return usual(broker, scheduler, rows, now)

    monkeypatch.setattr(status, "_jobs", jobs)
    one = service.job("job-0")
    service.change_job("job-0", 2.0, None)
    with pytest.raises(UnknownJobError):
        service.job("job")
    assert set(built) == {1}
    (same,) = (job for job in service.status()["jobs"] if job["id"] == "job-0")
    changing = {"age", "remaining", "weight", "progress"}
    assert {key: one[key] for key in one.keys() - changing} == {
        key: same[key] for key in same.keys() - changing
    }


def test_ended_programs(service, monkeypatch):
    """To ask for the last ended programs reads so many of each outcome, however many wait or have ended."""
    outcomes = ("finished", "failed", "cancelled", "lost")
    jobs = [service._store.add(REQUEST).job for _ in range(40)]
    for number, job in enumerate(jobs[:30]):
        service._store.mark_ended(job, outcomes[number % 4])
    read = []
    usual = service._store._read

    def counted(query, values):
        found = usual(query, values)
        read.append(len(found))
        return found

    monkeypatch.setattr(service._store, "_read", counted)
    assert [job["id"] for job in service.ended_programs(3)] == jobs[27:30]
    assert sum(read) <= 3 * len(outcomes)
