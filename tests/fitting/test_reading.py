"""Files of measurements: every form says the same, and every mistake is named with its line."""

from __future__ import annotations

import io
import sys

import pytest

from malleable.errors import MalleableError
from malleable.fitting import parse_measurements, read_measurements

STEPS = "num_nodes,num_replicas,local_bsz,step_time,sync_time\n1,1,8,1.0,0.1\n1,2,8,1.25,0.1\n1,2,16,2.0,.1\n"


@pytest.mark.parametrize(
    "text",
    [
        "cores,time\n1,4\n2,2.5\n",
        "\ufeff# a comment\n\nname, Time ,CORES\nx,2.5,2\ny,4,1\n",
        "cores,throughput\n1,0.25\n2,0.4\n",
        "batch,1,2,4,8\n64,0.25,0.4,0,\n",
        "1@4, 2@2.5",
    ],
)
def test_every_form_says_the_same(text, tmp_path):
    """Times, throughputs, a line per curve with holes, and pairs."""
    read = read_measurements(text) if "@" in text else parse_measurements(text)
    assert {k: pytest.approx(logs[0]) for k, logs in read.runs.items()} == {
        1.0: pytest.approx(-1.3862943611), 2.0: pytest.approx(-0.9162907319),
    }  # fmt: skip
    assert read.timed == ("time" in text.lower() or "@" in text)


def test_repeated_runs():
    """Runs at one width are kept, and count by their median."""
    read = parse_measurements("cores,time\n1,4\n2,2\n1,5\n1,4.5\n")
    assert [len(logs) for logs in read.runs.values()] == [3, 1]
    assert read.points.weights.tolist() == [3.0, 1.0]


def test_rows():
    """A line per curve: the first one, or the one that is named."""
    text = "batch,1,2\n64,1,2\n128,3,4\n"
    assert parse_measurements(text).row == "64"
    other = parse_measurements(text, row="128")
    assert (other.row, other.rows, other.rates) == ("128", ("64", "128"), (3.0, 4.0))
    with pytest.raises(MalleableError, match="has no row '12'"):
        parse_measurements(text, row="12")


def test_step_times():
    """Throughput is replicas · batch / step time: the best of each width, or one batch size."""
    best = parse_measurements(STEPS)
    assert (best.row, best.rows) == ("best", ("best", "8", "16"))
    assert dict(zip(best.cores, best.rates, strict=True)) == {1.0: 8.0, 2.0: 16.0}
    assert parse_measurements(STEPS, row="8").rates == pytest.approx((8.0, 12.8))


def test_standard_input(monkeypatch):
    """A dash reads standard input."""
    monkeypatch.setattr(sys, "stdin", io.StringIO("cores,time\n1,2\n2,1\n"))
    assert read_measurements("-").widths == (1.0, 2.0)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        ("# only a comment\n", "is empty"),
        ("cores,time\n", "a header and no measurements"),
        ("batch,1,2\n", "a header and no measurements"),
        ("cores,seconds\n1,2\n", "neither a column 'time' nor 'throughput'"),
        ("width,time\n1,2\n", "has no column 'cores'"),
        ("cores,time\n1,2\n2,0\n", "line 3: time must be a number above 0, got '0'"),
        ("cores,time\n1,2\n2,nan\n", "line 3: time must be a number above 0, got 'nan'"),
        ("cores,time\n1,2\n2\n", "line 3: time must be a number above 0, got ''"),
        ("cores,time\n1,2\n-2,1\n", "line 3: cores must be a number above 0, got '-2'"),
        ("cores,time\n1,2\n1,3\n", "only one width was measured, 1 cores"),
        ("batch,1,2\n64,1,x\n", "line 2: a throughput must be a number above 0, got 'x'"),
        ("batch,1,2\n64,1,2,3\n", "line 2 has more fields than the header"),
        ("batch,1,2\n64,0,\n", "there are no measurements"),
        ('cores,time\n"1,2\n', "is not valid CSV"),
    ],
)
def test_bad_files(text, words):
    """One sentence that names the line, and a hint."""
    with pytest.raises(MalleableError, match=words) as caught:
        parse_measurements(text, "runs.csv")
    assert caught.value.hint


def test_bad_places(tmp_path):
    """A file that is not there, a folder, a file that is no text, pairs that are no numbers."""
    with pytest.raises(MalleableError, match="there is no file 'nowhere"):
        read_measurements("nowhere.csv")
    with pytest.raises(MalleableError, match="cannot read"):
        read_measurements(tmp_path)
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00\x80")
    with pytest.raises(MalleableError, match="not a text file"):
        read_measurements(tmp_path / "binary")
    with pytest.raises(MalleableError, match="a time must be a number above 0, got 'x'"):
        read_measurements("1@3,2@x")
