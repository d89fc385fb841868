"""What the HTTP interface can be asked, one method each; routes only call them. Methods may block."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from malleable.errors import MalleableError
from malleable.live.broker.explaining import explained
from malleable.live.broker.history import History
from malleable.live.broker.operator_log import LOGGER, entry
from malleable.live.broker.state import ProgramRequest
from malleable.live.broker.state.store import PRESENT
from malleable.live.broker.status import job_status, status
from malleable.live.core.events import (
    ClassChanged,
    CoresChanged,
    Held,
    PolicyChanged,
    Resumed,
    WeightChanged,
)
from malleable.live.core.orders import RefusedError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from malleable.live.broker.broker import Broker
    from malleable.live.broker.state import Store
    from malleable.live.broker.state.store import StoredJob
    from malleable.live.programs.program_jobs import ProgramJobs

MOST_LISTED = 500
"""Jobs in the documents of a stream."""
Stream = Literal["out", "err"]


class UnknownJobError(MalleableError, LookupError):
    """No job goes by that name."""


class RemovedError(MalleableError):
    """What a program has printed is kept no longer."""


class Service:
    """The broker, its programs and its history, as one thing that can be asked."""

    def __init__(self, broker: Broker, store: Store, programs: ProgramJobs) -> None:
        self.broker, self.programs = broker, programs
        self._store = store
        self._history = History()
        self._known: dict[str, dict[str, Any]] = {}
        self._draining = False
        self._changing = threading.Lock()

    def status(self, most: int | None = None) -> dict[str, Any]:
        """The status document of this moment, with at most so many jobs, those that have cores first."""
        document = status(self.broker, draining=self._draining, most=most)
        known = {job["id"]: self._kind_of(job["id"]) for job in document["jobs"]}
        for job in document["jobs"]:
            job.update(known[job["id"]])
        document["programs"] = self.programs.present
        if len(self._known) > 2 * document["present"] + 1000:
            self._known = known
        else:
            self._known.update(known)
        return document

    def record(self) -> dict[str, Any]:
        """A status document that the history remembers, of a length that does not grow."""
        document = self.status(MOST_LISTED)
        self._history.record(document["time"], document)
        return document

    def history(self) -> dict[str, Any]:
        """Widths over time."""
        return self._history.document()

    def log(self) -> dict[str, Any]:
        """The jobs that came and went."""
        return self._history.log()

    def submit(self, request: Mapping[str, Any]) -> str:
        """Accept a program; its name."""
        wanted = ProgramRequest.of(request)
        job = self.programs.submit(wanted)
        self._known[job] = _kind_and_command(wanted)
        return job

    def jobs(self, ended: int) -> list[dict[str, Any]]:
        """The jobs that are there, and the last so many programs that have ended."""
        live = {job["id"]: job for job in self.status()["jobs"]}
        stored = {job.job: job for job in self._store.jobs(PRESENT)}
        stored = {job.job: job for job in self._store.last_ended(ended)} | stored
        in_order = sorted(stored.items(), key=lambda item: int(item[0]))
        programs = [_document(job, live.pop(name, None)) for name, job in in_order]
        return [*programs, *live.values()]

    def ended_programs(self, most: int) -> list[dict[str, Any]]:
        """The last programs that have ended."""
        return [_document(job, None) for job in self._store.last_ended(most)]

    def job(self, name: str) -> dict[str, Any]:
        """One job, present or a program that was ever submitted."""
        live, stored = job_status(self.broker, name), self._stored(name)
        if stored is not None:
            return {**_document(stored, live), "cpu_seconds": self.programs.cpu_seconds(name)}
        if live is None:
            raise UnknownJobError(f"there is no job {name!r:.60}", "`malleable status` names those there are")
        return {**live, **self._kind_of(name)}

    def explain(self, name: str) -> dict[str, Any]:
        """Why a job that is there has its cores, or waits."""
        if job_status(self.broker, name) is None:
            state = str(self.job(name)["state"])
            raise RefusedError(f"job {name} is {state}: there are no cores to explain")
        return explained(self.broker, name)

    def change_job(
        self, name: str, weight: float | None, job_class: str | None, on_hold: bool | None = None
    ) -> dict[str, Any]:
        """Let a job matter more or less, or be of another class; what is kept of it says so, too.

        One that is on hold has no cores until it is so no more, or until the broker ends.
        """
        self.job(name)
        with self._changing:
            if weight is not None:
                self.broker.tell(WeightChanged(name, weight))
            if job_class is not None:
                self.broker.tell(ClassChanged(name, job_class))
            if on_hold is not None:
                self.broker.tell(Held(name) if on_hold else Resumed(name))
            stored = self._stored(name)
            if stored is not None:
                request = stored.request
                request = replace(
                    request, weight=weight or request.weight, job_class=job_class or request.job_class
                )
                self._store.change(name, request)
        return self.job(name)

    def cancel(self, name: str) -> None:
        """Ask a job to end."""
        self.job(name)
        stored = self._stored(name)
        if stored is None or stored.state in PRESENT:
            LOGGER.info(entry("cancelling", job=name))  # before it has ended, which is logged elsewhere
        if stored is not None:
            self.programs.cancel(name)
        else:
            self.broker.cancel(name)

    def output(self, name: str, stream: Stream) -> Path | None:
        """The file with what a program has printed; None where there is none yet."""
        stored = self._stored(name)
        if stored is None:
            self.job(name)
            raise UnknownJobError(f"job {name!r:.60} is no program that was submitted, and has no log")
        if stored.removed and stored.started is not None:
            hint = "`malleable serve --keep` says for how long logs are kept"
            raise RemovedError(f"the log of job {name} was removed", hint)
        return self.programs.output(name, stream)

    def is_present(self, name: str) -> bool:
        """Whether a program has not ended."""
        stored = self._stored(name)
        return stored is not None and stored.state in PRESENT

    def change_machine(self, cores: int | None, policy: str | None) -> dict[str, Any]:
        """Give the jobs more or fewer cores, or another policy."""
        with self._changing:
            if policy is not None:
                self.broker.tell(PolicyChanged(policy))
            if cores is not None:
                self.broker.tell(CoresChanged(cores))
        return self.machine()

    def machine(self) -> dict[str, Any]:
        """The machine as it is now."""
        found = self.broker.look(
            lambda scheduler: {"cores": scheduler.ledger.cores, "policy": scheduler.policy_name}
        )
        return {**found, "draining": self._draining}

    def drain(self) -> dict[str, Any]:
        """Accept and start no program from now on; what runs goes on to its end."""
        self._draining = True
        self.programs.drain()
        return self.machine()

    def _stored(self, name: str) -> StoredJob | None:
        """The program of that name, written as it was given out: `01` is not `1`."""
        found = self._store.get(name)
        return found if found is not None and found.job == name else None

    def _kind_of(self, job: str) -> dict[str, Any]:
        """What only the store knows of a job that is there; each is asked for once."""
        found = self._known.get(job)
        if found is None:
            stored = self._stored(job)
            found = {"kind": "client"} if stored is None else _kind_and_command(stored.request)
        return found


def _kind_and_command(request: ProgramRequest) -> dict[str, Any]:
    return {"kind": request.form, "command": list(request.command)}


def _document(stored: StoredJob, live: Mapping[str, Any] | None) -> dict[str, Any]:
    """A program: what was submitted, what became of it, and how it stands at the broker."""
    known = stored.to_dict()
    request = known.pop("request")
    here = live or {"granted": 0, "in_use": 0, "target": 0, "cpus": [], "progress": _share(stored)}
    return {
        "weight": None,
        **request,
        **known,
        **here,
        "state": _state(stored, live),
        "class": stored.request.job_class,
        "command": list(stored.request.command),
        "kind": stored.request.form,
    }


def _state(stored: StoredJob, live: Mapping[str, Any] | None) -> str:
    """What the store says, unless it is running: then it may be paused."""
    return str(live["state"]) if live is not None and stored.state == "running" else stored.state


def _share(stored: StoredJob) -> float | None:
    if stored.state == "finished":
        return 1.0
    return min(stored.units_done / stored.units, 1.0) if stored.units else None
