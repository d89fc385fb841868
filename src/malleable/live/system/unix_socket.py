"""Unix sockets between processes of one user: whoever is at the other end has to be that user.

A folder that only its owner may enter is the first lock; asking the system who holds the other end is the
second one, for sockets that were put somewhere else by an option. The end of a process is the end of its
connections, so the children that it forks must not have them.
"""

from __future__ import annotations

import os
import socket
import struct
from typing import TYPE_CHECKING
from weakref import WeakSet

from malleable.errors import MalleableError

if TYPE_CHECKING:
    from pathlib import Path

LONGEST = 107
"""Bytes that the path of a socket has at most."""
CONNECT_SECONDS = 1.0
"""Seconds that a connection may take: where as many wait as may, no process accepts them."""
_CREDENTIALS = struct.Struct("3i")
"""Of `SO_PEERCRED`: process, user, group."""


class ForeignSocketError(MalleableError, PermissionError):
    """Another user is at the other end of a socket."""


def peer_user(connection: socket.socket) -> int | None:
    """The user at the other end; None where the system does not say (it does on Linux)."""
    return _peer(connection)[1]


def peer_process(connection: socket.socket) -> int | None:
    """The process that has opened the other end; None where it cannot be seen from here."""
    return _peer(connection)[0] or None


def _peer(connection: socket.socket) -> tuple[int, int] | tuple[None, None]:
    """Process and user at the other end."""
    if not hasattr(socket, "SO_PEERCRED"):
        return None, None
    found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    process, user, _group = _CREDENTIALS.unpack(found)
    return process, user


def is_own(connection: socket.socket) -> bool:
    """Whether the other end is a process of this user, or of root, who may do anything anyway."""
    return peer_user(connection) in {None, 0, os.getuid()}


def open_socket(path: str | Path) -> socket.socket:
    """Connect to a socket; one of another user is refused, `OSError` says that no process listens."""
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        made.settimeout(CONNECT_SECONDS)
        made.connect(str(path))
        made.settimeout(None)
    except BaseException:
        made.close()
        raise
    if not is_own(made):
        made.close()
        raise ForeignSocketError(f"another user listens at {path}", "choose another folder")
    _OPENED.add(made)
    return made


_OPENED: WeakSet[socket.socket] = WeakSet()


def _leave_to_the_parent() -> None:
    """In a child that was forked: its copy of a socket would keep the connection when the parent has died."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for connection in _OPENED:
        if connection.fileno() >= 0:
            os.dup2(nowhere, connection.fileno(), inheritable=False)
    os.close(nowhere)


os.register_at_fork(after_in_child=_leave_to_the_parent)
