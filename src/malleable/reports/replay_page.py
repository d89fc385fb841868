"""The page about a replay: what happened, what could have, and where the difference goes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from malleable import plots
from malleable.errors import OutputError
from malleable.plots import pages
from malleable.plots.replay_figures import replay_figures
from malleable.replays.running import OWN
from malleable.results import files
from malleable.results.versions import installed_versions, versions_of

if TYPE_CHECKING:
    from malleable.replays import Replay, Schedule

ENDINGS = {".html", ".htm"}
TEMPLATE = "replay.html.jinja"
PRACTICE = (OWN, "easy", "fcfs")
"""What stands for today's practice, the first that was replayed."""
DRAWN_WITH = ("plotly", "matplotlib")


def check_place(path: str | Path) -> Path:
    """Where the page goes, if it can be drawn and written."""
    plots.check_installed()
    if Path(path).suffix.lower() not in ENDINGS:
        raise OutputError(f"a report is one page, and {str(path)!r} names no page", "end it in .html")
    files.check(Path(path))
    return Path(path)


def write_replay(found: Replay, path: str | Path) -> Path:
    """Write the page; one file that needs nothing else."""
    place = check_place(path)
    files.put(place, replay_page(found).encode())
    return place


def replay_page(found: Replay) -> str:
    """The page as HTML."""
    practice = practice_of(found)
    figures = replay_figures(found, practice)
    fault = found.faults.get(found.best.policy)
    return pages.render(
        "malleable.reports",
        TEMPLATE,
        list(figures.values()),
        {figure.name: plots.draw_picture(figure) for figure in figures.values()},
        title=f"{found.jobs.workload.name} on {found.cores:g} cores",
        sentences=sentences(found, practice),
        there=figures,
        costs=costs(found),
        times=times(found),
        fault=None if fault is None else fault.to_dict(),
        best=found.best.policy,
        costliest=[] if fault is None else [_costly(row) for row in fault.costliest()],
        shares=share_rows(found),
        assumptions=found.jobs.assumptions,
        notes=tuple(dict.fromkeys((*found.all_notes, *(n for one in found.results for n in one.notes)))),
        versions={**installed_versions(), **versions_of(DRAWN_WITH)},
    )


def practice_of(found: Replay) -> Schedule:
    """The schedule that stands for today's practice: the log's own, or EASY's, or FCFS's, or the first."""
    names = [one.policy for one in found.schedules if found.holds(one)]
    chosen = next((name for name in PRACTICE if name in names), found.baseline)
    return found[chosen]


def sentences(found: Replay, practice: Schedule) -> list[str]:
    """The summary: what was saved, what the least possible is, and where the rest goes."""
    best = found.best
    days = best.span / 86400.0
    if best is practice:
        first = (
            f"On {len(found.jobs):,} jobs over {days:.3g} days on {found.cores:g} cores, no policy costs "
            f"less than {best.policy}: {best.cost:.4g} per job."
        )
    else:
        saved = 1.0 - best.cost / practice.cost
        first = (
            f"On {len(found.jobs):,} jobs over {days:.3g} days on {found.cores:g} cores, {best.policy} costs "
            f"{best.cost:.4g} per job where {practice.policy} costs {practice.cost:.4g}: {saved:.0%} less."
        )
    found_fault = found.faults.get(best.policy)
    second = found.certificate or "The least possible was not computed."
    third = found_fault.words()[0] if found_fault is not None else "Without a bound there is no blame."
    return [first, second, third]


def costs(found: Replay) -> dict[str, list[Any]]:
    """A table of costs by policy."""
    results, schedules = found.results, found.schedules
    table: dict[str, list[Any]] = {
        "policy": [one.policy for one in schedules],
        "cost": [_short(one.cost) for one in schedules],
    }
    if found.resampling is not None:
        table["±"] = [_short(one.cost.half_width, 2) for one in results]
    if found.bound is not None:
        table["gap, %"] = [_percent(found.gap(one)) for one in schedules]
    table |= {
        "utilisation, %": [_percent(one.utilisation) for one in schedules],
        "resizes per job": [_short(float(one.resizes.mean()), 3) for one in schedules],
        "longest queue": [one.longest_queue for one in schedules],
        "Jain's index": [_short(one.jain, 4) for one in schedules],
    }
    return table


def times(found: Replay) -> dict[str, list[Any]]:
    """A table of waits, response times and slowdowns by policy."""
    table: dict[str, list[Any]] = {"policy": [one.policy for one in found.schedules]}
    measured = [one.measures() for one in found.schedules]
    for key, name in (("wait", "wait, s"), ("response", "response, s"), ("slowdown", "slowdown")):
        for part in ("mean", "p50", "p95", "p99"):
            column = name if part == "mean" else f"{key} {part}"
            table[column] = [_short(one[key][part], 4) for one in measured]
    return table


def share_rows(found: Replay) -> dict[str, list[Any]]:
    """A table of costs by share of malleable jobs; nothing where that was not asked for."""
    curve = found.shares
    if curve is None or not curve.shares:
        return {}
    return {
        "malleable, %": [_short(100.0 * share, 4) for share in curve.shares],
        **{name: [_short(row[i]) for row in curve.costs] for i, name in enumerate(curve.policies)},
        "least possible": [_short(bound) for bound in curve.bounds],
    }


def _costly(row: dict[str, Any]) -> dict[str, Any]:
    """One of the costliest jobs, for people."""
    return {
        "job": row["id"],
        "class": row["class"],
        "user": row["user"],
        "cores": row["cores"],
        "came after, h": _short(row["arrival"] / 3600.0, 5),
        "wait, s": _short(row["wait"], 4),
        "response, s": _short(row["response"], 5),
        "regret": _short(row["regret"], 3),
    }


def _short(value: float | None, digits: int = 6) -> float | None:
    return None if value is None else float(f"{value:.{digits}g}")


def _percent(share: float | None) -> float | None:
    return None if share is None else float(f"{100.0 * share:.4g}")
