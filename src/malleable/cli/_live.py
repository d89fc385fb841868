"""What the verbs of the broker share: reaching it, reading sizes, waiting for what comes bit by bit."""

from __future__ import annotations

import queue
import re
import threading
from typing import TYPE_CHECKING, Annotated, Any, TextIO, TypeVar

import typer

from malleable.cli import _signals
from malleable.cli._shared import print_json, say_error, show

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rich.table import Table

    from malleable.live.api import BrokerClient

Item = TypeVar("Item")
LOOK_SECONDS = 0.1
"""Seconds between two looks for a signal."""
SIZE = re.compile(r"(\d+(?:\.\d*)?(?:e\d+)?)\s*([kmgt]?)(?:i?b)?", re.IGNORECASE)
POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
UNITS = (("d", 86400), ("h", 3600), ("min", 60), ("s", 1))
ENOUGH_JOBS = 10
"""Jobs from which on a saving says something."""
LONGEST_COMMAND = 40
"""Characters of a command in a table."""

JobArgument = Annotated[str, typer.Argument(metavar="JOB", help="The name of a job, as `status` shows it.")]


def broker() -> BrokerClient:
    """The user's broker; an error with a hint if none runs."""
    from malleable.live import api

    return api.broker()


def bytes_of(text: str, name: str = "memory", example: str = "4G") -> float:
    """Read a size: 4G is 4·2³⁰ bytes."""
    from malleable.errors import ParameterError

    found = SIZE.fullmatch(text.strip())
    if found is None:
        raise ParameterError(f"{name} must be a size, got {text!r}", f"for example --{name} {example}")
    return float(found[1]) * 1024.0 ** POWERS[found[2].lower()]


def attentively(items: Iterable[Item]) -> Iterator[Item]:
    """The items, which a thread waits for, so that a signal is noticed (KeyboardInterrupt) in between."""
    arriving: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()

    def wait() -> None:
        try:
            for item in items:
                arriving.put(("item", item))
            arriving.put(("end", None))
        except Exception as error:  # noqa: BLE001 - raised again below
            arriving.put(("error", error))

    _signals.worth_waiting()
    threading.Thread(target=wait, daemon=True).start()
    while True:
        _signals.check()
        try:
            kind, value = arriving.get(timeout=LOOK_SECONDS)
        except queue.Empty:
            continue
        if kind == "error":
            raise value
        if kind == "end":
            return
        yield value


def write_bytes(stream: TextIO, block: bytes) -> None:
    """Write what a program has printed as it is, where the stream takes bytes."""
    if hasattr(stream, "buffer"):
        stream.buffer.write(block)
    else:
        stream.write(block.decode("utf-8", "replace"))
    stream.flush()


def job_table(status: dict[str, Any], jobs: list[dict[str, Any]]) -> Table:
    """The machine in the title, and a row per job."""
    from malleable.cli._shared import table

    made = table(
        machine_line(status),
        "job",
        "class",
        "state",
        "cores",
        "progress",
        "weight",
        "exit",
        "command",
        words=3,
    )
    made.columns[-1].justify = "left"
    for job in jobs:
        progress, code = job.get("progress"), job.get("exit_code")
        made.add_row(
            job["id"], job["class"], "on hold" if job.get("on_hold") else job["state"], _cores(job),
            "–" if progress is None else f"{100 * progress:.0f} %",
            show(job["weight"], 3), "" if code is None else str(code), shortened(job.get("command")),
        )  # fmt: skip
    return made


def say_each(answers: list[dict[str, Any]], done: str, *, as_json: bool) -> None:
    """What became of each of several jobs; the status is 1 if it failed for one."""
    if as_json:
        print_json(answers)
    for one in answers:
        if "error" in one:
            say_error(one["error"], one["hint"])
        elif not as_json:
            typer.echo(f"{done} {one['id']}")
    if any("error" in one for one in answers):
        raise typer.Exit(1)


def duration(seconds: float) -> str:
    """A time for people, in its two largest units."""
    if seconds < 60.0:
        return f"{max(seconds, 0.0):.1f} s"
    parts: list[str] = []
    left = round(seconds)
    for unit, size in UNITS:
        if left >= size or parts:
            parts.append(f"{left // size} {unit}")
        left %= size
    return " ".join(parts[:2])


def machine_line(status: dict[str, Any]) -> str:
    """The machine in one line."""
    words = [f"{status['granted']} of {status['cores']} cores granted", status["policy"]]
    if status["price"] is not None:
        words.append(f"price {show(status['price'], 3)} per core")
    cost = status.get("cost", {})
    if cost.get("saved") is not None and cost["compared"] >= ENOUGH_JOBS:
        words.append(savings(cost["saved"], cost["compared"]))
    if status["draining"]:
        words.append("draining")
    if status["problem"]:
        words.append(f"divided equally: {status['problem']}")
    return ", ".join(words)


def savings(saved: float, jobs: int) -> str:
    """What the policy has saved against equal sharing of the same jobs, or what it has cost more."""
    return f"{abs(saved):.1%} {'less' if saved >= 0.0 else 'more'} than equal sharing of {jobs} jobs".replace(
        "%", " %"
    )


def _cores(job: dict[str, Any]) -> str:
    """Cores in use, and those on their way."""
    use, target = job["in_use"], job["target"]
    return str(use) if use == target else f"{use} → {target}"


def shortened(command: list[str] | None) -> str:
    """A command for a table."""
    import shlex

    text = "" if command is None else shlex.join(command)
    return text if len(text) <= LONGEST_COMMAND else f"{text[: LONGEST_COMMAND - 1]}…"
