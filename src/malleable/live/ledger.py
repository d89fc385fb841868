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
"""

from __future__ import annotations

from dataclasses import dataclass

from malleable.live.actions import Action, Grant, Shrink, Start, Stop


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
        self._wanting: set[str] = set()
        """Jobs that were told less than their target."""

    @property
    def free(self) -> int:
        """Cores that are granted to no job; negative while too many are granted."""
        return self.cores - self.granted

    def open(self, job: str, rank: int, *, at_once: bool = False, in_use: int = 0) -> list[Action]:
        """Count a job; one that uses cores already is granted those that are free, and told so."""
        account = self.accounts[job] = Account(rank, at_once)
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
        actions = []
        for job, target in targets.items():
            account = self.accounts[job]
            account.target = target
            if target > account.told:
                self._wanting.add(job)
                continue
            self._wanting.discard(job)
            if target < account.told:
                actions.append(self._tell(job, account, target))
        return actions + self.hand_out()

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
        actions: list[Action] = []
        if not self._wanting:
            return actions
        for job in sorted(self._wanting, key=lambda one: self.accounts[one].rank):
            account = self.accounts[job]
            most = min(account.target, account.granted + max(self.free, 0))
            if most <= account.told or (account.at_once and most < account.target):
                continue
            self.granted += max(most - account.granted, 0)
            account.granted = max(most, account.granted)
            actions.append(self._tell(job, account, most))
            if most == account.target:
                self._wanting.discard(job)
        return actions

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
