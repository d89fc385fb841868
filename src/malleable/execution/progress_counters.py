"""How far tasks are, in memory that worker processes share with their parent, and the wish to stop them."""

from __future__ import annotations

from malleable.execution.worker_processes import context


class ProgressCounters:
    """Two numbers per task, what is done and what it aims at; and a flag that asks all tasks to stop."""

    def __init__(self, tasks: int) -> None:
        self._cells = context().RawArray("q", 2 * tasks + 1)

    def report(self, task: int, done: int, aim: int) -> None:
        """Note how far a task is; called in the worker."""
        self._cells[2 * task], self._cells[2 * task + 1] = done, aim

    def totals(self) -> tuple[int, int]:
        """What is done of all tasks, and what they aim at."""
        done, aims = self._cells[:-1:2], self._cells[1:-1:2]
        started = [aim for aim in aims if aim > 0]
        # Tasks that have not started are taken to be like those that have.
        return sum(done), sum(started) * len(aims) // max(len(started), 1)

    def stop(self) -> None:
        """Ask all tasks to stop."""
        self._cells[-1] = True

    @property
    def stopping(self) -> bool:
        """Whether tasks are asked to stop."""
        return bool(self._cells[-1])
