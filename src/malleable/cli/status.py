"""`malleable status`: who has how many cores, now."""

from __future__ import annotations

import shlex
import signal
import time
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from malleable.cli._live import broker, duration, job_table
from malleable.cli._shared import JsonOption, console, print_json, show, table, whole

if TYPE_CHECKING:
    from collections.abc import Iterator


def command(
    job: Annotated[
        str | None, typer.Argument(metavar="JOB", help="Only this job, with all that is known.")
    ] = None,
    ended: Annotated[
        str, typer.Option("--ended", metavar="K", help="Also the last K programs that have ended.")
    ] = "5",
    as_json: JsonOption = False,
) -> None:
    """Who has how many cores, now: the machine, its jobs, and the last programs that have ended."""
    last = whole(ended, "ended", "5")
    with broker() as client:
        if job is not None:
            found = client.job(job)
            print_json(found) if as_json else _print(found)
            return
        machine, jobs = client.status(), client.jobs(last)
    if as_json:
        print_json({**machine, "jobs": jobs})
    else:
        console().print(job_table(machine, jobs))


def _print(found: dict[str, Any]) -> None:
    rows = table(f"job {found['id']}", "", "", words=2)
    for name, value in _facts(found, time.time()):
        if value:
            rows.add_row(name, value)
    console().print(rows)


def _facts(found: dict[str, Any], now: float) -> Iterator[tuple[str, str]]:
    """What there is to say of a job, in a person's units; empty where it is not known."""
    yield "state", found["state"]
    yield "why", found.get("reason") or ""
    yield "exit code", _exit_code(found.get("exit_code"))
    yield "command", shlex.join(found.get("command") or ())
    yield "folder", found.get("folder") or ""
    yield "class", found["class"]
    yield "weight", "" if found["weight"] is None else show(found["weight"])
    yield from _times(found, now)
    present = "age" in found
    yield "cores", _cores(found) if present else ""
    yield "CPUs", ", ".join(map(str, found["cpus"]))
    yield "progress", _progress(found)
    yield "left", _left(found) if present else ""
    yield "done so far", _over_share(found)
    yield "most cores", str(found.get("max_cores") or "")
    yield "memory", f"{found['memory'] / 2**20:,.0f} MiB" if found.get("memory") else ""
    yield "log", "removed" if found.get("removed") and found.get("started") else ""


def _times(found: dict[str, Any], now: float) -> Iterator[tuple[str, str]]:
    """When a program was submitted, how long it waited, and how long it has run; a client has an age only."""
    submitted, started, ended = (found.get(key) for key in ("submitted", "started", "ended"))
    if submitted is None:
        yield "here for", duration(found["age"])
        return
    yield "submitted", datetime.fromtimestamp(submitted).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    yield "waited", duration((started or ended or now) - submitted)
    yield "elapsed", "" if started is None else duration((ended or now) - started)
    yield "CPU time", "" if found.get("cpu_seconds") is None else duration(found["cpu_seconds"])


def _exit_code(code: int | None) -> str:
    if code is None:
        return ""
    try:
        return str(code) if code >= 0 else f"{code} ({signal.Signals(-code).name})"
    except ValueError:
        return str(code)


def _cores(found: dict[str, Any]) -> str:
    use, target = found["in_use"], found["target"]
    return f"{use}" if use == target else f"{use}, to be {target}"


def _progress(found: dict[str, Any]) -> str:
    if found["progress"] is None:
        return ""
    done, units = found.get("units_done"), found.get("units")
    if done is None or not units or (found["state"] == "finished" and done != units):
        return f"{100 * found['progress']:.0f} %"  # a finished one has done all, whatever it said last
    return f"{100 * found['progress']:.0f} % ({show(done)} of {show(units)})"


def _over_share(found: dict[str, Any]) -> str:
    """How its work compares with what an equal share of the machine would have done, and with the promise."""
    over, promised = found.get("over_share"), found.get("promised_share")
    if over is None or promised is None:
        return ""
    return f"{over:.2f} times the work of an equal share; {show(promised, 3)} and a few seconds are promised"


def _left(found: dict[str, Any]) -> str:
    """Time to its end on the cores that it has."""
    if found["remaining"] is None:
        return ""
    if not found["speed"]:
        left = f"{duration(found['remaining'])} of work on one core"
    else:
        left = duration(found["remaining"] / found["speed"])
    return f"about {left} (an estimate: usual in its class)" if found["remaining_estimated"] else left
