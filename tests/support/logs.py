"""Logs for tests: where the real ones are, and small ones."""

from __future__ import annotations

from pathlib import Path

import pytest

LOGS = Path(__file__).parents[3] / "shared" / "data" / "traces"
NASA = LOGS / "NASA-iPSC-1993-3.1-cln.swf.gz"
PHILLY = LOGS / "philly.csv.gz"
POLLUX = LOGS / "pollux-workload-6.csv"
JOBCOMP = LOGS / "slurm-jobcomp.txt"
CURVES = LOGS.parent / "pollux"
real = pytest.mark.skipif(not LOGS.is_dir(), reason=f"real logs are not at {LOGS}")
"""For tests that read the real logs."""

SWF = """\
; Version: 2.2
; MaxProcs: 64
; UnixStartTime: 749458803
; TimeZoneString: US/Pacific
1   0  5  100  4 -1 -1  4  200 -1 1 7 1  3  0 -1 -1 -1
2  10 -1   50 -1 -1 -1  8   60 -1 5 8 1  3  0 -1 -1 -1

3  10  0    0  1 -1 -1  1   60 -1 1 7 1 -1  0 -1 -1 -1
4  20  0  100  2 -1 -1  2   -1 -1 3 7 1  3  0 -1 -1 -1
5  30  0   -1  2 -1 -1  2   -1 -1 1 7 1  3  0 -1 -1 -1
6   5  0 12.5 16 -1 -1 16   -1 -1 0 9 2  4  1 -1 -1 -1
7 broken
"""


def written(folder: Path, text: str, name: str = "log") -> Path:
    """A file with this text."""
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return file
