"""Requests for programs: what they hold, and what is refused before anything is kept of it."""

from __future__ import annotations

import json

import pytest

from malleable.errors import MalleableError, ParameterError
from malleable.live.broker.state import ProgramRequest


def test_a_request_is_read_back_as_it_was_written():
    """The document of a request, through JSON, makes the same request."""
    made = ProgramRequest(
        ("sh", "-c", "echo 'ä $(x); y'"), "/tmp/a b", {"A": "1=2"}, "etl", 2.0, 3600.0, 10.0, 4e9,
        never_pause=True, on_resize="USR1",
    )  # fmt: skip
    assert ProgramRequest.of(json.loads(json.dumps(made.parameters()))) == made
    assert ProgramRequest.of(made) is made


def test_words_are_bytes():
    """Words, folder and variables may hold bytes that are not UTF-8, and keep them through JSON."""
    made = ProgramRequest(("x\udcff",), "/\udce9", {"A\udcff": "\udcff"}, on_resize="tell \udcff")
    assert ProgramRequest.of(json.loads(json.dumps(made.parameters()))) == made


@pytest.mark.parametrize(
    ("command", "form"),
    [
        ("make", "build"),
        ("/usr/bin/ninja", "build"),
        ("cargo", "build"),
        ("python", "program"),
        ("cmake", "program"),
    ],
)
def test_builds_are_known_by_their_names(command, form):
    """A command that takes tokens of a jobserver is a build, and its class is named after that."""
    made = ProgramRequest((command,), "/")
    assert (made.form, made.job_class) == (form, form)
    assert ProgramRequest.of({"command": [command], "folder": "/", "kind": "program"}).form == "program"


def test_the_job_of_a_request():
    """The scheduler is told what the request says, and what else is known."""
    made = ProgramRequest(("x",), "/", job_class="etl", weight=2.0, size=5.0, units=7.0, memory=9.0)
    event = made.registered("17", cores=3, age=1.5)
    assert (event.job, event.job_class, event.weight, event.size) == ("17", "etl", 2.0, 5.0)
    assert (event.units, event.memory, event.cores, event.age) == (7.0, 9.0, 3, 1.5)


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ({"command": []}, "at least 1"),
        ({"command": [""]}, "no name"),
        ({"command": "make"}, "command"),
        ({"command": ["x", 1]}, "command"),
        ({"command": ["x", "a\0b"]}, "zero byte"),
        ({"command": ["x", "a" * 200_000]}, "too long"),
        ({"command": ["x"] + ["a" * 100_000] * 11}, "bytes"),
        ({"command": ["x", "\ud800"]}, "not text"),
        ({"folder": "here"}, "absolute"),
        ({"folder": "/a\0"}, "zero byte"),
        ({"environment": {"A=": "x"}}, "variable"),
        ({"environment": {"": "x"}}, "variable"),
        ({"environment": {"A": 1}}, "environment"),
        ({"environment": [["A", "x"]]}, "environment"),
        ({"job_class": ""}, "job_class"),
        ({"job_class": "c" * 201}, "job_class"),
        ({"weight": -1.0}, "weight"),
        ({"weight": float("nan")}, "weight"),
        ({"size": 0.0}, "size"),
        ({"memory": float("inf")}, "memory"),
        ({"never_pause": 1}, "never_pause"),
        ({"on_resize": "'x"}, "cannot read"),
        ({"on_resize": ""}, "signal or a command"),
        ({"form": "daemon"}, "form"),
        ({"kind": "daemon"}, "form"),
        ({"color": "red"}, "no key"),
    ],
)
def test_what_is_refused(wrong, problem):
    """What no program can be started with, or no job can have, is one error with its place."""
    with pytest.raises(ParameterError, match=problem):
        ProgramRequest.of({"command": ["x"], "folder": "/", **wrong})


@pytest.mark.parametrize("wrong", [None, 3, [], "make", {}])
def test_what_is_no_request(wrong):
    """Documents of another shape are errors too."""
    with pytest.raises(MalleableError):
        ProgramRequest.of(wrong)
