"""What holds for all tests: no deadlines, which programs they run, what signals do, and what runs first."""

import os
import signal
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# No test fails because a machine is busy.
settings.register_profile("malleable", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("malleable")

# Programs of the environment that the tests run in come first: its ninja, not an older one of the system.
os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"

# There are more workers than cores: threads of linear algebra would wait for each other, and burn cores.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# A shell without job control starts what it runs in the background with SIGINT ignored, and so would be all
# processes that tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# `nohup` has what it runs ignore that its terminal is gone: tests that close a terminal would wait forever.
if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

# Files that take longest: started last, one of them would keep one worker busy after all others are done.
FIRST = (
    "test_paper_quick.py",
    "test_gpu.py",
    "test_gpu_sweep.py",
    "test_market_jobs.py",
    "test_user_rules.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes longest."""
    items.sort(key=lambda item: item.path.name not in FIRST)


def pytest_xdist_auto_num_workers() -> int:
    """One worker more than there are cores: some tests wait for a browser or a broker."""
    return len(os.sched_getaffinity(0)) + 1
