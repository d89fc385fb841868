"""Sets of CPUs: parsed from folders that imitate the kernel's, disjoint, within the mask, near each other."""

from __future__ import annotations

import os
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from malleable.errors import ParameterError
from malleable.execution.cpu_places import parse_cpu_list, places
from malleable.live.system.cpus import CpuSets, cgroup_cores


def imitate(folder, sockets, caches, cores, threads):
    """Write a /sys/devices/system/cpu: threads are numbered as Linux does, second ones after all first."""
    total = sockets * caches * cores
    for cpu in range(total * threads):
        core = cpu % total
        siblings = ",".join(str(core + thread * total) for thread in range(threads))
        cache = core // cores
        shared = ",".join(
            f"{cache * cores + thread * total}-{cache * cores + cores - 1 + thread * total}"
            for thread in range(threads)
        )
        here = folder / f"cpu{cpu}"
        (here / "topology").mkdir(parents=True)
        (here / "topology" / "physical_package_id").write_text(f"{cache // caches}\n")
        (here / "topology" / "thread_siblings_list").write_text(f"{siblings}\n")
        for index, level, there in ((0, 1, siblings), (3, 3, shared)):
            (here / "cache" / f"index{index}").mkdir(parents=True)
            (here / "cache" / f"index{index}" / "level").write_text(f"{level}\n")
            (here / "cache" / f"index{index}" / "shared_cpu_list").write_text(f"{there}\n")
    return set(range(total * threads))


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    """Two sockets with two caches of four cores each, two threads per core: 32 CPUs."""
    folder = tmp_path_factory.mktemp("machine")
    return folder, imitate(folder, sockets=2, caches=2, cores=4, threads=2)


def test_lists_of_the_kernel():
    """Ranges and single CPUs, and nothing."""
    assert parse_cpu_list("0-2,7,10-11\n") == {0, 1, 2, 7, 10, 11}
    assert parse_cpu_list("\n") == set()


def test_one_cpu_of_each_core(machine):
    """A machine of 16 cores and 32 threads has 16 CPUs to grant, 32 if all threads are asked for."""
    folder, cpus = machine
    assert CpuSets(cpus, system=folder).free == set(range(16))
    assert CpuSets(cpus, system=folder, all_threads=True).total == 32
    # A mask may hold only the second threads.
    assert CpuSets(set(range(16, 32)), system=folder).free == set(range(16, 32))


def test_neighbours_first(machine):
    """Four CPUs share a cache, eight a socket; a grant that grows stays where it is."""
    folder, cpus = machine
    sets = CpuSets(cpus, system=folder)
    small = sets.grant(2)
    four = sets.grant(4)
    assert len({place.cache for place in places(four, folder)}) == 1
    eight = sets.grant(8)
    assert len({place.socket for place in places(eight, folder)}) == 1
    more = sets.grant(2, near=small)
    assert {place.cache for place in places(more, folder)} == {place.cache for place in places(small, folder)}


def test_with_unknown_places(tmp_path):
    """Where the system says nothing, each CPU is a core."""
    assert CpuSets({3, 5, 8}, system=tmp_path).grant(3) == {3, 5, 8}


def test_what_cannot_be_granted(machine):
    """More than is free, and CPUs given back twice, are errors, and change nothing."""
    folder, cpus = machine
    sets = CpuSets(cpus, system=folder)
    held = sets.grant(3)
    with pytest.raises(ParameterError, match="cannot grant 14 CPUs: 13 are free"):
        sets.grant(14)
    sets.give_back(held)
    with pytest.raises(ParameterError, match="are not granted"):
        sets.give_back(held)
    assert sets.free == set(range(16))


@pytest.mark.parametrize(
    ("quotas", "cores"),
    [
        ({"": "max 100000"}, None),
        ({"a/b": "150000 100000", "a": "max 100000"}, 1.5),
        ({"a/b": "400000 100000", "a": "200000 100000"}, 2.0),
        ({}, None),
    ],
)
def test_quota_of_the_cgroup(tmp_path, quotas, cores):
    """The least quota from the own cgroup up to the root counts."""
    root, own = tmp_path / "cgroup", tmp_path / "own"
    own.write_text("1:cpu:/elsewhere\n0::/a/b\n")
    for name, text in quotas.items():
        (root / name).mkdir(parents=True, exist_ok=True)
        (root / name / "cpu.max").write_text(f"{text}\n")
    assert cgroup_cores(own, root) == cores


def test_a_quota_bounds_the_cpus(machine):
    """One and a half cores are worth two CPUs; a tenth of one is worth one."""
    folder, cpus = machine
    assert [CpuSets(cpus, system=folder, limit=limit).total for limit in (1.5, 0.1, 99.0)] == [2, 1, 16]


@pytest.mark.skipif(sys.platform != "linux", reason="it reads /sys")
def test_this_machine():
    """On the machine at hand, all that is granted is in the affinity mask."""
    sets = CpuSets()
    assert sets.grant(sets.total) <= os.sched_getaffinity(0)


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_disjoint_inside_the_mask_on_the_fewest_sockets(machine, data):
    """Whatever is granted and given back: sets are disjoint, inside the mask, on as few sockets as can be."""
    folder, cpus = machine
    mask = data.draw(st.sets(st.sampled_from(sorted(cpus)), min_size=1))
    sets = CpuSets(mask, system=folder, all_threads=data.draw(st.booleans()))
    total, held = sets.total, []
    for _ in range(data.draw(st.integers(1, 12))):
        if held and data.draw(st.booleans()):
            sets.give_back(held.pop(data.draw(st.integers(0, len(held) - 1))))
            continue
        free = places(sets.free, folder)
        wanted = data.draw(st.integers(0, len(free)))
        granted = sets.grant(wanted)
        rooms = sorted((sum(place.socket == s for place in free) for s in (0, 1)), reverse=True)
        fewest = 0 if wanted == 0 else 1 if wanted <= rooms[0] else 2
        assert len({place.socket for place in places(granted, folder)}) == fewest
        assert len(granted) == wanted
        held.append(granted)
        taken = [cpu for grant in held for cpu in grant]
        assert len(taken) == len(set(taken))
        assert set(taken) <= mask
        assert not set(taken) & sets.free
        assert len(taken) + len(sets.free) == total
