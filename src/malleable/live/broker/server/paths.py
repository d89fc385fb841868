"""Where the broker of a user is found, without any configuration.

The runtime folder holds its socket and its token, and is the user's alone: `$MALLEABLE_HOME`, else
`$XDG_RUNTIME_DIR/malleable`, else a folder of the temporary folder that is named by the user's number. The
state folder holds what outlives the broker: `$MALLEABLE_STATE`, else `$XDG_STATE_HOME/malleable`, else
`~/.local/state/malleable`.
"""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from malleable.errors import MalleableError, OutputError

if TYPE_CHECKING:
    from collections.abc import Iterator

SOCKET = "broker.sock"


def runtime_folder() -> Path:
    """The folder of the socket and the token; see `private` before putting anything there."""
    if home := os.environ.get("MALLEABLE_HOME"):
        return Path(home).absolute()
    if runtime := os.environ.get("XDG_RUNTIME_DIR"):
        return Path(runtime).absolute() / "malleable"
    import tempfile  # noqa: PLC0415 - a tenth of what an Executor loads

    return Path(tempfile.gettempdir()) / f"malleable-{os.getuid()}"


def state_folder() -> Path:
    """The folder of the programs that were submitted, and of what they have printed."""
    if state := os.environ.get("MALLEABLE_STATE"):
        return Path(state).absolute()
    if home := os.environ.get("XDG_STATE_HOME"):
        return Path(home).absolute() / "malleable"
    return Path("~/.local/state/malleable").expanduser().absolute()


def broker_socket() -> Path:
    """The socket of the user's broker, whether one runs or not."""
    return runtime_folder() / SOCKET


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """What the system refuses (a full disk, a folder that is read-only), in one line."""
    try:
        yield
    except MalleableError:
        raise
    except OSError as error:
        raise OutputError(
            f"cannot use {path}: {error.strerror or error}", "make room, or choose another folder"
        ) from None


def private(folder: Path) -> Path:
    """Make a folder that only this user can enter; one of another user, or open to others, is refused."""
    with explained(folder):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode):
        raise OutputError(f"not a folder: {folder}", "a link could lead anywhere: give the folder itself")
    if found.st_uid != os.getuid():
        raise OutputError(f"the folder {folder} belongs to another user", "choose another")
    if found.st_mode & 0o077:
        raise OutputError(f"others may enter the folder {folder}", f"chmod 700 {folder}")
    return folder
