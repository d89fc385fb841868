"""Write the table of the page "Fitting": which family fits measured speedups best, how often.

    python docs/make_fit_table.py ../shared/data

reads every file of the folders `a100` and `pollux` there, fits every row with at least three widths, and puts
the table between the two marks of docs/explanation/fitting.md. With --check it only says whether the table is
stale (exit 1).
"""

from __future__ import annotations

import argparse
import statistics
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from malleable import fit_speedup
from malleable.errors import MeasurementError
from malleable.fitting import choosing, read_measurements

if TYPE_CHECKING:
    from malleable.fitting import Fit

PAGE = Path(__file__).parent / "explanation" / "fitting.md"
FIRST, LAST = "<!-- table: docs/make_fit_table.py -->", "<!-- end of the table -->"
FOLDERS = ("a100", "pollux")


def fits(folder: Path) -> list[Fit]:
    """The automatic fit of every row of every file."""
    found = []
    for file in sorted(folder.glob("*.csv")):
        for row in read_measurements(file).rows:
            try:
                fit = fit_speedup(file, row=row, replications=0)
            except MeasurementError:  # a row with a single width
                continue
            if any(score.error is not None for score in fit.scores):
                found.append(fit)
    return found


def table(found: dict[str, list[Fit]]) -> str:
    """How often each family is chosen and has the least error, and its median errors at widths left out."""
    everything = [fit for some in found.values() for fit in some]
    heads = [f"chosen, {name} ({len(some)} curves)" for name, some in found.items()]
    lines = [
        f"| family | {' | '.join(heads)} | least error | error within | error at the widest |",
        "|---|" + "---|" * (len(heads) + 3),
    ]
    for family in sorted(choosing.NAMES, key=lambda one: -sum(f.family == one for f in everything)):
        least = sum(family == least_error(fit) for fit in everything)
        chosen = " | ".join(str(sum(fit.family == family for fit in some)) for some in found.values())
        within, widest = (f"{100.0 * statistics.median(e):.1f} %" for e in errors(family, everything))
        lines.append(f"| {family} | {chosen} | {least} | {within} | {widest} |")
    return "\n".join(lines)


def errors(family: str, fits_: list[Fit]) -> tuple[list[float], list[float]]:
    """Relative errors of a family at each width left out: those between others, and the widest ones."""
    within, widest = [], []
    for fit in fits_:
        points = fit.measurements.points
        if choosing.score(family, points).error is None:
            continue
        last = len(points.widths) - 1
        for i in range(1, last + 1):
            curve = choosing.fit_family(family, points.without(i))
            error = abs(float(curve.log_rates(points.widths[i : i + 1])[0] - points.log_rates[i]))
            (widest if i == last else within).append(error)
    return within, widest


def least_error(fit: Fit) -> str:
    """The family with the least error."""
    return min((s.error, s.family) for s in fit.scores if s.error is not None)[1]


def main() -> int:
    """Write the table, or check that it is as it would be written."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("data", type=Path, help="the folder that holds a100 and pollux")
    parser.add_argument("--check", action="store_true", help="write nothing, exit 1 if the table is stale")
    options = parser.parse_args()
    made = table({name: fits(options.data / name) for name in FOLDERS})
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(FIRST)
    after = rest.split(LAST)[1]
    new = f"{before}{FIRST}\n{made}\n{LAST}{after}"
    if new == text:
        return 0
    print("the table is stale" if options.check else f"wrote {PAGE}")
    if not options.check:
        PAGE.write_text(new, encoding="utf-8")
    return int(options.check)


if __name__ == "__main__":
    sys.exit(main())
