"""Each format of logs: what is read of it, what is dropped, and the real logs against counts of their own."""

import csv
import gzip
import json
import re
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from malleable.errors import TraceError
from malleable.traces import read_trace
from support.log_samples import ACME, ELASTISIM, HELIOS, PLAIN, RESIZED, SACCT, SAMPLES
from support.logs import JOBCOMP, PHILLY, real, written


def reasons(trace):
    return {one.reason: one.rows for one in trace.dropped}


@pytest.mark.parametrize("kind", SAMPLES)
def test_every_format_is_found_by_content(tmp_path, kind):
    """Also with the marks of Windows: a byte order, and ends of lines."""
    assert read_trace(written(tmp_path, SAMPLES[kind])).format == kind
    (tmp_path / "windows").write_bytes(SAMPLES[kind].replace("\n", "\r\n").encode("utf-16"))
    assert read_trace(tmp_path / "windows").format == kind


def test_sacct(tmp_path):
    """Steps, waiting and never started jobs are dropped with their reasons; limits and states are read."""
    trace = read_trace(written(tmp_path, SACCT))
    assert trace.format == "sacct"
    assert trace.ids.tolist() == ["10", "11_3"]
    assert trace.duration.tolist() == [7200.0, 90.0]
    assert trace.wait.tolist() == [600.0, 0.0]
    assert trace.cores.tolist() == [16.0, 4.0]
    assert np.array_equal(trace.estimate, [86400.0, np.nan], equal_nan=True)
    assert trace.status.words() == ["completed", "cancelled"]
    assert trace.epoch % 86400.0 == 8 * 3600.0
    assert reasons(trace) == {
        "a step of a job that has a line of its own": 1,
        "not over when the log was written": 1,
        "no run time: never started, or not over": 1,
    }


def test_sacct_without_submit_says_the_command(tmp_path):
    """The hint holds a command whose columns can all be read."""
    with pytest.raises(TraceError, match="no column 'Submit'") as caught:
        read_trace(written(tmp_path, "JobID|State|Elapsed\n1|COMPLETED|00:01:00\n"))
    columns = re.search(r"--format=(\S+)", caught.value.hint)[1].split(",")
    row = {"Submit": "2026-01-01T00:00:00", "Start": "2026-01-01T00:00:01", "End": "2026-01-01T00:00:03",
           "AllocCPUS": "2", "JobID": "7", "TimelimitRaw": "5"}  # fmt: skip
    text = "|".join(columns) + "\n" + "|".join(row.get(name, "x") for name in columns) + "\n"
    trace = read_trace(written(tmp_path, text))
    assert (trace.duration[0], trace.wait[0], trace.cores[0], trace.estimate[0]) == (2.0, 1.0, 2.0, 300.0)


def test_helios_and_acme(tmp_path):
    """Both are told by their own columns; jobs without GPUs are counted; hours are local ones."""
    helios = read_trace(written(tmp_path, HELIOS, "helios"))
    assert (helios.format, helios.unit, helios.queue.words()) == ("helios", "GPUs", ["vcA"])
    assert reasons(helios) == {"a job without GPUs": 1}
    assert (helios.wait.tolist(), helios.duration.tolist()) == ([10.0], [40.0])
    acme = read_trace(written(tmp_path, ACME, "acme"))
    assert (acme.format, acme.application.words()) == ("acme", ["Pretrain", "Eval"])
    assert acme.core_seconds.sum() == 1152 + 28
    assert acme.epoch % 86400.0 == 11 * 3600.0 + 58.0


def test_elastisim(tmp_path):
    """Shapes and limits are read; there are no run times; an entry that is no job is counted."""
    trace = read_trace(written(tmp_path, json.dumps(ELASTISIM)))
    assert trace.format == "elastisim"
    assert trace.shape.words() == ["rigid", "malleable"]
    assert trace.cores.tolist() == [4.0, 8.0]
    assert trace.duration is None
    assert trace.estimate.tolist() == [30.0, 60.0]
    assert trace.application.words() == ["", "cfd"]
    assert reasons(trace) == {"an entry that is not a job": 1}


def test_plain_columns(tmp_path):
    """Columns by name, in any order and with any delimiter; empty fields are missing."""
    trace = read_trace(written(tmp_path, PLAIN))
    assert trace.format == "plain"
    assert trace.ids.tolist() == ["b", "a"]
    assert trace.duration.tolist() == [3600.0, 60.0]
    assert trace.submit.tolist() == [0.0, 10.0]
    assert np.array_equal(trace.weight, [np.nan, 2.0], equal_nan=True)
    assert np.array_equal(trace.max_cores, [np.nan, 8.0], equal_nan=True)
    assert trace.application.words() == ["fem", "cfd"]


def test_plain_sizes(tmp_path):
    """Sizes are work; without cores a job is taken to have run on one."""
    trace = read_trace(written(tmp_path, "arrival,size\n0,2.5\n1,-1\n2,4\n"))
    assert trace.size.tolist() == [2.5, 4.0]
    assert trace.cores.tolist() == [1.0, 1.0]
    assert any("on how many cores" in note for note in trace.notes)
    assert trace.rows_dropped == 1


def parquet(path, **columns):
    pq.write_table(pa.table(columns), path)
    return path


def dates(*texts, zone=None):
    days = [None if text is None else datetime.fromisoformat(text) for text in texts]
    return pa.array(days, pa.timestamp("us", zone))


def test_f_data(tmp_path):
    """Fugaku's Parquet: nodes, limits and dates; a job that never started is counted."""
    trace = read_trace(
        parquet(
            tmp_path / "log", jid=["a", "b"], usr=["u", "v"], jnam=["x", "y"],
            adt=dates("2023-01-01 00:00:00", "2023-01-01 01:00:00"),
            sdt=dates("2023-01-01 00:00:30", None), edt=dates("2023-01-01 00:10:30", None),
            nnuma=[12, 0], nnumr=[12, 4], elpl=[86400, 60], perf1=[[1.0], [2.0]],
        )
    )  # fmt: skip
    assert (trace.format, trace.unit) == ("f_data", "nodes")
    assert (trace.duration.tolist(), trace.wait.tolist(), trace.cores.tolist()) == ([600.0], [30.0], [12.0])
    assert trace.estimate.tolist() == [86400.0]
    assert trace.rows_dropped == 1


def test_pm100(tmp_path):
    """Marconi100's Parquet: zoned dates show the clock there, and users are numbers."""
    trace = read_trace(
        parquet(
            tmp_path / "log", job_id=[1, 2], user_id=[7, 7], partition=["1", "2"],
            submit_time=dates("2020-05-01 10:00:00", "2020-05-01 11:00:00", zone="Europe/Rome"),
            start_time=dates("2020-05-01 10:00:05", "2020-05-01 11:00:00", zone="Europe/Rome"),
            end_time=dates("2020-05-01 10:01:05", "2020-05-01 11:00:09", zone="Europe/Rome"),
            num_cores_alloc=[128, 4], time_limit=[1440, None], run_time=[60, 9],
        )
    )  # fmt: skip
    assert trace.format == "pm100"
    assert trace.duration.tolist() == [60.0, 9.0]
    assert trace.user.words() == ["user_id-7", "user_id-7"]
    assert np.array_equal(trace.estimate, [86400.0, np.nan], equal_nan=True)
    assert trace.epoch % 86400.0 == 12 * 3600.0


def test_plain_parquet_packed_with_zstd(tmp_path):
    """Parquet with the names of the plain format; and a text log packed with zstd."""
    trace = read_trace(parquet(tmp_path / "log", arrival=[0.0, 1.0], duration=[5.0, 6.0], cores=[1, 2]))
    assert (trace.format, trace.core_seconds.tolist()) == ("plain", [5.0, 12.0])
    packed = tmp_path / "log.zst"
    packed.write_bytes(pa.compress(PLAIN.encode(), codec="zstd", asbytes=True))
    assert read_trace(packed).duration.tolist() == [3600.0, 60.0]
    packed.write_bytes(packed.read_bytes()[:20])
    with pytest.raises(TraceError, match="zstd"):
        read_trace(packed)


def test_a_broken_parquet_file_is_a_sentence(tmp_path):
    """Its first bytes alone are not enough."""
    (tmp_path / "log").write_bytes(b"PAR1" + bytes(200))
    with pytest.raises(TraceError, match="not valid Parquet"):
        read_trace(tmp_path / "log")


def test_a_format_may_be_said(tmp_path):
    """--format reads a log as that format; a wrong one is a sentence."""
    file = written(tmp_path, HELIOS)
    assert read_trace(file, "helios").format == "helios"
    for wrong in ("swf", "sacct", "jobcomp", "pm100", "f-data", "elastisim", "pollux", "philly"):
        with pytest.raises(TraceError):
            read_trace(file, wrong)


def test_resized_jobs_are_put_together(tmp_path):
    """One job from its records, with the core-seconds of all; one that did not end is counted."""
    trace = read_trace(written(tmp_path, RESIZED))
    assert trace.ids.tolist() == ["1", "2"]
    assert trace.core_seconds.tolist() == [4 * 10 + 8 * 30, 30]
    assert trace.wait.tolist() == [60.0, 30.0]
    assert trace.user.words() == ["ann", "bob"]
    assert trace.application.words() == ["A", "B c=3"]
    assert np.array_equal(trace.estimate, [600.0, np.nan], equal_nan=True)
    assert reasons(trace) == {
        "a line that is not a record of a job": 1,
        "resized, and not over when the log ends": 1,
    }
    assert "1 job was resized while running (1 records besides the last)" in trace.notes[0]


@real
def test_jobcomp_against_an_independent_count():
    """Jobs, core-seconds and what was dropped, counted record by record without the reader."""
    lines = JOBCOMP.read_text().splitlines()
    records = [dict(part.split("=", 1) for part in line.split() if "=" in part) for line in lines]

    def seconds(record):
        start, end = (datetime.fromisoformat(record[key]) for key in ("StartTime", "EndTime"))
        return (end - start).total_seconds()

    over = [r for r in records if r["JobState"] != "RESIZING"]
    ids = {r["JobId"] for r in over}
    used = sum(int(r["ProcCnt"]) * seconds(r) for r in records if r["JobId"] in ids)
    trace = read_trace(JOBCOMP)
    assert len(records) == 104
    assert len(over) == len(ids) == 100
    assert len(trace) == sum(seconds(r) > 0 for r in over) == 87
    assert trace.core_seconds.sum() == used == 247
    assert reasons(trace) == {"run time 0": 13, "resized, and not over when the log ends": 1}


@real
def test_philly_against_an_independent_count():
    """Jobs, span, GPU-seconds and virtual clusters, counted row by row without the reader."""
    with gzip.open(PHILLY, "rt") as file:
        rows = list(csv.DictReader(file))
    begun = [datetime.fromisoformat(r["timestamp"]) for r in rows]
    ends = [b.timestamp() + float(r["duration"]) for b, r in zip(begun, rows, strict=True)]
    trace = read_trace(PHILLY)
    assert len(trace) == len(rows)
    assert not trace.dropped
    assert trace.core_seconds.sum() == sum(float(r["duration"]) * int(r["num_gpus"]) for r in rows)
    assert trace.span == pytest.approx(max(ends) - min(begun).timestamp())
    assert set(trace.queue.names) == {r["cluster"] for r in rows}
