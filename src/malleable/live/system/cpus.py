"""Disjoint sets of CPUs for grants: neighbours first, and one CPU of each physical core.

A CPU has a place: its socket, the caches that it shares, its core. A grant is taken from as few sockets as
possible, and within a socket from groups of CPUs that share a last-level cache. Where a core has several
CPUs (hyper-threads), a grant gets the first of each core, unless all of them are asked for: a second thread
of a busy core is worth a fraction of one. Only CPUs that this process may use are given: those of its
affinity mask, and no more of them than the quota of its cgroup is worth.
"""

from __future__ import annotations

import os
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

from malleable.errors import ParameterError
from malleable.execution.cpu_places import SYSTEM_CPUS, Place, places, read_text

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

CGROUPS = Path("/sys/fs/cgroup")
OWN_CGROUP = Path("/proc/self/cgroup")


def _own_cgroup(own: Path = OWN_CGROUP) -> str:
    """The path of this process's cgroup (version 2), the root where there is none."""
    lines = [line.split(":", 2) for line in read_text(own).splitlines()]
    return next((line[2] for line in lines if line[0] == "0"), "/")


def cgroup_cores(own: Path = OWN_CGROUP, root: Path = CGROUPS) -> float | None:
    """How many cores the quotas of this process's cgroup, and of those above it, are worth; None for all."""
    here = root / _own_cgroup(own).lstrip("/")
    folders = [here, *here.parents]
    quotas = [quota for folder in folders if folder.is_relative_to(root) if (quota := _quota(folder))]
    return min(quotas, default=None)


def _quota(folder: Path) -> float | None:
    """The quota of `cpu.max`, in cores: `150000 100000` is 1.5."""
    quota, _, period = read_text(folder / "cpu.max").partition(" ")
    return None if quota in {"", "max"} else int(quota) / int(period or 100_000)


class CpuSets:
    """The CPUs that can be granted, and those that are."""

    def __init__(
        self,
        cpus: Collection[int] | None = None,
        *,
        all_threads: bool = False,
        system: Path = SYSTEM_CPUS,
        limit: float | None = None,
    ) -> None:
        mask = os.sched_getaffinity(0) if cpus is None else cpus
        there = places(mask, system)
        if not all_threads:
            first: dict[int, Place] = {}
            for place in there:
                first.setdefault(place.core, place)
            there = [*first.values()]
        quota = cgroup_cores() if cpus is None else limit
        # Part of a core is worth a CPU; the quota itself sees to the rest.
        most = len(there) if quota is None else max(1, min(len(there), int(-(-quota // 1))))
        self._free = set(there[:most])
        self._granted: dict[int, Place] = {}

    @property
    def total(self) -> int:
        """How many CPUs there are to grant."""
        return len(self._free) + len(self._granted)

    @property
    def free(self) -> frozenset[int]:
        """The CPUs that no grant holds."""
        return frozenset(place.cpu for place in self._free)

    def grant(self, cores: int, near: Collection[int] = ()) -> frozenset[int]:
        """Take that many free CPUs: from the fewest sockets, next to those of `near` if it is given."""
        if not 0 <= cores <= len(self._free):
            raise ParameterError(f"cannot grant {cores} CPUs: {len(self._free)} are free")
        beside = [self._granted[cpu] for cpu in near]
        taken: list[Place] = []
        while len(taken) < cores:
            socket = self._best_socket(cores - len(taken), {place.socket for place in (*beside, *taken)})
            chosen = _neighbours(socket, cores - len(taken), beside)
            self._free.difference_update(chosen)
            taken += chosen
        self._granted.update({place.cpu: place for place in taken})
        return frozenset(place.cpu for place in taken)

    def claim(self, cpus: Iterable[int]) -> list[int]:
        """Take those of these CPUs that are free, in their order: of a job that has been using them."""
        free = {place.cpu: place for place in self._free}
        taken = [cpu for cpu in dict.fromkeys(cpus) if cpu in free]
        self._free.difference_update(free[cpu] for cpu in taken)
        self._granted.update((cpu, free[cpu]) for cpu in taken)
        return taken

    def _best_socket(self, wanted: int, used: set[int]) -> list[Place]:
        """The free CPUs of the socket to go on with.

        One that the grant is on already; else the smallest one that has enough, so that large rooms stay
        for large grants; else the largest, which leaves the fewest to be found elsewhere.
        """
        sockets: dict[int, list[Place]] = defaultdict(list)
        for place in sorted(self._free):
            sockets[place.socket].append(place)

        def rank(socket: int) -> tuple[bool, bool, int]:
            enough = len(sockets[socket]) >= wanted
            return socket not in used, not enough, len(sockets[socket]) if enough else -len(sockets[socket])

        return sockets[min(sockets, key=lambda socket: (*rank(socket), socket))]

    def give_back(self, cpus: Iterable[int]) -> None:
        """Let CPUs of a grant be granted again."""
        given = set(cpus)
        if not given <= self._granted.keys():
            raise ParameterError(f"CPUs {sorted(given - self._granted.keys())} are not granted")
        self._free.update(self._granted.pop(cpu) for cpu in given)


def _neighbours(free: list[Place], wanted: int, beside: Iterable[Place]) -> list[Place]:
    """CPUs of a socket: those that share a cache with the grant first, then whole caches, small ones last."""
    caches: dict[int, list[Place]] = defaultdict(list)
    for place in free:
        caches[place.cache].append(place)
    held = {place.cache for place in beside}
    chosen: list[Place] = []
    while caches and len(chosen) < wanted:
        rest = wanted - len(chosen)

        def rank(cache: int, rest: int = rest) -> tuple[bool, bool, int, int]:
            size = len(caches[cache])
            return cache not in held, size < rest, size if size >= rest else -size, cache

        chosen += caches.pop(min(caches, key=rank))[:rest]
    return chosen
