"""One function for a whole family of formulas, which are known by their codes: 0, 1, 2 and so on.

Compiled code cannot look a function up in a list. It can call one that it closes over, so the choice is a
tree of functions, each of which asks whether the code is in its lower or in its upper half. Compiled, all of
it is one function with a few comparisons; interpreted, it is as many calls as the tree is high.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def by_code(formulas: Sequence[Callable[..., Any]], first: int = 0) -> Callable[[Any, Any, float], Any]:
    """f(table, row, x), which calls the formula whose code stands in table[row]."""
    if len(formulas) == 1:
        return formulas[0]
    middle = len(formulas) // 2
    low, high, split = (
        by_code(formulas[:middle], first),
        by_code(formulas[middle:], first + middle),
        first + middle,
    )

    def chosen(table: Any, row: Any, x: float) -> Any:
        return low(table, row, x) if table[row] < split else high(table, row, x)

    return chosen


def by_code_at(
    formulas: Sequence[Callable[..., Any]], first: int = 0
) -> Callable[[Any, Any, float, float], Any]:
    """The same for formulas of two numbers: f(table, row, x, y)."""
    if len(formulas) == 1:
        return formulas[0]
    middle = len(formulas) // 2
    low, high = by_code_at(formulas[:middle], first), by_code_at(formulas[middle:], first + middle)
    split = first + middle

    def chosen(table: Any, row: Any, x: float, y: float) -> Any:
        return low(table, row, x, y) if table[row] < split else high(table, row, x, y)

    return chosen
