"""Sorted blocks keep jobs in the order in which they finish, whatever is put on and taken off."""

import bisect

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from malleable.contracts import Policy
from malleable.engine import mark_blocks as S  # noqa: N812 - ditto
from malleable.engine.kernels import class_kernel as K  # noqa: N812 - as the engine does
from malleable.engine.machines import class_machine, machine
from malleable.engine.run import departures
from malleable.model import paper_workload
from malleable.simulation import program
from malleable.sources import stream


class Shelf:
    """Class 1 of a machine with tiny blocks, driven by hand."""

    def __init__(self, block, many):
        class_machine.BLOCK, class_machine.MANY = block, many
        workload = paper_workload(8)
        self.machine = machine(workload, 8, program(Policy.of("equi"), workload, 8), interpreted=True)
        self.size = 0

    def arrays(self):
        made = self.machine
        return made.cells.reshape(-1), made.fill, made.spare, int(made.integers[K.SPARES]), made.ring

    def put(self, mark, name):
        made = self.machine
        if made.integers[K.SPARES] == 0 or made.integers[K.IDLE] == 0:
            made._grow()
        made.integers[K.IDLE] -= 1
        place = int(made.idle[made.integers[K.IDLE]])
        made.jobs[place] = 10.0 + name, 20.0 + name, name, 1
        cells, fill, spare, spares, ring = self.arrays()
        made.integers[K.SPARES] = S.insert(
            cells, fill, spare, spares, ring, made.tops, made.shelf.reshape(-1), made.jobs.reshape(-1),
            made.cells.shape[1], 1, mark, place,
        )  # fmt: skip
        self.size += 1

    def take(self, *, first):
        made = self.machine
        cells, fill, spare, spares, ring = self.arrays()
        shelf, size = made.shelf.reshape(-1), made.cells.shape[1]
        if first:
            at = made.shelf[1, S.NEXT]
        else:
            spot = (made.shelf[1, S.FRONT] + made.shelf[1, S.BLOCKS] - 1) % ring.shape[1]
            at = 2 * size * ring[1, spot]
        mark, place = cells[at], int(cells[at + 1])
        if first:
            made.integers[K.SPARES] = S.drop_first(fill, spare, spares, ring, shelf, size, 1)
        else:
            made.integers[K.SPARES] = S.drop_last(cells, fill, spare, spares, ring, made.tops, shelf, size, 1)
        made.idle[made.integers[K.IDLE]] = place
        made.integers[K.IDLE] += 1
        self.size -= 1
        return mark, made.jobs[place]


@pytest.fixture(autouse=True)
def usual_blocks():
    kept = class_machine.BLOCK, class_machine.MANY
    yield
    class_machine.BLOCK, class_machine.MANY = kept


steps = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.integers(0, 12)), st.tuples(st.sampled_from(["min", "max"]), st.just(0))
    ),
    max_size=200,
)


@given(steps=steps, block=st.sampled_from([2, 4, 8]), many=st.sampled_from([1, 2, 100]))
def test_shelf_against_a_sorted_list(steps, block, many):
    """Both ends come out in order of mark and name, rows whole, while blocks split, join and grow."""
    shelf, kept = Shelf(block, many), []
    for name, (what, value) in enumerate(steps):
        if what == "put":
            shelf.put(float(value), float(name))
            bisect.insort(kept, (float(value), float(name)))
        elif kept:
            mark, row = shelf.take(first=what == "min")
            assert (mark, row[S.NAME]) == kept.pop(0 if what == "min" else -1)
            assert row[S.ARRIVAL] == 10.0 + row[S.NAME]
            assert row[S.WORK] == 20.0 + row[S.NAME]
        assert shelf.size == len(kept)
    while kept:
        mark, row = shelf.take(first=True)
        assert (mark, row[S.NAME]) == kept.pop(0)


@pytest.mark.parametrize("policy", ["wham", "fcfs", "equi", "fw-cam"])
@pytest.mark.parametrize(("block", "many"), [(2, 1), (4, 2), (4, 1000)])
def test_blocks_do_not_matter(policy, block, many):
    """Every job leaves when it would leave with blocks so large that there is only one, overload included."""
    cores, rows = (16, 0.9) if policy != "fw-cam" else (64, 0.5)
    workload = paper_workload(cores, rows)
    jobs = stream(workload, 5, chunk=3000).take()
    made = program(Policy.of(policy), workload, cores)
    class_machine.BLOCK = 4096
    expected = departures(workload, cores, made, jobs)
    class_machine.BLOCK, class_machine.MANY = block, many
    assert np.array_equal(departures(workload, cores, made, jobs), expected)
