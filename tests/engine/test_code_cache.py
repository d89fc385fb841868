"""Machine code on disk: whatever happened to the file or its folder, the answer is right."""

from __future__ import annotations

import os
import select
import stat
import subprocess
import sys
from types import FunctionType
from typing import NamedTuple
from unittest import mock

import numpy as np
import pytest
from numba import float64, njit

from malleable import simulate
from malleable.catalog.code_digest import code_digest
from malleable.engine import code_cache
from malleable.engine.code_cache import CodeCache, cache_folder, private
from malleable.numerics.places import places
from support.shell import environment


def plus_one(x):
    return x + 1.0


def times_two(x):
    return 2.0 * x


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A cache folder of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    found = cache_folder()
    assert found is not None
    assert found.is_relative_to(tmp_path)
    return found


def made(function, content):
    dispatcher = njit(function)
    dispatcher._cache = CodeCache(content)
    dispatcher.compile(float64(float64))
    return dispatcher


def kept(folder):
    return [path for path in folder.iterdir() if not path.name.startswith(".")]


def test_a_second_time_it_is_loaded(folder):
    """The same content is compiled once; another content has a file of its own."""
    first, again, other = made(plus_one, "a"), made(plus_one, "a"), made(times_two, "b")
    misses = [sum(each.stats.cache_misses.values()) for each in (first, again, other)]
    assert misses == [1, 0, 1]
    assert [again(1.0), other(4.0)] == [2.0, 8.0]
    assert len(kept(folder)) == 2


def test_damaged_files_are_replaced(folder):
    """Cut short, scrambled at any place, emptied or swapped: the code is made again, and kept again."""
    made(plus_one, "a")
    (path,) = kept(folder)
    good = path.read_bytes()
    rng = np.random.default_rng(0)
    damaged = [b"", good[:10], good[: len(good) // 2], good[:-1], b"\0" * len(good), good + b"x"]
    for place in rng.integers(0, len(good), 12):
        damaged += [good[:place] + bytes([good[place] ^ 0x40]) + good[place + 1 :]]
    for bad in damaged:
        path.write_bytes(bad)
        dispatcher = made(plus_one, "a")
        assert dispatcher(1.0) == 2.0
        assert sum(dispatcher.stats.cache_misses.values()) == 1
        assert path.read_bytes() != bad
    assert sum(made(plus_one, "a").stats.cache_misses.values()) == 0


def test_only_the_user_can_write_there(folder, tmp_path):
    """The folder is made with mode 0700; one that others can write to, or a link, is not used."""
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    open_to_all = tmp_path / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    assert not private(open_to_all)
    linked = tmp_path / "linked"
    linked.symlink_to(folder, target_is_directory=True)
    assert not private(linked)
    assert private(tmp_path / "new")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_another_user_is_not_used(tmp_path):
    """A folder that another user made at the predictable place is refused."""
    theirs = tmp_path / "theirs"
    theirs.mkdir(mode=0o700)
    os.chown(theirs, 12345, 12345)
    assert not private(theirs)


def test_no_place_at_all(monkeypatch, tmp_path):
    """Without any place to write, code is compiled and used, and nothing is kept."""
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocked))
    monkeypatch.setattr(code_cache.tempfile, "gettempdir", lambda: str(blocked))
    assert cache_folder() is None
    assert made(plus_one, "a")(1.0) == 2.0


def test_the_oldest_files_go(folder, monkeypatch):
    """The folder does not grow for ever."""
    monkeypatch.setattr(code_cache, "MOST_FILES", 4)
    for number in range(6):
        made(plus_one, str(number))
    assert len(kept(folder)) <= 5
    assert sum(made(plus_one, "5").stats.cache_misses.values()) == 0


def test_numba_may_be_told_not_to_compile():
    """With NUMBA_DISABLE_JIT=1 everything runs interpreted, with the same numbers."""
    line = "import malleable; print(malleable.simulate('paper', 8, 'wham', load=.25, jobs=300).cost.mean)"
    found = subprocess.run(
        [sys.executable, "-c", line],
        env={**environment(), "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert float(found.stdout) == simulate("paper", 8, "wham", load=0.25, jobs=300).cost.mean


ASKING = """
import sys
from types import FunctionType
from typing import NamedTuple
from unittest import mock
from malleable.engine.code_cache import CodeCache
print("asking", flush=True)
with CodeCache("a").alone():
    print("alone", flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="two processes may compile the same there")
def test_processes_wait_for_what_another_compiles(folder):
    """While one process compiles a function, another that needs it waits; nothing is left of that."""
    with CodeCache("a").alone():
        there = {**environment(), "XDG_CACHE_HOME": os.environ["XDG_CACHE_HOME"]}
        process = subprocess.Popen(
            [sys.executable, "-c", ASKING], env=there, stdout=subprocess.PIPE, encoding="utf-8"
        )
        assert process.stdout.readline() == "asking\n"
        assert not select.select([process.stdout], [], [], 0.3)[0]
    out, _ = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, "alone\n")
    assert not list(folder.iterdir())


def test_without_a_lock_it_goes_on(folder, monkeypatch):
    """A process that waits for very long, or cannot have a lock, compiles for itself."""
    monkeypatch.setattr(code_cache, "MOST_POLLS", 2)
    monkeypatch.setattr("fcntl.lockf", mock.Mock(side_effect=BlockingIOError))
    with CodeCache("a").alone():
        assert made(plus_one, "a")(1.0) == 2.0
    monkeypatch.setattr("fcntl.lockf", mock.Mock(side_effect=OSError))
    with CodeCache("b").alone():
        assert made(times_two, "b")(1.0) == 2.0


class First(NamedTuple):
    """Two places."""

    PRICE: int
    SLOPE: int


class Second(NamedTuple):
    """The same two in the other order."""

    SLOPE: int
    PRICE: int


PLACE = places(First)


def the_price(table):
    return table[PLACE.PRICE]


def test_names_of_places_count():
    """Code that finds a number by its name is other code when the names change places, not their numbers."""
    other = FunctionType(the_price.__code__, {**the_price.__globals__, "PLACE": places(Second)})
    assert (the_price([1.0, 2.0]), other([1.0, 2.0])) == (1.0, 2.0)
    assert tuple(places(First)) == tuple(places(Second)) == (0, 1)
    assert code_digest(the_price) != code_digest(other)
