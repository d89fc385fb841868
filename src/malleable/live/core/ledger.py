"""The core ledger: who may use how many of the n cores, at every instant.

Of each job it keeps four numbers apart, because jobs are always late:

- `target`: what the policy wants it to have;
- `told`: what it was last told to use;
- `granted`: the cores that count as its own, since it may be using them;
- `in_use`: what it last said it uses.

A job that is to have fewer cores is told at once, and stays granted what it had until it confirms. A job that
is to have more is told when there are cores that no job is granted. So Σ granted ≤ n whatever jobs do, and a
shrink always comes before the grant that needs its cores.

A confirmation names the action that it answers, and only one that answers the last action gives cores back:
what was said before may be out of date, as the job may have widened since, or be about to. When the number of
cores falls below what is granted, nothing is granted until enough was given back.

Cores of a job that was here before and is expected back count as granted to it, though it has no account.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

from malleable.live.core.actions import Action, Grant, Shrink, Start, Stop


@dataclass
class Account:
    """What the ledger knows of a job; `rank` is its place in the order of arrival."""

    rank: int
    at_once: bool = False
    """Whether it is widened to its target in one step or not at all (rigid, or resized at a cost)."""
    target: int = 0
    told: int = 0
    granted: int = 0
    in_use: int = 0
    number: int = 0
    """Of the last action."""
    confirmed: int = 0
    """Number of the last action that the job has answered."""
    started: bool = False


class Ledger:
    """Target, granted and in use of every job; all methods cost as much as they change."""

    def __init__(self, cores: int) -> None:
        self.cores = cores
        self.granted = 0
        self.accounts: dict[str, Account] = {}
        self.expected: dict[str, int] = {}
        """Cores that are kept for jobs which may come back."""
        self._wanting: set[str] = set()
        """Jobs that were told less than their target."""
        self._queue: list[tuple[int, str]] = []
        """The same in order of arrival, as a heap; entries of others are skipped."""

    @property
    def free(self) -> int:
        """Cores that are granted to no job and kept for none; negative while too many are granted."""
        return self.cores - self.granted - sum(self.expected.values())

    def expect(self, job: str, cores: int) -> None:
        """Keep cores for a job that is not here, as far as they are free; 0 keeps none any more."""
        self.expected.pop(job, None)
        kept = min(cores, max(self.free, 0))
        if kept:
            self.expected[job] = kept

    def open(self, job: str, rank: int, *, at_once: bool = False, in_use: int = 0) -> list[Action]:
        """Count a job; one that uses cores already is granted those that are free, and told so."""
        account = self.accounts[job] = Account(rank, at_once)
        self.expected.pop(job, None)
        if in_use == 0:
            return []
        adopted = min(in_use, max(self.free, 0))
        if at_once and adopted < in_use:
            adopted = 0
        account.started = True
        account.target = account.told = account.granted = account.in_use = adopted
        self.granted += adopted
        return [] if adopted == in_use else [self._tell(job, account, adopted)]

    def close(self, job: str) -> None:
        """A job is gone: its cores are free."""
        self.granted -= self.accounts.pop(job).granted
        self._wanting.discard(job)

    def retarget(self, targets: dict[str, int]) -> list[Action]:
        """New targets of some jobs: shrinks first, then what can be granted now."""
        actions, wider = [], []
        for job, target in targets.items():
            account = self.accounts[job]
            account.target = target
            if target > account.told:
                wider.append((job, account))
                if job not in self._wanting:
                    self._wanting.add(job)
                    heapq.heappush(self._queue, (account.rank, job))
                continue
            self._wanting.discard(job)
            if target < account.told:
                actions.append(self._tell(job, account, target))
        if len(self._queue) > 2 * len(self._wanting) + 64:
            self._queue = sorted((self.accounts[job].rank, job) for job in self._wanting)
        actions += self.hand_out()
        for job, account in wider:  # those that have not given back yet what they may use again
            actions += self._widen(job, account, account.granted)
        return actions

    def confirm(self, job: str, cores: int, number: int) -> list[Action]:
        """A job says what it uses, having carried out its actions up to `number`; see `complaint`."""
        account = self.accounts[job]
        account.in_use, account.confirmed = cores, number
        if number < account.number:
            return []
        kept = max(account.told, cores)
        self.granted -= account.granted - kept
        account.granted = kept
        return self.hand_out()

    def complaint(self, job: str, cores: int, number: int) -> str:
        """Why a confirmation cannot be true or is out of date; nothing if it can."""
        account = self.accounts.get(job)
        if account is None:
            return f"there is no job {job!r}"
        if number > account.number:
            return f"job {job!r} confirms action {number}, the last one was {account.number}"
        if number < account.confirmed:
            return f"job {job!r} confirms action {number} after {account.confirmed}"
        if cores > account.granted:
            return f"job {job!r} says that it uses {cores} cores, it was granted {account.granted}"
        return ""

    def hand_out(self) -> list[Action]:
        """Widen jobs that want more, earlier arrivals first, as far as cores are free."""
        actions, passed_over = [], []
        while self._queue and self.free > 0:
            rank, job = heapq.heappop(self._queue)
            account = self.accounts.get(job)
            if account is None or account.rank != rank or job not in self._wanting:
                continue
            actions += self._widen(job, account, account.granted + self.free)
            if job in self._wanting:
                passed_over.append((rank, job))
        for entry in passed_over:
            heapq.heappush(self._queue, entry)
        return actions

    def _widen(self, job: str, account: Account, most: int) -> list[Action]:
        """Tell a job to use up to so many cores, if that is more than it was told."""
        cores = min(account.target, most)
        if cores <= account.told or (account.at_once and cores < account.target):
            return []
        self.granted += max(cores - account.granted, 0)
        account.granted = max(cores, account.granted)
        if cores == account.target:
            self._wanting.discard(job)
        return [self._tell(job, account, cores)]

    def _tell(self, job: str, account: Account, cores: int) -> Action:
        """The next action of a job."""
        account.number += 1
        if cores > account.told:
            kind: type[Action] = Grant if account.started else Start
            account.started = True
        else:
            kind = Shrink if cores else Stop
        account.told = cores
        return kind(job, cores, account.number)
