"""Clients of the live scheduler as tests need them: honest, but late, and in any order."""

from __future__ import annotations

from collections import deque

from malleable.live.core.events import Confirmed


class Client:
    """A job's client: actions come in, wait, and are carried out one by one; answers wait, too."""

    def __init__(self, job, cores=0):
        self.job, self.cores, self.number = job, cores, 0
        self.inbox, self.outbox, self.sent = deque(), deque(), []
        self.honest = True

    @property
    def may_use(self):
        """The most cores that it may use from now on, unless it is told more."""
        return max([self.cores, *(action.cores for action in self.inbox)])

    def carry_out(self, *, partly=False):
        """Do what the next action asks for; `partly` gives only one core back at first."""
        if not self.inbox:
            return
        action = self.inbox.popleft()
        self.number = action.number
        if partly and action.cores < self.cores - 1:
            self.cores -= 1
            self.inbox.appendleft(action)
        else:
            self.cores = action.cores
        self.outbox.append(Confirmed(self.job, self.cores, self.number))

    def answer(self):
        """The next answer on its way to the scheduler."""
        event = self.outbox.popleft()
        self.sent.append(event)
        return event
