"""Compile what cells will need before the first of them runs: every rule once, different ones on each core.

Two workers that start with two simulations would compile the same kernel side by side; what one has compiled
and kept on disk, the other only has to load.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from malleable import catalog
from malleable.engine.compiling import code_size
from malleable.engine.kernels.class_kernel import class_kernel
from malleable.engine.machines import machine
from malleable.engine.rule_interface import COUNTS
from malleable.errors import MalleableError
from malleable.model import paper_workload

if TYPE_CHECKING:
    from malleable.paper.contracts import Cell

CORES = 64
"""On the paper's workload with this many cores most policies have a program, the one that cells use."""
WEIGHT = 1.0 / 2000.0
"""Of a byte of code, compared to the weights of cells."""


@dataclass(frozen=True)
class Rules:
    """Policies whose rules are compiled one after the other."""

    policies: tuple[str, ...]
    weight: float

    @property
    def label(self) -> str:
        """What is being done."""
        return f"compiling {', '.join(self.policies)}"

    def compile(self) -> None:
        """Compile the rules and the kernel that they run on, or load them."""
        for text in self.policies:
            made = _program(text)
            if made is not None:
                machine(paper_workload(CORES), CORES, made, name=text)


def rules_of(cells: Iterable[Cell]) -> list[Rules]:
    """What the cells ask for: class rules, which are short, together; the others by length, longest first."""
    # The last of several policies with one rule gives the name: without options, if there is such a one.
    asked = sorted({text for cell in cells for text in _policies(cell.arguments)}, reverse=True)
    by_rule = {made.rule: (text, made) for text in asked if (made := _program(text)) is not None}
    short: list[Rules] = []
    long: list[Rules] = []
    for text, made in by_rule.values():
        alone = Rules((text,), WEIGHT * code_size(made.rule))
        (short if made.sees == COUNTS else long).append(alone)
    long.sort(key=lambda rules: -rules.weight)
    if not short:
        return long
    weight = WEIGHT * code_size(class_kernel) + sum(rules.weight for rules in short)
    return [Rules(tuple(text for rules in short for text in rules.policies), weight), *long]


def _program(text: str) -> Any:
    """The policy's program; None where it has none, or no plan for this many cores."""
    try:
        return catalog.build("policies", text).program(paper_workload(CORES), CORES)
    except MalleableError:
        return None


def _policies(arguments: Any) -> Iterator[str]:
    """All texts among the arguments that name a policy."""
    if isinstance(arguments, str):
        if catalog.normalised(arguments.partition(":")[0]) in catalog.kinds("policies"):
            yield arguments
    elif isinstance(arguments, Mapping):
        yield from _policies(list(arguments.values()))
    elif isinstance(arguments, list | tuple):
        for argument in arguments:
            yield from _policies(argument)
