"""What a broker does right now, as one document: `GET /v1/status`, each server-sent event, and the page.

    status(broker, {"job-1": {"kind": "program", "command": ["make"]}})

Everything in it is a plain value that JSON can write; what is not known is None.
"""

from __future__ import annotations

import time
from math import isfinite, isnan
from typing import TYPE_CHECKING, Any

import numpy as np

from malleable.live.core.estimates import remaining_work, work_done
from malleable.live.core.job_table import ARRIVED, CLASS, MOST, ON_HOLD, SIZE, SPEED, WEIGHT
from malleable.numerics.json_numbers import finite

if TYPE_CHECKING:
    from collections.abc import Mapping

    from malleable.contracts import IntArray
    from malleable.live.broker.broker import Broker
    from malleable.live.core.ledger import Account
    from malleable.live.core.scheduler import Scheduler

EACH = 16
"""Widths up to this are all in the picture of a speedup; of wider ones two per doubling are."""


def status(
    broker: Broker,
    extra: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    draining: bool = False,
    most: int | None = None,
) -> dict[str, Any]:
    """The document; `extra` has what others know of some jobs, such as their kind and command.

    With `most` no more jobs are listed than that, those with cores first; `present` counts them all.
    """
    found, jobs = broker.look(lambda scheduler: _seen(broker, scheduler, most))
    found["cost"] = broker.cost.document(found["cost"]) | broker.sharing.document(found.pop("sharing"))
    known = extra or {}
    document: dict[str, Any] = finite({"time": time.time(), "draining": draining, **found})
    document["jobs"] = [{**job, **known.get(job["id"], {})} for job in jobs]
    return document


def job_status(broker: Broker, job: str) -> dict[str, Any] | None:
    """What stands in the document of one job, at the cost of one; None if it is not there."""

    def see(scheduler: Scheduler) -> list[dict[str, Any]]:
        row = scheduler.table.row_of.get(job)
        return [] if row is None else _jobs(broker, scheduler, np.array([row]), broker.now)

    return next(iter(broker.look(see)), None)


def _seen(
    broker: Broker, scheduler: Scheduler, most: int | None
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """What the scheduler knows, and the jobs; the broker's lock is held."""
    now = broker.now
    accounts = scheduler.ledger.accounts.values()
    found = {
        "cores": scheduler.ledger.cores,
        "policy": scheduler.policy_name,
        "price": scheduler.price,
        "problem": scheduler.problem,
        "granted": scheduler.ledger.granted,
        "present": len(accounts),
        "waiting": sum(account.granted == 0 for account in accounts),
        "cost": broker.cost.account(now),
        "sharing": broker.sharing.moment(),
        "ended": dict(scheduler.ended),
        "uptime": now,
        "classes": _classes(scheduler),
    }
    return found, _jobs(broker, scheduler, _listed(scheduler, most), now)


def _listed(scheduler: Scheduler, most: int | None) -> IntArray:
    """The rows of the jobs to list, in order of arrival."""
    table, rows = scheduler.table, scheduler.table.rows()
    if most is None or len(rows) <= most:
        return rows
    accounts = scheduler.ledger.accounts
    waits = np.array([accounts[table.ids[row]].granted == 0 for row in rows.tolist()])
    return np.sort(rows[np.argsort(waits, kind="stable")[:most]])


def _jobs(broker: Broker, scheduler: Scheduler, rows: IntArray, now: float) -> list[dict[str, Any]]:
    """The jobs in these rows."""
    table, workload = scheduler.table, scheduler.beliefs.workload
    remaining, size = remaining_work(table, rows, now, scheduler.beliefs.sizes)
    shares = scheduler.shares
    over_share = np.full(len(rows), np.nan) if shares is None else shares.ratio(table, rows, now)
    columns = zip(
        rows.tolist(),
        table[CLASS][rows].astype(int).tolist(),
        table[WEIGHT][rows].tolist(),
        (now - table[ARRIVED][rows]).tolist(),
        table[SPEED][rows].tolist(),
        table[MOST][rows].tolist(),
        remaining.tolist(),
        (work_done(table, rows, now) / table[SIZE][rows]).tolist(),
        (size != table[SIZE][rows]).tolist(),
        over_share.tolist(),
        strict=True,
    )
    out = []
    for row, index, weight, age, speed, most, left, share, guessed, over in columns:
        job = table.ids[row]
        account = scheduler.ledger.accounts[job]
        units, done = scheduler.jobs.units_in_all(job), scheduler.jobs.units_done(job)
        progress = done / units if units else share
        out.append(
            {
                "id": job,
                "class": workload.class_names[index],
                "state": _state(account),
                "granted": account.granted,
                "in_use": account.in_use,
                "target": account.target,
                "max_cores": int(most) if isfinite(most) else None,
                "progress": None if isnan(progress) else min(max(progress, 0.0), 1.0),
                "weight": weight,
                "age": age,
                "remaining": left if isfinite(left) else None,
                "remaining_estimated": guessed or (units is not None and not done),
                "speed": speed,
                "on_hold": bool(table[ON_HOLD][row]),
                "over_share": None if isnan(over) else over,
                "promised_share": None if shares is None else 1.0 / shares.guarantee.kappa,
                "units": units,
                "units_done": done,
                "cpus": list(broker.cpus_of(job)),
                "kind": "client",
                "command": None,
            }
        )
    return out


def _state(account: Account) -> str:
    if account.granted:
        return "running"
    return "paused" if account.started else "queued"


def _classes(scheduler: Scheduler) -> list[dict[str, Any]]:
    """What is believed of each class, and the points that it was learned from."""
    widths = _widths(scheduler.ledger.cores)
    out = []
    for i, job_class in enumerate(scheduler.beliefs.workload.classes):
        learner = scheduler.beliefs.learner(i)
        out.append(
            {
                "name": job_class.name,
                "speedup": {
                    "cores": widths,
                    "values": np.asarray(job_class.speedup(np.array(widths, dtype=float))).tolist(),
                },
                "points": [
                    {"cores": cores, "speedup": speed}
                    for cores, speed in (() if learner is None else learner.points)
                ],
            }
        )
    return out


def _widths(cores: int) -> list[int]:
    """Numbers of cores at which speedups are shown."""
    most = max(cores, 1)
    wide, k = {*range(1, min(EACH, most) + 1), most}, EACH
    while k < most:
        wide |= {k, min(3 * k // 2, most)}
        k *= 2
    return sorted(wide)
