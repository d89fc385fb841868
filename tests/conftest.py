"""What holds for all tests: no deadlines, which programs they run, that Ctrl-C reaches them, how many run."""

import os
import signal
import sys
from pathlib import Path

from hypothesis import settings

# No test fails because a machine is busy.
settings.register_profile("malleable", deadline=None)
settings.load_profile("malleable")

# Programs of the environment that the tests run in come first: its ninja, not an older one of the system.
os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"

# There are more workers than cores: threads of linear algebra would wait for each other, and burn cores.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# A shell without job control starts what it runs in the background with SIGINT ignored, and so would be all
# processes that tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_xdist_auto_num_workers() -> int:
    """One worker more than there are cores: some tests wait for a browser or a broker."""
    return len(os.sched_getaffinity(0)) + 1
