"""Machine code on disk: one file for each function and signature, named by all that it was compiled from.

A file starts with the digest of what follows. One that was cut short, scrambled or written by another version
is removed and the function is compiled again. What is read back is unpickled, so the folder belongs to the
user alone: it is made with mode 0700, and one that others own or can write to is not used.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import pickle
import stat
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numba
from numba.core import compiler, serialize
from numba.core.caching import _Cache

from malleable.catalog.code_digest import code_digest

if sys.platform != "win32":
    import fcntl

if TYPE_CHECKING:
    from collections.abc import Iterator

config: Any = numba.config
CompileResult: Any = compiler.CompileResult
dumps: Any = serialize.dumps
DIGEST = 32
"""Bytes of the digest at the head of a file."""
MOST_FILES = 2000
"""Beyond so many, those that were not used for longest are removed."""
POLL_SECONDS, MOST_POLLS = 0.05, 2400
"""How often to look whether another process has compiled what is needed, and how often at most."""


class CodeCache(_Cache):
    """Where numba's dispatcher looks for the machine code of one function, and leaves it."""

    def __init__(self, content: str) -> None:
        self._content = content
        self._folder = cache_folder()

    @property
    def cache_path(self) -> str:
        return str(self._folder or "")

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Let other processes that need the same wait until it is compiled, instead of compiling it as well.

        It is no matter if two do: both find the same code, and the second file takes the place of the first.
        """
        with contextlib.ExitStack() as stack:
            if sys.platform != "win32" and self._folder is not None:
                with contextlib.suppress(OSError):  # a full disk costs time, not results
                    path = self._folder / f".lock-{self._content}"
                    file = stack.enter_context(path.open("wb"))
                    stack.callback(path.unlink, missing_ok=True)
                    _wait_for_lock(file)
            yield

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled function, or None where there is none that can be used."""
        path = self._path(sig, target_context)
        if path is None:
            return None
        target_context.refresh()
        try:
            held = path.read_bytes()
        except OSError:
            return None
        payload = held[DIGEST:]
        if hashlib.sha256(payload).digest() == held[:DIGEST]:
            try:
                made = CompileResult._rebuild(target_context, *pickle.loads(payload))  # noqa: S301, SLF001 - ours
            except Exception:  # noqa: BLE001 - whatever is wrong with it, it can be made again
                made = None
            if made is not None:
                _touch(path)
                return made
        path.unlink(missing_ok=True)
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep the compiled function, if it can be kept."""
        path = self._path(sig, data.target_context)
        if path is None or data.lifted or data.library.has_dynamic_globals:
            return
        payload = dumps(data._reduce())  # noqa: SLF001 - as numba's own cache does
        try:
            _prune(path.parent)
            with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".new-", delete=False) as file:
                file.write(hashlib.sha256(payload).digest() + payload)
            Path(file.name).replace(path)
        except OSError:  # a full disk costs time, not results
            return

    def _path(self, sig: Any, target_context: Any) -> Path | None:
        if self._folder is None:
            return None
        machine = repr(target_context.codegen().magic_tuple())
        return self._folder / code_digest(self._content, str(sig), machine)

    def enable(self) -> None:
        """Nothing to do: there is a cache only where one is wanted."""

    def disable(self) -> None:
        """Ditto."""

    def flush(self) -> None:
        """Nothing waits to be written."""


def _wait_for_lock(file: Any) -> None:
    """Take the lock of a file; where another process has it for very long, go on without.

    A lock of this kind belongs to one process: it is not handed on to those that it forks.
    """
    for _ in range(MOST_POLLS):
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            time.sleep(POLL_SECONDS)
        else:
            return


def _touch(path: Path) -> None:
    try:
        os.utime(path)
    except OSError:
        return


def _prune(folder: Path) -> None:
    files = [entry for entry in os.scandir(folder) if entry.is_file()]
    if len(files) > MOST_FILES:
        for entry in sorted(files, key=lambda each: each.stat().st_mtime)[: len(files) // 2]:
            Path(entry.path).unlink(missing_ok=True)


def cache_folder() -> Path | None:
    """The folder for machine code; None where there is no place that is ours alone."""
    named = config.CACHE_DIR
    base = Path(named) if named else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    user = f"malleable-{os.getuid()}" if hasattr(os, "getuid") else "malleable"
    return _first_private((base / "malleable" / "code", Path(tempfile.gettempdir()) / user))


@functools.cache
def _first_private(places: tuple[Path, ...]) -> Path | None:
    return next((place for place in places if private(place)), None)


def private(place: Path) -> bool:
    """Whether the folder exists or can be made, belongs to us, and no one else can write to it."""
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.mkdir(mode=0o700, exist_ok=True)
        found = place.lstat()
    except OSError:
        return False
    if not stat.S_ISDIR(found.st_mode) or not os.access(place, os.W_OK | os.X_OK):
        return False
    ours = not hasattr(os, "geteuid") or found.st_uid == os.geteuid()
    return ours and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
