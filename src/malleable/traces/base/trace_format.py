"""The contract of a format of logs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

from malleable.catalog.spec import Spec

if TYPE_CHECKING:
    from malleable.traces.base.columns import Columns
    from malleable.traces.base.source import Source


class TraceFormat(Spec, ABC):
    """How logs of one kind are told from others, and read."""

    general: ClassVar[bool] = False
    """Whether it takes what no other format does."""

    @abstractmethod
    def fits(self, source: Source) -> bool:
        """Whether the beginning of a file looks like this format."""

    @abstractmethod
    def columns(self, source: Source) -> Columns:
        """The raw columns of a file; a `TraceError` if something that is needed is not there."""
