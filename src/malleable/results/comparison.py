"""Several policies on the same jobs, and their paired differences of cost."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from malleable import notebooks
from malleable.errors import did_you_mean
from malleable.results import data_frames, files
from malleable.results.class_result import number, read_interval, read_number
from malleable.results.errors import ResultError
from malleable.results.result import Result, Status, share
from malleable.results.summary import estimated_together
from malleable.statistics import Estimate, difference

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path


@dataclass(frozen=True)
class Difference:
    """Cost of a policy minus cost of the baseline on the same jobs, with its interval."""

    cores: float
    policy: str
    baseline: str
    mean: float
    low: float
    high: float
    load: float = math.nan
    """The system load; NaN where it is not known."""

    @property
    def significant(self) -> bool:
        """Whether the interval leaves out 0."""
        return self.low > 0.0 or self.high < 0.0

    def to_dict(self) -> dict[str, Any]:
        """The difference's part of the JSON document."""
        fields = {"cores": self.cores, "load": self.load, **asdict(self)}
        return {key: value if isinstance(value, str) else number(value) for key, value in fields.items()}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Difference:
        """Read what `to_dict` wrote."""
        ends = read_interval(document)
        cores, policy, baseline = (document[key] for key in ("cores", "policy", "baseline"))
        load = read_number(document.get("load"))
        return cls(cores, policy, baseline, ends.mean, ends.low, ends.high, load)

    def __str__(self) -> str:
        pair = f"{self.policy} − {self.baseline} on {self.cores:g} cores"
        place = "" if math.isnan(self.load) else f" at load {self.load:.4g}"
        return f"{pair}{place}: {Estimate(self.mean, self.low, self.high)}"


@dataclass(frozen=True, repr=False)
class Comparison:
    """Results side by side; at each number of cores and load all policies saw the same jobs."""

    results: tuple[Result, ...]
    differences: tuple[Difference, ...] = ()

    @classmethod
    def of(
        cls, results: Iterable[Result], baseline: str | None = None, *, controls: bool = True
    ) -> Comparison:
        """Compare results that kept their records with the baseline, which is the first policy by default."""
        results = _together(tuple(results), controls=controls)
        if not results:
            raise ResultError("there is nothing to compare", "give at least one result")
        against = results[0].policy if baseline is None else baseline
        policies = {result.policy for result in results}
        if against not in policies:
            raise ResultError(f"no result is of the policy {against!r}", did_you_mean(against, policies))
        bases = {_setting(result): result for result in reversed(results) if result.policy == against}
        others = [r for r in results if r.policy != against and _setting(r) in bases]
        pairs = [(r, bases[_setting(r)]) for r in others if _paired_up(r, bases[_setting(r)])]
        apart = tuple(paired_difference(*pair, controls=controls) for pair in pairs)
        notes = {id(r): _disagreement(r, base, d) for (r, base), d in zip(pairs, apart, strict=True)}
        noted = [replace(r, notes=(*r.notes, *notes.get(id(r), ()))) for r in results]
        return cls(tuple(noted), apart)

    def to_dict(self) -> dict[str, Any]:
        """The JSON document of `malleable compare`."""
        return self._document([result.to_dict() for result in self.results])

    def save(self, path: str | Path) -> Path:
        """Write `path` (.json) and all records beside it (.npz); returns the path of the document."""
        document = self._document([result.document() for result in self.results])
        return files.write(path, document, [result.records for result in self.results])

    def save_table(self, folder: str | Path) -> Path:
        """Write comparison.json, .npz and (the `rows`) .csv into a folder; returns the folder."""
        document = self.save(files.table_path(folder))
        files.write_rows(document.with_suffix(".csv"), self.rows())
        return document.parent

    @classmethod
    def read(cls, path: str | Path) -> Comparison:
        """Read what `save` wrote."""
        return files.read(path, cls._from_document)

    def to_frame(self, *, classes: bool = False) -> Any:
        """A pandas DataFrame with one row per result, or one per class of each; differences stand beside."""
        return data_frames.frame(self.rows(classes=classes))

    def rows(self, *, classes: bool = True) -> list[dict[str, Any]]:
        """One flat row for each result, or for each of its classes; differences stand beside their policy."""
        found = {(*_setting(d), d.policy): d.to_dict() for d in self.differences}
        blank: dict[str, Any] = dict.fromkeys(("baseline", "mean", "low", "high"))
        table: list[dict[str, Any]] = []
        for result in self.results:
            beside = found.get((*_setting(result), result.policy), blank)
            columns = {
                "baseline": beside["baseline"],
                "difference": beside["mean"],
                "difference_low": beside["low"],
                "difference_high": beside["high"],
            }
            document = result.to_dict()
            flat = data_frames.rows(document) if classes else [data_frames.row(document)]
            table += [{**row, **columns} for row in flat]
        return table

    def __str__(self) -> str:
        return "\n".join(map(str, (*self.results, *self.differences)))

    def __repr__(self) -> str:
        return f"<Comparison of {len(self.results)} results:\n{self}>"

    def _repr_html_(self) -> str:
        beside = {(*_setting(d), d.policy): Estimate(d.mean, d.low, d.high) for d in self.differences}
        named = {d.baseline for d in self.differences}
        columns = ("policy", "cores", "load", "cost", "above the bound", f"minus {', '.join(sorted(named))}")
        shown = [
            (
                r.policy, f"{r.cores:g}", f"{r.load:.4g}", str(r.cost), share(r.gap),
                str(beside.get((*_setting(r), r.policy), "")),
            )
            for r in self.results
        ]  # fmt: skip
        notes = [f"{r.policy} on {r.cores:g} cores: {note}" for r in self.results for note in r.notes]
        return notebooks.table("Mean holding cost per job, on the same jobs", columns, shown, (), notes)

    def _document(self, results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        return {"results": list(results), "differences": [d.to_dict() for d in self.differences]}

    @classmethod
    def _from_document(cls, document: Mapping[str, Any], groups: Sequence[files.Runs]) -> Comparison:
        pairs = zip(document["results"], groups, strict=True)
        results = tuple(Result.from_dict(result, records) for result, records in pairs)
        # Before there were comparisons of several loads, a difference did not name its own.
        loads = {result.cores: result.load for result in results}
        rows = [{"load": loads.get(row["cores"]), **row} for row in document["differences"]]
        return cls(results, tuple(map(Difference.from_dict, rows)))


def paired_difference(result: Result, baseline: Result, *, controls: bool = True) -> Difference:
    """The difference of two results on the same jobs."""
    if result.workload is None or not (result.records and baseline.records):
        raise ResultError("a result without its records or workload has no paired difference")
    if result.workload != baseline.workload or result.cores != baseline.cores:
        raise ResultError("only results on the same workload and cores have a paired difference")
    # After Ctrl-C one of them may lack replications; the others are still pairs.
    common = set(result.seeds) & set(baseline.seeds) if len(result.seeds) != len(baseline.seeds) else None
    found = difference(
        _of_seeds(result, common),
        _of_seeds(baseline, common),
        result.workload,
        warmup=result.warmup_given,
        confidence=result.confidence,
        controls=controls,
    )
    if not (math.isfinite(result.cost.half_width) and math.isfinite(baseline.cost.half_width)):
        found = Estimate(found.mean)  # what is too short for an interval is so for a difference
    return Difference(
        result.cores, result.policy, baseline.policy, found.mean, found.low, found.high, result.load
    )


def _together(results: tuple[Result, ...], *, controls: bool) -> tuple[Result, ...]:
    """The results in their order, those of each setting estimated together."""
    found = list(results)
    for setting in dict.fromkeys(map(_setting, results)):
        places = [i for i, result in enumerate(results) if _setting(result) == setting]
        mine = estimated_together([results[i] for i in places], controls=controls)
        for i, result in zip(places, mine, strict=True):
            found[i] = result
    return tuple(found)


def _disagreement(result: Result, baseline: Result, apart: Difference) -> tuple[str, ...]:
    """A note where the costs differ by what the interval of the paired difference leaves out."""
    shown = result.cost.mean - baseline.cost.mean
    if apart.low <= shown <= apart.high or result.status == Status.UNSTABLE or shown == apart.mean:
        return ()
    saying = (
        f"its cost is {shown:+.4g} from that of {baseline.policy}, outside the interval of the paired "
        "difference, which is the one to trust: the two costs are not of the same stretch of jobs"
    )
    return (saying,)


def _setting(one: Result | Difference) -> tuple[float, float]:
    """Where policies are compared."""
    return one.cores, one.load


def _paired_up(result: Result, baseline: Result) -> bool:
    """Whether there is something to compare: an interrupted comparison may have no common replication."""
    return len(result.seeds) == len(baseline.seeds) or bool(set(result.seeds) & set(baseline.seeds))


def _of_seeds(result: Result, seeds: set[int] | None) -> files.Runs:
    pairs = zip(result.seeds, result.records, strict=True)
    return result.records if seeds is None else tuple(run for seed, run in pairs if seed in seeds)
