"""`malleable fit`: a speedup from measurements, or a law of sizes from samples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from malleable.cli._running import percent
from malleable.cli._shared import JsonOption, console, print_json, show, table, whole

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console

    from malleable.fitting import Fit, SizeFit


def command(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="Rows cores,time or cores,throughput; a line per curve with a column per width; step times; "
            "- for stdin; or the runs themselves: 1@3600,2@1800,4@900.",
        ),
    ],
    family: Annotated[
        str,
        typer.Option(
            "--family",
            metavar="F",
            help="amdahl, power, rooftop, usl, linear_power, concave or hull; auto takes the one that best "
            "predicts a width left out. With --sizes: exponential, erlang, hyperexponential, coxian, "
            "phase_type; auto takes the lowest BIC.",
        ),
    ] = "auto",
    row: Annotated[
        str | None, typer.Option("--row", metavar="NAME", help="Which curve, where a file holds several.")
    ] = None,
    sizes: Annotated[
        bool, typer.Option("--sizes", help="FILE holds sizes of jobs, one number per line: fit their law.")
    ] = False,
    phases: Annotated[
        str, typer.Option("--phases", metavar="K", help="With --sizes: phases of a phase-type law at most.")
    ] = "4",
    plot: Annotated[
        str | None, typer.Option("--plot", metavar="FILE", help="Draw the fit (.svg, .png or .pdf).")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """A speedup from measured run times or throughputs, as a line for a workload file."""
    from malleable import api
    from malleable.errors import ParameterError

    if sizes and row is not None:
        raise ParameterError("--row and --sizes contradict each other", "sizes have no rows")
    if sizes:
        law = api.fit_sizes(file, family, phases=whole(phases, "phases", "4"))
        _deliver(law, lambda out: _print_sizes(out, law), plot, as_json=as_json)
    else:
        fit = api.fit_speedup(file, family, row=row)
        _deliver(fit, lambda out: _print_speedup(out, fit), plot, as_json=as_json)


def _deliver(
    found: Fit | SizeFit, print_it: Callable[[Console], None], plot: str | None, *, as_json: bool
) -> None:
    from malleable import api

    drawn = None if plot is None else api.draw(found, plot)
    if as_json:
        print_json(found.to_dict())
        return
    out = console()
    print_it(out)
    if drawn is not None:
        out.print(f"drawn in {drawn}", soft_wrap=True)


def _print_speedup(out: Console, fit: Fit) -> None:
    measured = fit.measurements
    value = "time" if measured.timed else "throughput"
    rows = table(
        f"{fit.family} fitted to {measured.name}", "cores", value, "runs", "speedup", "fitted", "95 % band",
        "residual", words=0,
    )  # fmt: skip
    for point in fit.points:
        band = "" if point.band is None else f"{show(point.band[0], 4)} … {show(point.band[1], 4)}"
        rows.add_row(
            f"{point.cores:g}", show(point.value, 5), str(point.runs), show(point.speedup, 4),
            show(point.fitted, 4), band, f"{round(100.0 * point.residual, 1) + 0.0:+.1f} %",
        )  # fmt: skip
    out.print(rows)
    if fit.scores:
        print_scores(out, fit)
    for note in fit.notes:
        out.print(f"note: {note}", soft_wrap=True)
    out.print(fit.line, soft_wrap=True)


def print_scores(out: Console, fit: Fit) -> None:
    """How well each family predicts."""
    title = "Why this family: error at a width that was left out"
    rows = table(title, "family", "parameters", "error", words=1)
    for score in sorted(fit.scores, key=lambda one: (one.error is None, one.error)):
        mark = " *" if score.family == fit.family else ""
        rows.add_row(f"{score.family}{mark}", str(score.parameters), percent(_short(score.error)))
    out.print(rows)


def _short(error: float | None) -> float | None:
    return None if error is None else float(f"{error:.3g}")


def _print_sizes(out: Console, fit: SizeFit) -> None:
    document = fit.to_dict()
    rows = table(f"{fit.family} fitted to {len(fit.samples)} sizes", "size", "P(X > x)", "fitted", words=0)
    for point in document["points"]:
        rows.add_row(show(point["size"], 5), show(point["survival"], 3), show(point["fitted"], 3))
    out.print(rows)
    facts = table("Samples and fit", "", "samples", "fitted", words=1)
    for key, name in (("mean", "mean"), ("scv", "squared coefficient of variation")):
        facts.add_row(name, show(document[key]["samples"], 5), show(document[key]["fitted"], 5))
    facts.add_row("largest distance of the distribution functions", "", show(fit.distance, 3))
    out.print(facts)
    if fit.scores:
        scores = table("Why this family: BIC, lower is better", "family", "parameters", "BIC", words=1)
        for score in fit.scores:
            mark = " *" if score.family == fit.family else ""
            scores.add_row(f"{score.family}{mark}", str(score.parameters), show(score.bic, 7))
        out.print(scores)
    out.print(fit.line, soft_wrap=True)
