"""A cgroup (version 2) of its own for a program, whose `cpu.max` follows the width.

It bounds the processor time of all that the program starts, wherever that runs. It takes a cgroup that was
delegated to this user, with the `cpu` controller; where there is none, affinity alone has to do.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Self

from malleable.live.cpus import CGROUPS, own_cgroup

if TYPE_CHECKING:
    from pathlib import Path

PERIOD = 100_000
"""Microseconds over which the kernel counts processor time."""


class Cgroup:
    """The folder of a cgroup that was made for one program."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def make(cls, name: str, parent: Path | None = None) -> Self | None:
        """Make a cgroup below `parent`, the one of this process by default; None where that cannot be."""
        parent = CGROUPS / own_cgroup().lstrip("/") if parent is None else parent
        try:
            if "cpu" not in (parent / "cgroup.subtree_control").read_text(encoding="ascii").split():
                (parent / "cgroup.subtree_control").write_text("+cpu", encoding="ascii")
            made = cls(parent / name)
            made.folder.mkdir()
        except OSError:
            return None
        try:
            made.set_width(1)
        except OSError:
            made.remove()
            return None
        return made

    def add(self, pid: int) -> None:
        """Move a process here, and with it all that it will start."""
        (self.folder / "cgroup.procs").write_text(f"{pid}\n", encoding="ascii")

    def set_width(self, cores: int) -> None:
        """Allow that many cores' worth of processor time; there is no quota of 0, which is a pause."""
        (self.folder / "cpu.max").write_text(f"{max(cores, 1) * PERIOD} {PERIOD}\n", encoding="ascii")

    def remove(self) -> None:
        """Remove the cgroup, which is empty once the program has ended."""
        with suppress(OSError):
            self.folder.rmdir()
