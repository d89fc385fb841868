"""Values that are checked while Python ends."""

from __future__ import annotations

import signal
import subprocess
import sys

from support.shell import environment

SCRIPT = """\
import atexit
from malleable.live.core.events import Finished, Lost
Lost("a")  # all that checks need is loaded
atexit.register(Finished, "a")
raise KeyboardInterrupt
"""


def test_an_interrupted_script_ends_as_one():
    """A kind that is first checked after Ctrl-C, as Python ends, leaves the status that shells expect."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == -signal.SIGINT, done.stderr
