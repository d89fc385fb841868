"""A GNU jobserver whose tokens follow a width: make, ninja and cargo run as many commands as it has cores.

A build holds one token without asking, and reads another one from a pipe for each further command that it
runs at a time; it writes the token back when the command has ended. So a width of k is the token that needs
no asking and k − 1 others. Growing writes tokens. Shrinking takes them back: those that wait in the pipe at
once, those in use as commands end. At width 0 not even the first token may be used, so the caller stops the
process group.

Two forms are spoken (GNU make's manual, "POSIX Jobserver Interaction"). Of the *pipe* form, a build inherits
one descriptor to read tokens from and one to write them to. Here they belong to two pipes, and what comes
back through the second one goes into the first if the width allows: no token that is one too many is ever
used again. All versions of make and cargo take this form. The *fifo* form is a path, the same for both
directions, which ninja (from 1.13 on) needs: a token that has been returned may be read by the build before
we see it, so a smaller width may need a few more commands to be in force.
"""

from __future__ import annotations

import os
import tempfile
import threading
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self

from malleable.execution.worker_processes import available
from malleable.live.system.listeners import tell
from malleable.live.system.widths import checked_width

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

TOKEN = b"+"
MANY = 4096
OURS = ("-j", "--jobs", "--jobserver")
"""Flags of make that say how many commands run at a time."""
NINJAS = ("ninja", "ninja-build", "samu")
JOIN_SECONDS = 0.1


class Jobserver:
    """Tokens for one build; `on_width(k)` tells, in the thread that sees the change, which width is in force.

    Give the build `environment()`, and let it inherit the descriptors `inherited`.
    """

    def __init__(
        self,
        width: int = 1,
        form: Literal["pipe", "fifo"] = "pipe",
        *,
        on_width: Callable[[int], None] | None = None,
    ) -> None:
        checked_width(width)
        self._on_width = on_width
        self._stack = ExitStack()
        self._relays = form == "pipe"
        self.inherited: tuple[int, ...] = ()
        self._open_pipes() if self._relays else self._open_fifo()
        # The tokens that exist, in pipes and in hands; the first one is never written.
        self._width = self._tokens = self._told = 1
        self._closed = False
        self._change = threading.Condition(threading.RLock())
        self._thread = threading.Thread(target=self._run, name="malleable-jobserver", daemon=True)
        self._thread.start()
        self.set_width(width)

    def _open_pipes(self) -> None:
        read, self._tokens_in = os.pipe()
        self._returned, write = os.pipe()
        self.inherited = read, write
        self._auth = f"{read},{write}"
        for end in (read, write, self._tokens_in, self._returned):
            self._stack.callback(os.close, end)
        # Opened once more: make may have its end not block ("try again"), or block; ours must not.
        self._tokens_there = self._open(f"/proc/self/fd/{read}", os.O_RDONLY | os.O_NONBLOCK)

    def _open_fifo(self) -> None:
        folder = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="malleable-"))
        path = str(Path(folder) / "jobserver")
        os.mkfifo(path, 0o600)
        self._auth = f"fifo:{path}"
        # For both directions, so that it opens at once, and tokens stay while no build has it open.
        self._tokens_there = self._open(path, os.O_RDWR | os.O_NONBLOCK)
        self._tokens_in = self._returned = self._open(path, os.O_RDWR)

    def _open(self, path: str, flags: int) -> int:
        end = os.open(path, flags | os.O_CLOEXEC)
        self._stack.callback(os.close, end)
        return end

    @property
    def width(self) -> int:
        """How many commands may run at a time."""
        return self._width

    @property
    def width_in_use(self) -> int:
        """The width that is in force: larger than `width` until enough commands have ended, at least 1."""
        return self._tokens

    def set_width(self, width: int) -> None:
        """Have that many commands run at a time; 0 leaves the build its first token, so stop its group."""
        with self._change:
            self._width = checked_width(width)
            if width > self._tokens:
                os.write(self._tokens_in, TOKEN * (width - self._tokens))
                self._tokens = width
            elif surplus := self._surplus():
                with suppress(BlockingIOError):  # there are none: all are in use
                    self._tokens -= len(os.read(self._tokens_there, surplus))
            self._tell()
            self._change.notify()

    def environment(self, base: Mapping[str, str] = os.environ) -> dict[str, str]:
        """The environment of a build: what is in `base`, with the jobserver among make's flags."""
        # The number is only shown, but some programs take -j1 for "one at a time, for ever".
        flags = f"-j{max(self._width, available(), 2)} --jobserver-auth={self._auth}"
        found = {name: value for name, value in base.items() if name not in {"MFLAGS", "CARGO_MAKEFLAGS"}}
        return {**found, "MAKEFLAGS": _with_flags(base.get("MAKEFLAGS", ""), flags)}

    def _run(self) -> None:
        """Wait for tokens that come back: of the pipe form for all of them, of a fifo for those too many."""
        while not self._closed:
            with self._change:
                self._change.wait_for(lambda: self._closed or self._relays or self._surplus())
                wanted = MANY if self._relays else self._surplus()
            # Waiting in `read`: of two that want a token of a fifo, who waits in the kernel is faster.
            taken = os.read(self._returned, wanted) if wanted else b""
            with self._change:
                kept = min(len(taken), self._surplus())
                self._tokens -= kept
                os.write(self._tokens_in, taken[kept:])
                self._tell()

    def _surplus(self) -> int:
        return max(0, self._tokens - max(self._width, 1))

    def _tell(self) -> None:
        if self._tokens != self._told:
            self._told = self._tokens
            tell(self._on_width, self._told)

    def close(self) -> None:
        """End the jobserver; a build that still runs goes on with the tokens that it holds."""
        if self._closed:
            return
        with self._change:
            self._closed = True
            self._change.notify()
        while self._thread.is_alive():
            # It may wait for a token.
            os.write(self.inherited[1] if self._relays else self._tokens_in, TOKEN)
            self._thread.join(JOIN_SECONDS)
        self._stack.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def form_for(program: str) -> Literal["pipe", "fifo"]:
    """The form for a program: ninja takes the fifo form, all else takes pipes.

    Some builds of ninja take pipes, too. But ninja looks for a token only when it has just returned one, and
    that is not back yet where there are two pipes: it used 80 % of its cores, and 95 % by a fifo. The price:
    on a busy machine a smaller width takes longer to be in force, 4 to 19 commands from 4 to 1, and not 3.
    """
    return "fifo" if Path(program).name in NINJAS else "pipe"


def _with_flags(makeflags: str, flags: str) -> str:
    """Flags for make, in front of the variables that a user set there and in place of the user's own -j."""
    given, dashes, variables = makeflags.partition(" -- ")
    words = [word for word in given.split() if not word.startswith(OURS)]
    # The first word may be letters without a dash, as in `ks`; else the flags start with a space.
    first = words.pop(0) if words and not words[0].startswith("-") else ""
    return " ".join([first, *words, flags]) + dashes + variables
