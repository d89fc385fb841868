"""The state of one run and its kernel: arrays that persist between calls, and grow when they must."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from malleable.engine.machines.base import Machine, Snapshot
from malleable.engine.machines.class_machine import ClassMachine
from malleable.engine.machines.job_machine import JobMachine
from malleable.engine.rule_interface import COUNTS, Program

if TYPE_CHECKING:
    from malleable.contracts import CoreChanges
    from malleable.model import Workload

__all__ = ["ClassMachine", "JobMachine", "Machine", "Snapshot", "machine"]


def machine(
    workload: Workload,
    cores: float,
    program: Program,
    *,
    name: str = "",
    interpreted: bool = False,
    wide: bool = False,
    log: int = 0,
    sizes_known: bool = True,
    changes: CoreChanges | None = None,
) -> Machine:
    """The machine that a program runs on: one for job rules where sizes are unknown or cores change."""
    options: dict[str, Any] = {"name": name, "interpreted": interpreted, "wide": wide, "log": log}
    if program.sees == COUNTS:
        return ClassMachine(workload, cores, program, **options)
    return JobMachine(workload, cores, program, sizes_known=sizes_known, changes=changes, **options)
