"""Broken logs: one sentence and a hint, never a traceback; and rows that cannot be used are counted."""

import gzip
import random
import warnings

import numpy as np
import pytest

from malleable.errors import MalleableError
from malleable.traces import malleabilise, read_trace
from malleable.traces.describing import describe
from support.log_samples import SAMPLES
from support.shell import malleable

PIECES = (
    "", "-1", "0", "nan", "inf", "-inf", "1e308", "1e400", "-0", "9" * 400, "0x1f", "1_000", "١٢", "½", "\0",
    "\ufeff", "é", '"', "'", "\\", "\t", "|", ",", ";", "\r", "\x0b", "\u2028", "null", "{}", "[" * 50,
    "Unknown", "2026-13-45T99:99:99", "0000-00-00", "2026-03-01T08:00:00", "1-00:00:00", "JobId=", "-1 -1 -1",
    "9999-12-31",
)  # fmt: skip


def swapped(line, chance):
    """A line with one of its fields replaced."""
    for mark in ",;| ":
        parts = line.split(mark)
        if len(parts) > 3:
            parts[chance.randrange(len(parts))] = chance.choice(PIECES)
            return mark.join(parts)
    return line


def mistaken(text, chance):
    """A text with one mistake in it."""
    lines = text.split("\n")
    line, place = chance.randrange(len(lines)), chance.randrange(len(text) + 1)
    shuffled = chance.sample(lines, len(lines))
    mistakes = (
        lambda: text[:place] + chance.choice(PIECES) + text[place:],
        lambda: text[:place] + text[place + chance.randint(1, 20) :],
        lambda: "\n".join([*lines[:line], lines[line], *lines[line:]]),
        lambda: "\n".join(shuffled),
        lambda: "\n".join([*lines[:line], *lines[line + 1 :]]),
        lambda: "\n".join([*lines[:line], swapped(lines[line], chance), *lines[line + 1 :]]),
        lambda: text[:place],
        lambda: text.replace(chance.choice(",;| \n"), chance.choice(",;|\t \n"), chance.randint(1, 30)),
        lambda: text + chance.choice(list(SAMPLES.values())),
    )
    return chance.choice(mistakes)()


def broken(text, chance):
    """A text with some mistakes in it."""
    for _ in range(chance.randint(1, 5)):
        text = mistaken(text, chance)
    return text


def as_bytes(text, chance):
    """In some encoding, packed or not, whole or not."""
    encoding = chance.choice(("utf-8", "utf-8", "utf-8", "utf-8-sig", "utf-16", "latin-1"))
    data = text.encode(encoding, errors="replace")
    if chance.random() < 0.2:
        data = gzip.compress(data)
        if chance.random() < 0.5:
            data = data[: chance.randrange(len(data) + 1)]
    elif chance.random() < 0.1:
        data = bytearray(data)
        for _ in range(chance.randint(1, 8)):
            if data:
                data[chance.randrange(len(data))] = chance.randrange(256)
        data = bytes(data)
    return data


def look_at(trace):
    """What holds of every trace, however broken its file."""
    document = describe(trace).to_dict()
    assert document["jobs"] == len(trace) > 0
    assert np.isfinite(trace.submit).all()
    assert (np.diff(trace.submit) >= 0.0).all()
    assert (trace.cores >= 1.0).all()
    assert all(one.rows > 0 for one in trace.dropped)
    assert trace.duration is None or (trace.duration > 0.0).all()
    jobs = malleabilise(trace, cores=64, durations=60.0 if trace.duration is None else None)
    assert len(jobs) <= len(trace)


def check(file, seed):
    """Read, describe and make jobs of a broken log."""
    chance = random.Random(seed)
    kind = chance.choice(list(SAMPLES))
    file.write_bytes(as_bytes(broken(SAMPLES[kind], chance), chance))
    said = chance.choice((None, None, None, kind, *SAMPLES))
    sentence = "read"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            look_at(read_trace(file, said))
        except MalleableError as error:
            sentence = error.sentence
    assert sentence.strip()
    assert "\n" not in sentence


def test_broken_logs_are_a_sentence(tmp_path):
    """Four hundred of them, of every format."""
    for seed in range(400):
        check(tmp_path / "log", seed)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(100))
def test_very_many_broken_logs(tmp_path, part):
    """A hundred thousand."""
    for seed in range(1000 * (part + 1), 1000 * (part + 2)):
        check(tmp_path / "log", seed)


@pytest.mark.slow
def test_a_million_users(tmp_path):
    """Every job of a user of its own: read, described, and one class for the rest."""
    count = 10**6
    lines = (f"{i},{60 + i % 7},{1 + i % 4},user-{i}\n" for i in range(count))
    (tmp_path / "log").write_text("arrival,duration,cores,user\n" + "".join(lines))
    trace = read_trace(tmp_path / "log")
    found = describe(trace, 64).to_dict()
    assert found["user_count"] == count
    assert len(malleabilise(trace, classes="user").workload.classes) == 8


WRONG = (
    ("trace", "none.swf"), ("trace",), ("trace", "log", "--from-broker"), ("trace", "log", "--format", "swv"),
    ("trace", "log", "--format", "swf"), ("trace", "log", "--cores", "many"),
    ("trace", "log", "--plot", "a.gif"),
    ("replay", "log"), ("replay", "log", "-n", "0"), ("replay", "log", "-n", "4", "--policies", "wam"),
    ("replay", "log", "-n", "4", "--malleable", "101"), ("replay", "log", "-n", "4", "--shares", "x"),
    ("replay", "log", "-n", "4", "--resample", "1"), ("replay", "log", "-n", "4", "--choose", "me"),
    ("replay", "log", "-n", "4", "--classes", "group"), ("replay", "log", "-n", "1"),
    ("replay", "log", "-n", "4", "--speedup", "amdahl"), ("replay", "log", "-n", "4", "--load", "x"),
    ("replay", "log", "-n", "4", "--report", "nowhere/x/"),
    ("replay", "log", "-n", "4", "--duration", "long"),
    ("replay", "log", "-n", "4", "--baseline", "easy", "--policies", "wham"),
    ("workload", "log"), ("workload", "none", "-n", "4"), ("workload", "log", "-n", "4", "--policy", "wam"),
)  # fmt: skip


@pytest.mark.parametrize("arguments", WRONG, ids=" ".join)
def test_wrong_commands_are_one_line_and_a_hint(arguments, tmp_path, monkeypatch):
    """Status 1, an error and a hint; and nothing is left behind."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log").write_text("arrival,duration,cores\n0,60,2\n5,60,4\n")
    done = malleable(*arguments)
    assert done.status == 1
    assert done.out == ""
    lines = done.err.splitlines()
    assert lines[0].startswith("error: ")
    assert [line[:6] for line in lines[1:]] == ["hint: "]
    assert [path.name for path in tmp_path.iterdir()] == ["log"]
