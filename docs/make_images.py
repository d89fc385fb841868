"""Draw the pictures of the documentation, as SVG, from numbers that the library computes.

Run by hand when something in them changes; with --check, only say which are stale (exit 1).
"""

from __future__ import annotations

import argparse
import sys
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from malleable import Jobs, allocate, bound, bound_for_jobs, fit_speedup, mean_field, paper_workload, simulate
from malleable.contracts import Policy, Speedup
from malleable.engine.replaying import replay_jobs
from malleable.fitting import parse_measurements
from malleable.simulation.given import ready
from malleable.simulation.jobs_bound import drawn_jobs

if TYPE_CHECKING:
    from collections.abc import Sequence

HERE = Path(__file__).parent / "images"
INK, QUIET, LINE = "#1f2933", "#52606d", "#cbd2d9"
CLASS_COLOURS = ("#4c78a8", "#e58606", "#3a9d7c")
FONT = "font-family='system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif'"


def text(x: float, y: float, words: str, size: int = 13, colour: str = INK, more: str = "") -> str:
    """Words at a place."""
    return f"<text x='{x:g}' y='{y:g}' font-size='{size}' fill='{colour}' {more}>{escape(words)}</text>"


def box(x: float, y: float, width: float, height: float, colour: str, more: str = "") -> str:
    """A filled rectangle."""
    return f"<rect x='{x:.1f}' y='{y:.1f}' width='{width:.1f}' height='{height:.1f}' fill='{colour}' {more}/>"


def line(x1: float, y1: float, x2: float, y2: float, colour: str = LINE, more: str = "") -> str:
    """A straight line."""
    return f"<line x1='{x1:.1f}' y1='{y1:.1f}' x2='{x2:.1f}' y2='{y2:.1f}' stroke='{colour}' {more}/>"


def drawing(width: int, height: int, title: str, parts: Sequence[str]) -> str:
    """The picture on white, so that it reads on a dark page too."""
    head = (
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}' width='{width}' "
        f"height='{height}' role='img' {FONT}>\n<title>{escape(title)}</title>"
    )
    ground = f"<rect width='{width}' height='{height}' rx='8' fill='#ffffff'/>"
    return "\n".join([head, ground, *parts, "</svg>"]) + "\n"


def allocation() -> str:
    """Sixteen cores and five jobs under three policies."""
    cores, left, top, unit, tall, gap = 16, 98, 78, 34, 40, 20
    workload = paper_workload(cores)
    jobs = Jobs.of(
        workload, ["class-1", "class-1", "class-2", "class-3", "class-3"], [0.1, 0.3, 0.5, 0.2, 0.4]
    )
    parts = [text(20, 28, "16 cores, 5 jobs: who gets how many?", 16, INK, "font-weight='600'")]
    for i, job_class in enumerate(workload.classes):
        x = left + 182 * i
        parts.append(box(x, 42, 12, 12, CLASS_COLOURS[i], "rx='2'"))
        label = f"{job_class.name}: {_formula(job_class.speedup)}, c = {job_class.holding_cost:g}"
        parts.append(text(x + 18, 52, label, 12, QUIET))
    for row, policy in enumerate(("wham", "greedy", "equi")):
        y = top + row * (tall + gap)
        parts.append(text(20, y + tall / 2 + 5, policy.upper(), 14, INK, "font-weight='600'"))
        x = float(left)
        for j, k in enumerate(allocate(workload, jobs, cores, policy).cores.tolist()):
            colour = CLASS_COLOURS[int(jobs.class_index[j])]
            parts.append(box(x + 1, y, k * unit - 2, tall, colour, "rx='4'"))
            centre = x + k * unit / 2
            parts.append(text(centre, y + tall / 2 + 5, f"{k:.2f}", 13, "#ffffff", "text-anchor='middle'"))
            x += k * unit
    bottom = top + 3 * (tall + gap) - 6
    for core in range(0, cores + 1, 4):
        x = left + core * unit
        parts.append(line(x, bottom - 8, x, bottom - 2, QUIET))
        parts.append(text(x, bottom + 12, f"{core}", 11, QUIET, "text-anchor='middle'"))
    parts.append(text(20, bottom + 12, "cores", 12, QUIET))
    return drawing(left + cores * unit + 24, bottom + 26, "Five jobs on sixteen cores", parts)


def _formula(speedup: Speedup) -> str:
    (value,) = speedup.parameters().values()
    return f"s = k^{value:g}" if speedup.kind == "power" else f"Amdahl {value:g}"


def hull() -> str:
    """Measured speedups, their upper concave hull, and the widths that are worth buying."""
    cores = (1, 2, 3, 4, 5, 6, 7, 8)
    speeds = (1.0, 1.9, 2.4, 3.5, 3.4, 3.9, 4.0, 4.6)
    table = Speedup.of({"kind": "table", "cores": cores, "speedup": speeds, "hull": True})
    left, bottom, width, height = 60, 300, 520, 240

    def at(k: float, s: float) -> tuple[float, float]:
        return left + (k / 9.0) * width, bottom - (s / 5.0) * height

    parts = [text(20, 28, "A measured speedup and its upper concave hull", 16, INK, "font-weight='600'")]
    for s in range(6):
        x, y = at(0, s)
        parts += [line(x, y, x + width, y), text(x - 10, y + 4, f"{s}", 11, QUIET, "text-anchor='end'")]
    for k in range(1, 10):
        parts.append(text(at(k, 0)[0], bottom + 18, f"{k}", 11, QUIET, "text-anchor='middle'"))
    parts.append(text(left + width, bottom + 36, "cores k", 12, QUIET, "text-anchor='end'"))
    parts.append(text(20, 50, "speedup s(k)", 12, QUIET))
    corners = np.column_stack(table.points).tolist()
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (at(k, s) for k, s in corners))
    parts.append(f"<polyline points='{path}' fill='none' stroke='{CLASS_COLOURS[0]}' stroke-width='2.5'/>")
    for k, s in zip(cores, speeds, strict=True):
        x, y = at(k, s)
        bought = [k, s] in corners
        fill = CLASS_COLOURS[0] if bought else "#ffffff"
        stroke = CLASS_COLOURS[0] if bought else QUIET
        parts.append(
            f"<circle cx='{x:.1f}' cy='{y:.1f}' r='5' fill='{fill}' stroke='{stroke}' stroke-width='2'/>"
        )
    parts += [
        text(left + 270, bottom - 77, "filled: widths that some price selects", 12, QUIET),
        text(left + 270, bottom - 60, "hollow: measured, never worth buying", 12, QUIET),
    ]
    return drawing(left + width + 24, bottom + 48, "Measured speedup and hull", parts)


def loads() -> str:
    """The lower bound as the load grows."""
    left, bottom, width, height = 64, 280, 500, 210
    grid = np.linspace(0.02, 0.98, 97)
    values = [bound("paper", 64, float(load)).bound for load in grid]
    high = 0.7

    def at(load: float, value: float) -> tuple[float, float]:
        return left + load * width, bottom - value / high * height

    parts = [text(20, 28, "No policy costs less: V* over the system load", 16, INK, "font-weight='600'")]
    for i in range(8):
        x, y = at(0, i / 10)
        parts += [line(x, y, x + width, y), text(x - 8, y + 4, f"{i / 10:g}", 11, QUIET, "text-anchor='end'")]
    for i in range(0, 11, 2):
        parts.append(text(at(i / 10, 0)[0], bottom + 18, f"{i / 10:g}", 11, QUIET, "text-anchor='middle'"))
    parts.append(text(left + width, bottom + 36, "system load", 12, QUIET, "text-anchor='end'"))
    parts.append(text(20, 52, "cost per job", 12, QUIET))
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in map(at, grid, values))
    parts.append(f"<polyline points='{path}' fill='none' stroke='{CLASS_COLOURS[0]}' stroke-width='2.5'/>")
    x, y = at(0.25, bound("paper", 64, 0.25).bound)
    parts.append(f"<circle cx='{x:.1f}' cy='{y:.1f}' r='5' fill='{CLASS_COLOURS[1]}'/>")
    parts.append(text(x + 14, y + 8, "the paper's load, 0.25: V* = 0.15785", 12, QUIET))
    return drawing(left + width + 24, bottom + 48, "Lower bound over load", parts)


def finite() -> str:
    """Cost at a finite number of cores by the 1/n correction, for three policies, over the bound."""
    left, bottom, width, height = 64, 300, 460, 230
    least, most, low, high = 64.0, 4096.0, 0.15, 0.20

    def at(cores: float, value: float) -> tuple[float, float]:
        share = np.log(cores / least) / np.log(most / least)
        return left + share * width, bottom - (value - low) / (high - low) * height

    title = "Cost per job on n cores, load 0.25, by the 1/n correction"
    parts = [text(20, 28, title, 16, INK, "font-weight='600'")]
    for value in np.linspace(low, high, 6).tolist():
        x, y = at(least, value)
        parts += [
            line(x, y, x + width, y),
            text(x - 8, y + 4, f"{value:.2f}", 11, QUIET, "text-anchor='end'"),
        ]
    for n in (64, 128, 256, 512, 1024, 2048, 4096):
        parts.append(text(at(n, low)[0], bottom + 18, f"{n}", 11, QUIET, "text-anchor='middle'"))
    parts.append(text(left + width, bottom + 36, "cores n", 12, QUIET, "text-anchor='end'"))
    parts.append(text(20, 52, "cost per job", 12, QUIET))
    for colour, policy in zip(CLASS_COLOURS, ("wham", "equi", "greedy"), strict=True):
        result = mean_field("paper", 64, 0.25, policy, starts=0)
        curve = [
            at(n, result.cost + (result.refined.coefficient or 0.0) / n) for n in np.geomspace(64, 4096, 97)
        ]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in curve)
        parts.append(f"<polyline points='{path}' fill='none' stroke='{colour}' stroke-width='2.5'/>")
        drop = {"wham": 9, "equi": 4, "greedy": -5}[policy]
        parts.append(text(left + width + 8, curve[-1][1] + drop, policy.upper(), 12, colour))
    y = at(most, bound("paper", 64, 0.25).bound)[1]
    parts.append(line(left, y, left + width, y, INK, "stroke-dasharray='5 4'"))
    parts.append(text(left + 8, y + 16, "V*: no policy costs less", 12, INK))
    return drawing(left + width + 80, bottom + 48, title, parts)


def fit() -> str:
    """The run times of the tutorial, the speedup fitted to them, and its band."""
    tutorial = (HERE.parent / "tutorial" / "measure.md").read_text(encoding="utf-8")
    rows = tutorial.split("<!-- file: render.csv -->\n```csv\n")[1].split("```")[0]
    found = fit_speedup(parse_measurements(rows))
    left, bottom, width, height = 60, 300, 520, 240
    grid = np.linspace(1.0, 16.0, 61)
    low, high = found.band(grid) or (grid, grid)

    def at(k: float, s: float) -> tuple[float, float]:
        return left + (k / 17.0) * width, bottom - (s / 10.0) * height

    share = found.speedup.parameters()["sequential"]
    title = f"Amdahl's law fitted to run times: {100 * share:.1f} % sequential"
    parts = [text(20, 28, title, 16, INK, "font-weight='600'")]
    for s in range(0, 11, 2):
        x, y = at(0, s)
        parts += [line(x, y, x + width, y), text(x - 10, y + 4, f"{s}", 11, QUIET, "text-anchor='end'")]
    for k in (1, 2, 4, 8, 16):
        parts.append(text(at(k, 0)[0], bottom + 18, f"{k}", 11, QUIET, "text-anchor='middle'"))
    parts.append(text(left + width, bottom + 36, "cores k", 12, QUIET, "text-anchor='end'"))
    parts.append(text(20, 50, "speedup s(k)", 12, QUIET))
    rim = [*map(at, grid, low), *map(at, grid[::-1], high[::-1])]
    area = " ".join(f"{x:.1f},{y:.1f}" for x, y in rim)
    parts.append(f"<polygon points='{area}' fill='{CLASS_COLOURS[0]}' fill-opacity='0.25'/>")
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in map(at, grid, found.speedup(grid)))
    parts.append(f"<polyline points='{path}' fill='none' stroke='{CLASS_COLOURS[0]}' stroke-width='2.5'/>")
    for point in found.points:
        x, y = at(point.cores, point.speedup)
        for end in (point.low, point.high):
            tip = at(point.cores, end or point.speedup)[1]
            parts.append(line(x, y, x, tip, CLASS_COLOURS[1], "stroke-width='2'"))
        parts.append(f"<circle cx='{x:.1f}' cy='{y:.1f}' r='5' fill='{CLASS_COLOURS[1]}'/>")
    parts.append(
        text(left + 220, bottom - 60, "dots: medians of three runs; band: 95 % by bootstrap", 12, QUIET)
    )
    return drawing(left + width + 24, bottom + 48, "A fitted speedup", parts)


def bounds() -> str:
    """Lower bounds as shares of what WHAM costs on the same jobs, over the number of cores."""
    left, bottom, width, height = 64, 320, 460, 260
    grid = (1, 2, 4, 8, 16, 32, 64, 128, 256)

    def at(cores: float, share: float) -> tuple[float, float]:
        return left + np.log2(cores) / 8.0 * width, bottom - share * height

    title = "Lower bounds as shares of WHAM's cost on the same jobs"
    parts = [text(20, 28, title, 16, INK, "font-weight='600'")]
    for i in range(0, 11, 2):
        x, y = at(1, i / 10)
        label = f"{10 * i} %"
        parts += [line(x, y, x + width, y), text(x - 8, y + 4, label, 11, QUIET, "text-anchor='end'")]
    for n in grid:
        parts.append(text(at(n, 0)[0], bottom + 18, f"{n}", 11, QUIET, "text-anchor='middle'"))
    parts.append(text(left + width, bottom + 36, "cores n (the paper's workload at load 0.25)", 12, QUIET,
                      "text-anchor='end'"))  # fmt: skip
    found = [_bounds_on(n) for n in grid]
    lines = (
        ("price path", CLASS_COLOURS[0], "", 4),
        ("V*, capped at n", CLASS_COLOURS[1], "", 16),
        ("V* (dashed)", CLASS_COLOURS[1], "stroke-dasharray='6 4'", 28),
        ("each job alone", CLASS_COLOURS[2], "", 4),
        ("pooled", QUIET, "", 4),
    )
    for number, (name, colour, more, drop) in enumerate(lines):
        curve = [at(n, shares[number]) for n, shares in zip(grid, found, strict=True)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in curve)
        parts.append(f"<polyline points='{path}' fill='none' stroke='{colour}' stroke-width='2.5' {more}/>")
        parts.append(text(left + width + 8, curve[-1][1] + drop, name, 12, colour))
    return drawing(left + width + 120, bottom + 48, title, parts)


def _bounds_on(cores: int) -> tuple[float, ...]:
    """Bounds on n cores as shares of WHAM's cost for the same jobs; those by averages, of its mean cost."""
    workload = paper_workload(cores, 0.25)
    jobs = drawn_jobs(workload, 3000, 2)
    run = ready(Policy.of("wham"), jobs, cores)
    ends = replay_jobs(run.workload, cores, run.program, run.jobs).log.ends
    cost = float(jobs.weight @ (ends - jobs.times))
    known = bound_for_jobs(jobs, cores)
    mean = simulate(workload, cores, "wham", jobs=200_000)
    by_averages = [(one or 0.0) / mean.cost.mean for one in (mean.bound_tight, mean.bound)]
    return (known.by_prices / cost, *by_averages, known.alone / cost, known.pooled / cost)


PICTURES = {
    "allocation.svg": allocation,
    "bounds.svg": bounds,
    "finite.svg": finite,
    "fit.svg": fit,
    "hull.svg": hull,
    "load.svg": loads,
}


def main() -> int:
    """Draw the pictures, or check that they are as they would be drawn."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, exit 1 if a picture is stale")
    options = parser.parse_args()
    stale = 0
    for name, draw in PICTURES.items():
        file, drawn = HERE / name, draw()
        if file.is_file() and file.read_text(encoding="utf-8") == drawn:
            continue
        stale += 1
        print(f"{name} {'is stale: run `python docs/make_images.py`' if options.check else 'drawn'}")
        if not options.check:
            file.write_text(drawn, encoding="utf-8")
    return int(options.check and stale > 0)


if __name__ == "__main__":
    sys.exit(main())
