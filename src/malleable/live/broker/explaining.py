"""Why a job at the broker has its cores: the scheduler's own decision, made again with a little more or less.

It is made as decisions are, with caps, jobs that must not be paused, guarantees and memory, on a copy of what
is known of the jobs; no order follows from it. That takes as long as four decisions, with the broker's lock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from malleable.contracts import Allocation
from malleable.live.core.job_table import MOST, ON_HOLD
from malleable.planning import explain

if TYPE_CHECKING:
    from malleable.live.broker.broker import Broker
    from malleable.live.core.scheduler import Scheduler
    from malleable.model.jobs import Jobs
    from malleable.planning import Explanation

BEHIND = "it fell behind its fair share of the machine, which comes before the policy"
NO_MEMORY = "waits because jobs before it have the memory"
HELD = "waits because it is on hold"


def explained(broker: Broker, job: str) -> dict[str, Any]:
    """The document of `GET /v1/jobs/ID/explain`."""
    document = broker.look(lambda scheduler: _explanation(scheduler, job)).to_dict()
    rows = document.pop("jobs")
    return {**document, "job": next(row for row in rows if row["id"] == job)}


def _explanation(scheduler: Scheduler, job: str) -> Explanation:
    table, rows = scheduler.table, scheduler.table.rows()
    jobs = scheduler.machine.present(table, rows, scheduler.now)

    def divide(some: Jobs, cores: float) -> Allocation:
        gone = [name for name in jobs.ids if name not in set(some.ids)] if len(some) < len(jobs) else []
        found = scheduler.supposed(int(cores), gone[0] if gone else None)
        return Allocation(np.array([found.cores.get(name, 0.0) for name in some.ids]), found.price)

    now = scheduler.supposed(scheduler.machine.cores)
    why = {name: HELD for name, row in table.row_of.items() if table[ON_HOLD][row] > 0.0}
    why |= {name: NO_MEMORY for name in jobs.ids if name not in now.allowed and name not in why}
    why |= {
        name: f"has {now.cores[name]:g} of the cores because {BEHIND}" for name in now.behind & set(now.cores)
    }
    return explain(
        divide,
        jobs,
        float(scheduler.machine.cores),
        policy=scheduler.policy_name,
        job=job,
        whole=True,
        most=table[MOST][rows],
        why=why,
        search=False,
    )
