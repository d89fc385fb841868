"""Status and history of a machine that was busy for a while, made by a broker on a clock of ours."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from malleable.live.broker.broker import Broker
from malleable.live.broker.history import History
from malleable.live.broker.status import status
from malleable.live.core.events import Confirmed, Finished, Progressed, Registered
from malleable.live.core.scheduler import Scheduler

START = 1_790_000_000.0
"""When the machine was started, in seconds since 1970."""
NASTY = "<img src=x onerror=alert(1)> & __proto__"
"""A class and a name that would do harm where text is taken for something else."""


@dataclass
class Machine:
    """Jobs that come, report progress and end, whose true speedup is k^0.8."""

    cores: int = 32
    policy: str = "wham"
    step: float = 1.0
    now: float = 0.0
    history: History = field(default_factory=History)
    sizes: dict[str, float] = field(default_factory=dict)
    done: dict[str, float] = field(default_factory=dict)
    extra: dict[str, dict] = field(default_factory=dict)

    def __post_init__(self):
        self.broker = Broker(Scheduler(None, self.cores, self.policy), clock=lambda: self.now)

    def join(self, job, job_class, units=100.0, **known):
        """A job that does at once what it is told."""
        self.sizes[job], self.done[job] = units, 0.0

        seen = [0]

        def obey(order):
            if order.number < seen[0]:  # overtaken by a later one
                return
            seen[0] = order.number
            self.broker.tell(Confirmed(job, order.cores, order.number))

        self.broker.join(Registered(job, job_class, units=units, **known), obey)

    def run(self, seconds):
        """Let time pass: jobs work, report, and end when they are done."""
        end = self.now + seconds
        while self.now < end:
            self.now += self.step
            for job, account in list(self.broker.scheduler.ledger.accounts.items()):
                cores = account.in_use
                self.done[job] = min(self.done[job] + self.step * cores**0.8, self.sizes[job])
                self.broker.tell(Progressed(job, self.done[job]))
                if self.done[job] >= self.sizes[job]:
                    self.broker.tell(Finished(job))
            if round(self.now / self.step) % 3 == 0:
                self.history.record(START + self.now, self.status())

    def status(self):
        """The document of this moment, with the bound of this moment."""
        self.broker.cost._next_bound = 0.0
        return {**status(self.broker, self.extra), "time": START + self.now}

    def close(self):
        self.broker.close()


def busy_machine(jobs: int, cores: int = 32, classes=("sweep", "build", "etl"), seed: int = 1) -> Machine:
    """A machine on which many jobs came and went, with so many of them there now."""
    rng, made = random.Random(seed), Machine(cores, step=2.5)
    for j in range(10):
        made.join(f"early-{j}", rng.choice(classes), units=rng.uniform(50, 600))
        made.run(rng.randint(5, 40))
    made.run(40)
    for j in range(jobs):
        kind = classes[j % len(classes)]
        made.join(
            f"{kind}-{1000 + j}", kind, units=rng.uniform(500, 4000), weight=rng.choice([None, 1.0, 2.5])
        )
        made.run(rng.randint(1, 20) if jobs < 20 else 2)
    for job in [job for job in made.broker.state()["jobs"] if job.startswith("early")]:
        made.broker.tell(Finished(job))
    made.run(20)
    return made
