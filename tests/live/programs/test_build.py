"""A build as a program with a jobserver: paused, continued, narrowed; the two mechanisms go together."""

from __future__ import annotations

import os
import shutil
import sys

import pytest

from malleable.live.programs import Program
from malleable.live.programs.jobserver import Jobserver
from support.living import is_paused, wait_until

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="affinity and /proc are Linux's"),
    pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed"),
]


@pytest.mark.slow
def test_a_paused_build(tmp_path):
    """At width 0 the whole build stops; at 2 it goes on, with two commands at a time; then it ends well."""
    rule = "@touch s-$*; while [ ! -e go ]; do sleep 0.01; done; touch e-$*"
    targets = " ".join(f"t{i}" for i in range(8))
    (tmp_path / "Makefile").write_text(f"all: {targets}\nt%:\n\t{rule}\n")
    (tmp_path / "job").mkdir()
    with Jobserver(2) as server:
        told = server.environment({"PATH": os.environ["PATH"]})
        program = Program(
            ["make"],
            tmp_path / "job",
            2,
            working_folder=tmp_path,
            environment=told,
            inherited=server.inherited,
        )
        try:
            wait_until(lambda: len(list(tmp_path.glob("s-*"))) == 2, "two commands")
            server.set_width(0)
            program.set_width(0)
            wait_until(lambda: is_paused(program.pid), "a pause")
            (tmp_path / "go").touch()
            assert list(tmp_path.glob("e-*")) == []
            server.set_width(2)
            program.set_width(2)
            assert program.wait(60) == 0
        finally:
            program.cancel()
            program.wait(60)
    assert len(list(tmp_path.glob("e-*"))) == 8
