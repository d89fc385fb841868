"""The runtime folder of a broker that runs: its lock, its token and its socket.

Temporary folders are cleaned by others. What is missing is made anew, so that whoever looks for the broker
finds it; where that cannot be, the broker ends.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Self

from malleable.live.broker.broker_lock import LOCK, alone
from malleable.live.broker.server.access import FILE, read_or_make_token
from malleable.live.broker.server.listening import unix_listener
from malleable.live.broker.server.paths import SOCKET, private

if TYPE_CHECKING:
    import socket
    from pathlib import Path


class Home:
    """The folder of one broker, held until the `with` block is left."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._files: dict[str, int] = {}
        """The number that the system has given to each file; another file of that name has another."""
        self._held = ExitStack()
        self.token = ""

    @property
    def address(self) -> Path:
        """Where the broker listens."""
        return self.path / SOCKET

    def __enter__(self) -> Self:
        try:
            self._hold()
        except BaseException:
            self._held.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    @property
    def token_file(self) -> Path:
        """Where the token stands."""
        return self.path / FILE

    def listen(self) -> socket.socket:
        """Listen in the folder."""
        made = self._held.enter_context(unix_listener(self.address))
        self._note(SOCKET)
        return made

    def restore(self) -> socket.socket | None:
        """Make anew what was removed; the socket to listen at from now on, if it is another one."""
        if not (self._is_there(LOCK) and self._is_there(FILE)):
            self._hold()
        return None if self._is_there(SOCKET) else self.listen()

    def _hold(self) -> None:
        private(self.path)
        if not self._is_there(LOCK):
            self._held.enter_context(alone(self.path))
            self._note(LOCK)
        if self.token and not self._is_there(FILE):
            self.token_file.unlink(missing_ok=True)
        self.token = read_or_make_token(self.path, self.token)
        self._note(FILE)

    def _note(self, name: str) -> None:
        self._files[name] = (self.path / name).stat().st_ino

    def _is_there(self, name: str) -> bool:
        try:
            return (self.path / name).stat().st_ino == self._files.get(name)
        except OSError:
            return False
