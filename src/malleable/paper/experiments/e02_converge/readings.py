"""What figures and verdicts of e02_converge both read from the values of its cells."""

from __future__ import annotations

from math import nan
from typing import TYPE_CHECKING, Any

from malleable.paper.contracts import failed
from malleable.paper.experiments.e02_converge.cells import BETAS
from malleable.paper.experiments.shared.curves import Curve
from malleable.results.class_result import read_interval, read_number
from malleable.statistics.intervals import Estimate

if TYPE_CHECKING:
    from malleable.paper.contracts import Values


def wham_curve(cores: tuple[int, ...], values: Values) -> Curve:
    """Simulated costs of WHAM."""
    results = tuple(values[f"wham-{n}"]["results"]["wham"] for n in cores)
    costs = tuple(read_interval(result["cost"]) for result in results)
    nothing = (nan,) * len(cores)
    return Curve("WHAM", cores, costs, results, nothing, 0, more=_more(nothing, ("stable",) * len(cores)))


def fixed_curve(beta: float, cores: tuple[int, ...], values: Values) -> Curve:
    """Exact and simulated costs of FW-CAM with one β."""
    rows = {row["cores"]: row for row in values[f"exact-{beta}"]}
    found: list[Any] = [values.get(f"fw-cam-{beta}-{n}") for n in cores]
    results = tuple(None if failed(v) else v["results"][f"fw-cam:beta={beta}"] for v in found)
    return Curve(
        f"FW-CAM, β = {beta}",
        cores,
        tuple(Estimate() if r is None else read_interval(r["cost"]) for r in results),
        results,
        tuple(read_number(rows[n].get("cost")) for n in cores),
        BETAS[beta],
        tuple(rows[n].get("reason", "") for n in cores),
        _more((beta,) * len(cores), tuple(rows[n]["status"] for n in cores)),
    )


def best_curve(cores: tuple[int, ...], values: Values) -> Curve:
    """Exact costs of FW-CAM with the best β for each number of cores."""
    rows = [values.get(f"best-{n}", {"status": "not computed"}) for n in cores]
    betas = tuple(read_number(row.get("beta")) for row in rows)
    return Curve(
        "FW-CAM, best β",
        cores,
        (Estimate(),) * len(cores),
        (None,) * len(cores),
        tuple(read_number(row.get("cost")) for row in rows),
        4,
        tuple(row.get("reason", f"β = {beta:g}") for row, beta in zip(rows, betas, strict=True)),
        _more(betas, tuple(row["status"] for row in rows)),
    )


def _more(beta: tuple[float, ...], status: tuple[str, ...]) -> dict[str, tuple[Any, ...]]:
    return {"beta": beta, "status": status}
