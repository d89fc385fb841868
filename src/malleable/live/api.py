"""The verbs of the broker, for the command line and for scripts: what `malleable.api` is for workloads.

It loads neither NumPy nor SciPy before a broker starts here, so that a command is quick. `broker()` has a
method for each question (`status`, `jobs`, `job`, `submit`, `change_job`, `cancel`, `change_machine`,
`drain`, `log`, `events`); `follow`, `at_the_end` and `exit_status` wait for a program, also across restarts
of the broker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from malleable.errors import ExecutionError, to_install
from malleable.live.broker.http_client import BrokerClient, NoBrokerError
from malleable.live.programs.following import at_the_end, exit_status, follow
from malleable.live.programs.nesting import Parent, parent
from malleable.live.programs.standard_input import is_left_unread, offered

__all__ = [
    "BrokerClient", "NoBrokerError", "Parent", "at_the_end", "broker", "exit_status", "follow",
    "is_left_unread", "offered", "parent", "serve",
]  # fmt: skip

if TYPE_CHECKING:
    from collections.abc import Callable

    from malleable.live.broker.server.run import Place


def broker() -> BrokerClient:
    """The user's broker, to be asked; a `NoBrokerError` if none runs, or if it hangs."""
    return BrokerClient()


def serve(keep: str, told: Callable[[Place], None], **settings: Any) -> None:
    """Run the broker of this machine until it is told to end; `told` is called when it listens.

    `keep` says for how long outputs are kept, as `7d`; the other settings are those of
    `malleable.live.broker.server.run.Settings`.
    """
    try:
        from malleable.live.broker.server import run  # noqa: PLC0415 - heavy, and an extra
        from malleable.live.programs.retention import Keep  # noqa: PLC0415 - ditto
    except ImportError as error:
        raise ExecutionError(f"this needs the package {error.name!r}", to_install("live")) from None
    run.serve(run.Settings(keep=Keep.parse(keep), **settings), told)
