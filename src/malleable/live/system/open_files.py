"""How many files may be open: a broker takes what it can get, programs get what their user has.

A limit that many shells set, 1,024, is soon reached by a broker, with a connection and a process to watch for
each program. It is not raised for programs: some that use select(2) cannot deal with more.
"""

from __future__ import annotations

import resource
from contextlib import suppress
from functools import cache

ENOUGH = 1 << 20
"""Files beyond which the limit is not raised, where the system knows no other."""


@cache
def usual_limit() -> int:
    """How many files this process could have open when it was first asked."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def raise_limit() -> None:
    """Let this process have as many files open as it may ask for."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = ENOUGH if most == resource.RLIM_INFINITY else min(most, ENOUGH)
    if wanted > usual_limit() != resource.RLIM_INFINITY:
        set_limit(wanted)


def set_limit(files: int) -> None:
    """Let this process, and those that it starts, have so many files open, if the system allows it."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, most))


@cache
def most_connections() -> int:
    """Connections of a broker: the other half of its files are for programs and the disk."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2
