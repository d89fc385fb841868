"""What the tests of the command line ask of a command: its document, or one line about what is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.shell import Outcome, malleable

REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "json.md"


def as_json(*arguments: str, stdin: str = "") -> Any:
    """The JSON document of a command that must succeed, with nothing on stderr."""
    done = malleable(*arguments, "--json", stdin=stdin)
    assert (done.status, done.err) == (0, ""), done
    return json.loads(done.out, parse_constant=pytest.fail)


def assert_one_line(done: Outcome, *words: str) -> None:
    """One `error:` line, at most one `hint:` line behind it, exit 1, nothing on stdout."""
    lines = done.err.splitlines()
    assert (done.status, done.out) == (1, ""), done
    assert lines[0].startswith("error: "), done.err
    assert len(lines) == 1 or (len(lines) == 2 and lines[1].startswith("hint: ")), done.err
    for word in words:
        assert word in done.err
