"""A disk that is soon full."""

from __future__ import annotations

import os
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path


@contextmanager
def small_disk(folder: Path):
    """A file system of 256 kB."""
    folder.mkdir()
    options = ["-t", "tmpfs", "-o", "size=256k", "malleable-test", str(folder)]
    if os.geteuid() != 0 or subprocess.run(["mount", *options], check=False, capture_output=True).returncode:
        pytest.skip("a small file system cannot be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
