"""Folders in which commands run: each test has one of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.cli_files import CSV, MINE


@pytest.fixture
def with_jobs(tmp_path, monkeypatch):
    """A folder with a file of jobs."""
    monkeypatch.chdir(tmp_path)
    Path("jobs.csv").write_text(CSV)


@pytest.fixture
def with_policies(tmp_path, monkeypatch):
    """A folder with a file of policies, good and bad."""
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(MINE)
