"""Names for the places of numbers in a flat table: `ROW = places(Row)`, then `table[start + ROW.PEAK]`.

A class of names has no numbers that could collide or fall behind, and its values are constants to compiled
code. (Members of an `IntEnum` are too, but a rule that runs interpreted takes twice as long with them.)
"""

from __future__ import annotations

from typing import Any, TypeVar

Names = TypeVar("Names", bound=tuple[Any, ...])


def places(names: type[Names]) -> Names:
    """The names of a NamedTuple with the numbers 0, 1, 2, …; `len` says how many there are."""
    return names(*range(len(names._fields)))  # type: ignore[attr-defined]
