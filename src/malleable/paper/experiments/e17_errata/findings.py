"""What the cells of e17_errata show: the errors of the paper, with corrections, and a check of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from malleable.paper.contracts import Effort, Findings, Table, Verdict

if TYPE_CHECKING:
    from malleable.paper.contracts import Values

CHOICES = {
    "errors": "those that change a number, an allocation or a step of a proof; misprints are left out",
    "job of the single arm": "speedup √k, holding cost 1, discount rate 1, remaining size 20",
}


class Erratum(NamedTuple):
    """One error."""

    where: str
    printed: str
    right: str
    holds: bool
    """Whether the numbers show that what is printed is wrong, and the correction right."""
    check: str


def findings(effort: Effort, values: Values) -> Findings:  # noqa: ARG001 - the cells say it all
    """The table, and one verdict for each error."""
    found = errata(values)
    columns = {
        "where": tuple(one.where for one in found),
        "printed": tuple(one.printed for one in found),
        "right": tuple(one.right for one in found),
        "check": tuple(one.check for one in found),
    }
    return Findings(
        title="Errata of the paper",
        source="beyond the paper (corrections to it)",
        statement=(
            "What the paper prints is not always what it means. Each error is stated with its correction and "
            "with a number that shows it. None touches the main results: FW-CAM and WHAM are mean-field "
            "optimal, and the attractor that the paper assumes is proved in the documentation."
        ),
        tables=(Table("errata", "Errors, corrections and checks", columns),),
        verdicts=tuple(Verdict(f"{one.where}: {one.right}", one.holds, one.check) for one in found),
        remarks=("Misprints of symbols and of integration bounds are not listed.",),
    )


def errata(values: Values) -> tuple[Erratum, ...]:
    """All errors, in the order of the paper."""
    return (*_of_the_model(values), *_of_wham(values), *_of_the_rest(values))


def _of_the_model(values: Values) -> tuple[Erratum, ...]:
    concave, linear = values["concavity"], values["linear_limit"]
    efficiency, slopes, load = concave["efficiency"], concave["slopes"], linear["effective"]
    return (
        Erratum(
            "Model, the bullet on concavity",
            "s(k)/k does not rise",
            "s is concave: its slope does not rise",
            efficiency == sorted(efficiency, reverse=True) and slopes[1] > slopes[0],
            f"s(1, 2, 4) = 1, 1.1, 2.1 has s(k)/k = {_list(efficiency)}, and slopes {_list(slopes)} that "
            "rise",
        ),
        Erratum(
            "Footnote to FW-Relax, and Section on effective load",
            "k_i is finite and the constraint is tight, as no speedup is perfectly elastic",
            "both need a load that some price can use; they hold if s(k)/k → 0",
            max(load) < 0.5 and load == sorted(load) and linear["price"][-1] < 1e-2,
            f"s = ½k + ½√k at load ¼: effective load {_list(load)} on 1, 100, 10⁴ and 2²⁰ cores, never ½, at "
            f"prices down to {linear['price'][-1]:.2g}",
        ),
    )


def _of_wham(values: Values) -> tuple[Erratum, ...]:
    t, full, arm, proof = (
        values[key] for key in ("threshold", "as_many_jobs_as_cores", "single_arm", "lemma_proof")
    )
    return (
        Erratum(
            "Definition of WHAM, threshold for one core",
            "one core if l ≥ f_i(1)",
            "one core if l ≥ c_i f_i(1)",
            abs(t["dear_above"] / (2.0 / 1.001) - 1.0) < 1e-3
            and abs(t["dear_below"] / (2.0 / 0.999) - 1.0) < 1e-3
            and t["printed_cheap"] < 1.0 == t["cheap"]
            and abs(t["demand"][0] - t["dear_above"]) < 1e-3,
            f"√k, f(1) = 1. Cost 2: the best width is {t['dear_below']:.3f} just below l = 1 and "
            f"{t['dear_above']:.3f} just above, where 1 is printed. Cost ½: it is {t['cheap']:.0f}, and "
            f"f⁻¹(l/c) = {t['printed_cheap']:.2f} is less than a core",
        ),
        Erratum(
            "Definition of WHAM, N = n",
            "a price at which the demands sum to n",
            "one core each: f_i(1) may be infinite, and then there is no such price",
            full["least"] * full["jobs"] > full["cores"],
            f"a job that is linear up to 2 cores takes {full['least']:.0f} at any price; {full['jobs']} of "
            f"them do not fit on {full['cores']} cores",
        ),
        Erratum(
            "Lemma on the single arm, and the policy for α > 0",
            "one action is kept for life",
            "it is only as α → 0; the optimal arm starts narrow and widens",
            arm["index"] > 1.2 * arm["held_index"]
            and arm["cost"] < arm["held_cost"] - 1e-3
            and abs(arm["cost"] - arm["by_steps"]) < 1e-4,
            f"index {arm['index']:.5f} against {arm['held_index']:.5f}, first width {arm['width']:.0f} "
            f"against {arm['held_width']:.0f}; at half the lower price the cost is {arm['cost']:.4f} (in "
            "steps "
            f"{arm['by_steps']:.4f}) against {arm['held_cost']:.4f}",
        ),
        Erratum(
            "Proof of that lemma, work done",
            "∫ k(t) dt",
            "∫ s(k(t)) dt",
            proof["printed"] > proof["steady"] > proof["right"],
            f"√k, half the time on 1 core and half on 9: ∫ k = {proof['printed']:g} would exceed the "
            f"{proof['steady']:.3f} of 5 steady cores, ∫ s(k) = {proof['right']:g} does not",
        ),
    )


def _of_the_rest(values: Values) -> tuple[Erratum, ...]:
    one, base, cores = values["stability"], values["base_cores"]["cores"], values["li_goldberg"]
    return (
        Erratum(
            "Proof that WHAM is stable",
            "every job completes sooner than under first come, first served",
            "not every job: beyond n jobs it falls behind shorter ones; "
            "the work falls, at rate (1 − ρ)n there",
            one["first"] == 0.0 and one["wham"] > one["fcfs"],
            f"one core, size 2 at time 0, size 1 at time ½: the first job ends at {one['wham']:g} under WHAM "
            f"and at {one['fcfs']:g} under first come, first served",
        ),
        Erratum(
            "Proposition on ρ → 1, definition of the load",
            "ρ = Σ λ_i E[X_i]",
            "ρ = Σ λ_i E[X_i]/n, as everywhere else",
            abs(base * 0.25 - 28.0 / 15.0) < 1e-12,
            f"as printed the workload of the appendix has ρ = {base * 0.25:.3f} on any number of cores",
        ),
        Erratum(
            "Appendix on simulations, n at load ¼",
            "n is not given",
            "112/15 cores, not a whole number; rates are λ_i·15n/112 on n",
            abs(base - 112.0 / 15.0) < 1e-12,
            f"Σ λ_i E[X_i]/¼ = {base:.6f}",
        ),
        Erratum(
            "Proof that FW-CAM has no queues",
            "a bound for all n that are large enough",
            "true, but far beyond any machine: never use it as a number",
            all(n > 1e9 for n in cores.values()),
            "it holds from " + ", ".join(f"{n:.0e} cores at β = {beta}" for beta, n in cores.items()),
        ),
    )


def _list(numbers: list[float]) -> str:
    return ", ".join(f"{number:.4g}" for number in numbers)
