"""Where CPUs are: their sockets, caches and cores, as Linux tells in /sys."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

SYSTEM_CPUS = Path("/sys/devices/system/cpu")


@dataclass(frozen=True, order=True)
class Place:
    """Where a CPU is: socket, first CPU of its last-level cache, first CPU of its core, and itself."""

    socket: int
    cache: int
    core: int
    cpu: int


def parse_cpu_list(text: str) -> set[int]:
    """CPUs as the kernel lists them: `0-3,8` is 0, 1, 2, 3 and 8."""
    cpus: set[int] = set()
    for part in filter(None, text.strip().split(",")):
        first, _, last = part.partition("-")
        cpus.update(range(int(first), int(last or first) + 1))
    return cpus


def places(cpus: Iterable[int], system: Path = SYSTEM_CPUS) -> list[Place]:
    """The places of some CPUs, in order; a CPU that the system says nothing of is a core by itself."""
    return sorted(_place(cpu, system / f"cpu{cpu}") for cpu in cpus)


def _place(cpu: int, folder: Path) -> Place:
    socket = read_text(folder / "topology" / "physical_package_id")
    siblings = read_text(folder / "topology" / "thread_siblings_list")
    caches = {
        read_text(index / "level"): read_text(index / "shared_cpu_list")
        for index in folder.glob("cache/index*")
    }
    # Levels are single digits, so the last in order of their text is the last.
    shared = caches[max(caches)] if caches else ""
    return Place(
        # Some virtual machines say -1.
        max(0, int(socket or 0)),
        min(parse_cpu_list(shared), default=-1),
        min(parse_cpu_list(siblings), default=cpu),
        cpu,
    )


def read_text(file: Path) -> str:
    """A small file of the kernel's; nothing if it is not there."""
    try:
        return file.read_text(encoding="ascii").strip()
    except OSError:
        return ""
