"""The journal: every event with its time. Replayed into a new scheduler, it gives the same state.

    journal = Journal(scheduler)
    actions = journal.handle(event, now)          # in place of scheduler.handle

Entries are plain documents, so they can be kept as lines of JSON or as rows of a table.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from malleable.catalog.spec import validate
from malleable.errors import MalleableError, ParameterError
from malleable.live.core.events import Event
from malleable.live.core.scheduler import Scheduler

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from malleable.live.core.actions import Action


@dataclass(frozen=True)
class Entry:
    """An event, when it was handled, and why it was refused if it was."""

    now: float
    event: Event
    refused: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The entry as a plain document."""
        made = {"now": self.now, "event": self.event.to_dict()}
        return {**made, "refused": self.refused} if self.refused else made

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Entry:
        """Read what `to_dict` wrote; errors name the key."""
        for key in ("now", "event"):
            if key not in document:
                raise ParameterError(f"missing key {key!r}", "an entry needs now and event")
        try:
            event = Event.of(document["event"])
        except MalleableError as error:
            raise error.within("event") from None
        return cls(validate(float, document["now"]), event, str(document.get("refused", "")))


@dataclass
class Journal:
    """A scheduler whose events are written down."""

    scheduler: Scheduler
    entries: list[Entry] = field(default_factory=list)

    def handle(self, event: Event, now: float) -> list[Action]:
        """As `Scheduler.handle`."""
        actions = self.scheduler.handle(event, now)
        self.entries.append(Entry(now, event, self.scheduler.refused))
        return actions


def replay(entries: Iterable[Entry], scheduler: Scheduler) -> Scheduler:
    """The scheduler after these entries; it has to be a new one, made as the first one was."""
    for entry in entries:
        scheduler.handle(entry.event, entry.now)
    return scheduler
