"""The Standard Workload Format: what is read, what is dropped, and the NASA log against counts of its own."""

import gzip

import numpy as np
import pytest

from malleable.errors import TraceError
from malleable.traces import read_trace
from support.logs import NASA, SWF, real, written


def test_columns_of_a_small_log(tmp_path):
    """Widths are those allocated, or else asked for; -1 is missing; jobs are in order of submission."""
    trace = read_trace(written(tmp_path, SWF))
    assert trace.format == "swf"
    assert trace.ids.tolist() == [1, 6, 2]
    assert trace.submit.tolist() == [0.0, 5.0, 10.0]
    assert trace.cores.tolist() == [4.0, 16.0, 8.0]
    assert trace.duration.tolist() == [100.0, 12.5, 50.0]
    assert trace.core_seconds.sum() == 400.0 + 200.0 + 400.0
    assert np.array_equal(trace.wait, [5.0, 0.0, np.nan], equal_nan=True)
    assert np.array_equal(trace.estimate, [200.0, np.nan, 60.0], equal_nan=True)
    assert trace.user.words() == ["user-7", "user-9", "user-8"]
    assert trace.application.words() == ["program-3", "program-4", "program-3"]
    assert trace.status.words() == ["completed", "failed", "cancelled"]
    assert trace.machine == 64.0


def test_every_row_is_a_job_or_is_counted(tmp_path):
    """Jobs and dropped rows add up to the lines of the log, and each reason says what is wrong."""
    trace = read_trace(written(tmp_path, SWF))
    assert len(trace) + trace.rows_dropped == 7
    assert {one.reason: one.rows for one in trace.dropped} == {
        "fewer than 18 numbers": 1,
        "a part of a job that has a line of its own": 1,
        "no run time: never started, or not over": 1,
        "run time 0": 1,
    }


def test_hours_are_those_of_the_place(tmp_path):
    """The log begins at midnight in California, which its zone says and its Unix time does not."""
    trace = read_trace(written(tmp_path, SWF))
    assert trace.epoch % 86400.0 == 3.0


@real
def test_nasa_against_an_independent_count():
    """Jobs, span, core-seconds, users and what was dropped, counted line by line without the reader."""
    with gzip.open(NASA, "rt") as lines:
        rows = [[float(x) for x in line.split()] for line in lines if line.strip() and line[0] != ";"]
    good = [row for row in rows if row[3] > 0 and row[4] > 0]
    trace = read_trace(NASA)
    assert len(rows) == 18239
    assert len(trace) == len(good) == 18066
    assert [(one.reason, one.rows) for one in trace.dropped] == [("run time 0", 173)]
    assert trace.core_seconds.sum() == sum(row[3] * row[4] for row in good) == 474238015
    first = min(row[1] for row in good)
    assert trace.span == max(row[1] + row[3] for row in good) - first
    assert len(trace.user.names) == len({row[11] for row in good})
    assert trace.wait is None
    assert trace.machine == 128.0


def test_a_log_of_comments_alone(tmp_path):
    """A header without jobs is a sentence."""
    with pytest.raises(TraceError, match="holds no jobs"):
        read_trace(written(tmp_path, "; Version: 2.2\n; MaxProcs: 8\n"))
