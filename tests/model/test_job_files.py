"""Files of jobs: the fast reader by columns against the rows one by one, forms of CSV, and empty files."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
import tracemalloc
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from malleable.errors import JobsError
from malleable.model import job_files, paper_workload
from malleable.model.job_files import parse_jobs, read_jobs
from malleable.model.job_rows import COLUMNS
from malleable.model.jobs import Jobs
from support.examples import examples
from support.shell import malleable

WORKLOAD = paper_workload()
HEADER = "id,class,remaining"


def same(found: Jobs, wanted: Jobs) -> bool:
    """Whether two sets of jobs are equal in every column."""
    columns = ("class_index", "remaining", "weight", "age", "held")
    equal = all(np.array_equal(getattr(found, name), getattr(wanted, name)) for name in columns)
    return equal and found.ids == wanted.ids and found.own_weights == wanted.own_weights


def outcome(question):
    """The jobs, or the problem that there is with them."""
    try:
        return question()
    except JobsError as error:
        return error.problem


# --- columns and rows -------------------------------------------------------------------------------------

NUMBERS = st.one_of(
    st.floats(0.01, 100.0).map(repr),
    st.sampled_from(["1", " 2.5", "3 ", "", " ", "0", "-1", "nan", "inf", "1e999", "x", "1,5", "1_000", "٣"]),
)
GOOD = st.floats(0.01, 100.0).map(repr)


@st.composite
def tables(draw):
    """Rows of a CSV file, most of them good: the header and the fields."""
    optional = draw(st.lists(st.sampled_from(COLUMNS[3:]), unique=True))
    header = draw(st.permutations([*COLUMNS[:3], *optional]))
    size, careless = draw(st.integers(0, 9)), draw(st.booleans())
    numbers = NUMBERS if careless else GOOD
    wrong = ["class-9", "", " class-1 "] if careless else []
    cells = {
        "id": st.one_of(st.text('ab", ;\n', max_size=3), st.integers(0, 99).map(str)),
        "class": st.sampled_from([*WORKLOAD.class_names, *wrong]),
    }
    rows = []
    for number in range(size):
        row = {name: draw(cells.get(name, numbers)) for name in header}
        if not careless or draw(st.booleans()):
            row["id"] = f"{number}{row['id'].strip()}"
        rows.append(row)
    return header, rows


def written(header, rows, delimiter=",", end="\n", *, quoting=csv.QUOTE_MINIMAL):
    out = io.StringIO(newline="")
    writer = csv.writer(out, delimiter=delimiter, lineterminator=end, quoting=quoting)
    writer.writerow(header)
    writer.writerows([row[name] for name in header] for row in rows)
    return out.getvalue()


def agree(table, delimiter, end, quoting, stretch):
    """A file gives the jobs, or the mistake, that its rows give."""
    header, rows = table
    text = written(header, rows, delimiter, end, quoting=quoting)
    stripped = [{name: field.strip() for name, field in row.items()} for row in rows]
    wanted = outcome(lambda: Jobs.from_rows(WORKLOAD, stripped))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(job_files, "STRETCH", stretch)
        found = outcome(lambda: parse_jobs(WORKLOAD, text))
    if isinstance(wanted, str):
        assert found == wanted
    else:
        assert same(found, wanted)


FORMS = (
    st.sampled_from(",;\t"),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    st.integers(1, 4),
)


@settings(max_examples=examples(60))
@given(tables(), *FORMS)
def test_columns_and_rows_agree(table, delimiter, end, quoting, stretch):
    agree(table, delimiter, end, quoting, stretch)


@pytest.mark.slow
@settings(max_examples=10_000)
@given(tables(), *FORMS)
def test_columns_and_rows_agree_very_often(table, delimiter, end, quoting, stretch):
    agree(table, delimiter, end, quoting, stretch)


@settings(max_examples=examples(40))
@given(st.text('idclassremaining-12.5,;"\n\r\t \ufeff[]{}', max_size=60))
def test_any_text(text):
    """Any text is jobs or an error of ours, whatever the size of a stretch."""
    with pytest.MonkeyPatch.context() as patch:
        found = []
        for stretch in (1, 3, 1000):
            patch.setattr(job_files, "STRETCH", stretch)
            found.append(outcome(lambda: len(parse_jobs(WORKLOAD, text))))
    assert all(a == b for a, b in pairwise(found))


@pytest.mark.parametrize("stretch", [1, 2, 1000])
@pytest.mark.parametrize(
    ("lines", "place", "words"),
    [
        (["a,class-1,1", "b,class-1,-1"], 3, "job 'b': 'remaining' must be a number of at least 0, got -1"),
        (["a,class-1,1", "", "", "b,class-9,1"], 5, "job 'b'"),
        (['"a', 'b",class-1,1', "c,class-1,1", "d,class-1"], 5, "row 3 has no 'remaining'"),
        (["a,class-1,1", "b,class-1,1,2"], 3, "more fields"),
        (['"a",class-1,1', "b,class-1,1", "c,class-1,x"], 4, "job 'c'"),
    ],
)
def test_mistakes_have_a_line(monkeypatch, stretch, lines, place, words):
    """A mistake is told with its line, wherever stretches begin, past gaps and fields of several lines."""
    monkeypatch.setattr(job_files, "STRETCH", stretch)
    with pytest.raises(JobsError) as caught:
        parse_jobs(WORKLOAD, "\n".join([HEADER, *lines]), "jobs.csv")
    assert caught.value.sentence.startswith(f"jobs.csv, line {place}: ")
    assert words in caught.value.sentence


# --- forms of CSV -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("mark", [";", "\t", ", ", " ; "])
def test_other_delimiters(mark):
    """A header says how its fields are separated: half of Europe's spreadsheets write semicolons."""
    text = f"{HEADER},weight\na,class-1,0.5,\nb,class-2,1.5,3\n".replace(",", mark)
    assert same(parse_jobs(WORKLOAD, text), parse_jobs(WORKLOAD, text.replace(mark, ",")))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("id;class;remaining\na;class-1;0,5\n", "got '0,5'.*decimals with a point"),
        ("a,class-1,0.5\nb,class-1,0.5\n", "no header.*give a header"),
        ("id class remaining\na class-1 1\n", "no header"),
        ("id,class,speed\n", "unknown column 'speed'"),
        ("id,class\n", "no column 'remaining'"),
    ],
)
def test_wrong_forms(text, words):
    """What is not such a table is told what one looks like, even if it has no rows."""
    with pytest.raises(JobsError, match=words):
        parse_jobs(WORKLOAD, text)


# --- no jobs ----------------------------------------------------------------------------------------------

NO_JOBS = ["", " \n\n", "\ufeff", f"{HEADER}\n", HEADER, f"{HEADER},weight\n\n\n", "[]", '{"jobs": []}']


@pytest.mark.parametrize("text", NO_JOBS)
def test_an_idle_queue(tmp_path, text):
    """No jobs are an empty answer, from a file and from a pipe, as a table and as JSON."""
    file = tmp_path / "jobs"
    file.write_text(text, encoding="utf-8")
    assert len(read_jobs(WORKLOAD, file)) == 0
    for source, stdin in ((str(file), ""), ("-", text)):
        done = malleable("allocate", "paper", "-n", "8", "--jobs", source, stdin=stdin)
        assert (done.status, done.err, done.out) == (0, "", "wham: no jobs, so 8 cores are idle\n")
        done = malleable("allocate", "paper", "-n", "8", "--jobs", source, "--json", stdin=stdin)
        assert json.loads(done.out) == {"policy": "wham", "cores": 8.0, "price": None, "allocation": []}


# --- long answers -----------------------------------------------------------------------------------------


def test_long_json_is_written_in_stretches(monkeypatch):
    """However many rows are written at a time, the document is the one that `json` writes."""
    from malleable.cli import allocate

    ids = ['a"b', "ü\n", "[/]", "\\", "5"]
    rows = [{"id": name, "class": "class-2", "remaining": 0.1} for name in ids]
    printed = []
    for stretch in (1, 2, 5, 1000):
        monkeypatch.setattr(allocate, "STRETCH", stretch)
        done = malleable("allocate", "paper", "-n", "8", "--jobs", "-", "--json", stdin=json.dumps(rows))
        printed.append(done.out)
    document = json.loads(printed[0])
    assert [row["id"] for row in document["allocation"]] == ids
    assert set(printed) == {json.dumps(document, indent=2) + "\n"}


# --- many jobs --------------------------------------------------------------------------------------------


def many(size):
    """A file of so many jobs."""
    return f"{HEADER},weight,age,cores\n" + "".join(
        f"{j},class-{j % 3 + 1},{0.5 + j % 7},{'' if j % 2 else 2.5},{j % 11},\n" for j in range(size)
    )


def test_memory_of_a_row(tmp_path):
    """Reading takes little more memory than the jobs themselves: 300 bytes per row, where rows took 1,000."""
    (tmp_path / "many.csv").write_text(many(20_000))
    tracemalloc.start()
    try:
        jobs = read_jobs(WORKLOAD, tmp_path / "many.csv")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(jobs) == 20_000
    assert peak < 300 * len(jobs)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the most memory used is read from /proc")
@pytest.mark.parametrize("flags", [[], ["--json"]])
def test_memory_of_a_million_jobs(tmp_path, flags):
    """The whole command on a million jobs stays below 500 MB."""
    (tmp_path / "many.csv").write_text(many(1_000_000))
    # Not `getrusage`: what it says begins with the memory of the process that started this one.
    code = (
        "import sys\nfrom pathlib import Path\nfrom malleable.cli import main\n"
        "STATUS = Path('/proc/self/status')\n"
        "try: main()\n"
        "finally: print(STATUS.read_text().split('VmHWM:')[1].split()[0], file=sys.stderr)\n"
    )
    command = [sys.executable, "-c", code, "allocate", "paper", "-n", "64", "--jobs", "many.csv", *flags]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert len(done.stdout) > 100
    assert int(done.stderr) < 500 * 1024
