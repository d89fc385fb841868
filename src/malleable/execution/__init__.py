"""Where tasks run: in this process, in worker processes of this machine, or on an executor such as Ray's.

`spread` carries out tasks that hand in what they have on Ctrl-C. It stands on `WorkerPool`, which also serves
tasks that count only when they are finished. `malleable.execution.ray` has the executor for a Ray cluster.
"""

from malleable.execution.tasks import spread
from malleable.execution.worker_processes import WorkerDiedError, WorkerPool, available, checked_workers

__all__ = ["WorkerDiedError", "WorkerPool", "available", "checked_workers", "spread"]
