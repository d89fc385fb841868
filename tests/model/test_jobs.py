"""Rows of jobs: what is accepted, and what each mistake is told."""

from __future__ import annotations

import contextlib
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from malleable.errors import JobsError, MalleableError
from malleable.model import paper_workload
from malleable.model.job_rows import COLUMNS
from malleable.model.jobs import Jobs
from malleable.speedups.power import Power
from support.examples import examples

WORKLOAD = paper_workload()
GOOD = {"id": "a", "class": "class-1", "remaining": 1.5}


def rows(*changes):
    """Good rows with the given changes; a key set to `...` is left out."""
    table = []
    for number, change in enumerate(changes):
        row = {**GOOD, "id": f"job-{number}", **change}
        table.append({key: value for key, value in row.items() if value is not ...})
    return table


class TestRows:
    """`Jobs.from_rows`."""

    def test_columns(self):
        """Given values are taken; missing ones are the class's cost, age 0, no cores."""
        jobs = Jobs.from_rows(
            WORKLOAD,
            rows({}, {"class": "class-2", "weight": 7, "age": "3", "cores": 2}, {"class": "class-2"}),
        )
        assert len(jobs) == 3
        assert jobs.ids == ("job-0", "job-1", "job-2")
        assert jobs.class_index.tolist() == [0, 1, 1]
        assert jobs.remaining.tolist() == [1.5, 1.5, 1.5]
        assert jobs.weight.tolist() == [1.0, 7.0, 2.0]
        assert jobs.age.tolist() == [0.0, 3.0, 0.0]
        assert jobs.held.tolist() == [0.0, 2.0, 0.0]
        assert jobs.own_weights

    def test_text_is_read_as_numbers(self):
        """Rows of a CSV file hold strings; empty fields are fields not given."""
        jobs = Jobs.from_rows(WORKLOAD, rows({"remaining": " 2.5 ", "weight": "", "age": None}))
        assert jobs.remaining.tolist() == [2.5]
        assert jobs.weight.tolist() == [1.0]
        assert not jobs.own_weights

    def test_numeric_ids(self):
        """Ids may be numbers; 1 and "1" are the same id."""
        assert Jobs.from_rows(WORKLOAD, rows({"id": 7})).ids == ("7",)
        with pytest.raises(JobsError, match="'1' is used twice"):
            Jobs.from_rows(WORKLOAD, rows({"id": 1}, {"id": "1"}))
        with pytest.raises(JobsError, match="'1' is used twice"):
            Jobs.of(WORKLOAD, [0, 0], [1.0, 1.0], ids=[1, "1"])

    def test_finished_job(self):
        """A remaining size of exactly 0 is allowed."""
        assert Jobs.from_rows(WORKLOAD, rows({"remaining": 0})).remaining.tolist() == [0.0]

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ({"class": "class-4"}, "job 'job-1'.*no class 'class-4'.*did you mean"),
            ({"class": ["class-1"]}, "job 'job-1'.*no class"),
            ({"class": 1}, "job 'job-1'.*no class '1'"),
            ({"remaining": -1}, "job 'job-1': 'remaining' must be.*got -1"),
            ({"remaining": math.nan}, "job 'job-1': 'remaining'.*nan"),
            ({"remaining": "nan"}, "job 'job-1': 'remaining'.*nan"),
            ({"remaining": math.inf}, "job 'job-1': 'remaining'.*inf"),
            ({"remaining": "lots"}, "job 'job-1': 'remaining' must be a number, got 'lots'"),
            ({"remaining": True}, "'remaining' must be a number, got True"),
            ({"remaining": [1]}, "'remaining' must be a number"),
            ({"remaining": {}}, "'remaining' must be a number"),
            ({"remaining": 1j}, "'remaining' must be a number"),
            ({"remaining": 10**400}, "'remaining' must be a number"),
            ({"weight": 0}, "job 'job-1': 'weight' must be a positive number, got 0"),
            ({"weight": -2}, "'weight'"),
            ({"weight": "nan"}, "'weight'"),
            ({"age": -1}, "job 'job-1': 'age'"),
            ({"cores": -1}, "job 'job-1': 'cores'"),
            ({"id": "job-0"}, "the id 'job-0' is used twice"),
            ({"id": ...}, "row 2 has no 'id'"),
            ({"class": ...}, "row 2 has no 'class'"),
            ({"remaining": ...}, "row 2 has no 'remaining'"),
            ({"remaining": ""}, "row 2 has no 'remaining'"),
            ({"id": None}, "row 2 has no 'id'"),
            ({"remainin": 3}, "row 2 has an unknown column 'remainin'.*did you mean 'remaining'"),
            ({None: ["x"]}, "row 2 has an unknown column None"),
        ],
    )
    def test_mistakes(self, change, words):
        """The message names the job or the row, the column and the value."""
        with pytest.raises(JobsError, match=words):
            Jobs.from_rows(WORKLOAD, rows({}, change))

    def test_empty(self):
        """No rows at all are no jobs: an idle queue is normal."""
        assert len(Jobs.from_rows(WORKLOAD, [])) == 0

    @pytest.mark.parametrize(
        "table", ["text", [1], [None], [[]], ["id"], [("id", "class")], {"id": 1}, 5, None]
    )
    def test_not_rows(self, table):
        """Anything but rows of keys and values is an error of ours."""
        with pytest.raises(JobsError):
            Jobs.from_rows(WORKLOAD, table)

    @settings(max_examples=examples(60))
    @given(
        st.lists(
            st.dictionaries(
                st.one_of(st.sampled_from(COLUMNS), st.text(max_size=3)),
                st.recursive(
                    st.one_of(
                        st.none(),
                        st.booleans(),
                        st.integers(),
                        st.floats(),
                        st.text(max_size=5),
                        st.sampled_from(["class-1", "class-2", "1", "nan"]),
                    ),
                    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner),
                    max_leaves=3,
                ),
                max_size=5,
            ),
            max_size=4,
        )
    )
    def test_random_rows(self, table):
        """Random rows give jobs or an error of ours, nothing else."""
        with contextlib.suppress(MalleableError):
            assert len(Jobs.from_rows(WORKLOAD, table)) == len(table)

    @settings(max_examples=examples(60))
    @given(
        st.lists(
            st.fixed_dictionaries(
                {
                    "id": st.one_of(st.integers(0, 9), st.text(max_size=2)),
                    "class": st.sampled_from(["class-1", "class-2", "class-3", "class-9"]),
                    "remaining": st.one_of(st.floats(), st.floats(0, 1e9), st.text(max_size=3)),
                },
                optional={
                    "weight": st.one_of(st.floats(), st.floats(1e-9, 1e9), st.just("")),
                    "age": st.floats(0, 1e9),
                    "cores": st.integers(-1, 5),
                },
            ),
            min_size=1,
            max_size=4,
        )
    )
    def test_nearly_good_rows(self, table):
        """What gets through is finite, not negative, and in the order of the rows."""
        try:
            jobs = Jobs.from_rows(WORKLOAD, table)
        except MalleableError:
            return
        for column in (jobs.remaining, jobs.weight, jobs.age, jobs.held):
            assert column.shape == (len(table),)
            assert np.all(np.isfinite(column))
            assert np.all(column >= 0.0)
        assert np.all(jobs.weight > 0.0)
        assert jobs.ids == tuple(str(row["id"]) for row in table)


class TestColumns:
    """`Jobs.of`, the array way in."""

    def test_names_or_positions(self):
        """Classes go by name or by position."""
        by_name = Jobs.of(WORKLOAD, ["class-3", "class-1"], [1.0, 2.0])
        by_position = Jobs.of(WORKLOAD, np.array([2, 0]), np.array([1.0, 2.0]))
        assert by_name.class_index.tolist() == by_position.class_index.tolist() == [2, 0]

    def test_no_jobs(self):
        """No jobs at all is a state like any other."""
        assert len(Jobs.of(WORKLOAD, [], [])) == 0

    @pytest.mark.parametrize(
        "arguments",
        [
            {"classes": [3], "remaining": [1.0]},
            {"classes": [-1], "remaining": [1.0]},
            {"classes": [0.5], "remaining": [1.0]},
            {"classes": ["class-9"], "remaining": [1.0]},
            {"classes": ["class-1", ["class-1"]], "remaining": [1.0, 1.0]},
            {"classes": ["class-1", 0], "remaining": [1.0, 1.0]},
            {"classes": [0, "class-1"], "remaining": [1.0, 1.0]},
            {"classes": [None], "remaining": [1.0]},
            {"classes": [0], "remaining": None},
            {"classes": [0], "remaining": [1.0, 2.0]},
            {"classes": [0], "remaining": [[1.0]]},
            {"classes": [0], "remaining": ["x"]},
            {"classes": [0], "remaining": [-1.0]},
            {"classes": [0], "remaining": [1.0], "weight": [0.0]},
            {"classes": [0], "remaining": [1.0], "weight": [1.0, 2.0]},
            {"classes": [0], "remaining": [1.0], "age": [math.nan]},
            {"classes": [0], "remaining": [1.0], "held": [-1]},
            {"classes": [0], "remaining": [1.0], "ids": ["a", "b"]},
            {"classes": [0, 0], "remaining": [1.0, 1.0], "ids": ["a", "a"]},
            {"classes": [0], "remaining": [1.0], "speedups": []},
            {"classes": [0], "remaining": [1.0], "speedups": [{"kind": "power", "exponent": 2}]},
        ],
    )
    def test_mistakes(self, arguments):
        """Columns that do not fit are errors of ours."""
        with pytest.raises(MalleableError):
            Jobs.of(WORKLOAD, arguments.pop("classes"), arguments.pop("remaining"), **arguments)

    def test_own_speedups(self):
        """A job may bring its own speedup, as an object, a document or a function."""
        jobs = Jobs.of(WORKLOAD, [0, 1], [1.0, 2.0], speedups=[Power(0.9), {"kind": "rooftop", "cores": 3}])
        assert jobs.speedups[0] == Power(0.9)
        assert jobs.speedup_index.tolist() == [0, 1]

    def test_order(self):
        """Older jobs come first; rows decide among equals; an index sorts before both."""
        jobs = Jobs.of(WORKLOAD, [0, 0, 0, 0], [1.0] * 4, age=[1.0, 3.0, 3.0, 2.0])
        assert jobs.order.tolist() == [1, 2, 3, 0]
        assert jobs.by(np.array([5.0, 1.0, 1.0, 5.0])).tolist() == [3, 0, 1, 2]
