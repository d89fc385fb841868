"""The speedup of each class of a study: from a rule, a file of measurements, or a folder of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from malleable import catalog
from malleable.contracts import Speedup
from malleable.errors import MalleableError, TraceError, did_you_mean
from malleable.fitting import fit_speedup, read_measurements

if TYPE_CHECKING:
    from collections.abc import Sequence

    from malleable.traces.study.study import Study

HINT = "write a rule such as amdahl:sequential=0.05, or name a file or folder of measurements"


def speedups_of(study: Study, names: Sequence[str]) -> tuple[tuple[Speedup, ...], tuple[str, ...]]:
    """A speedup for each class, and in words where they come from."""
    for name in study.speedups:
        if name not in names:
            raise TraceError(f"there is no class {name!r} to have a speedup", did_you_mean(name, names))
    folder = _folder(study.speedup)
    common = None if folder is not None else _read(study.speedup)
    found, said = [], []
    if common is not None:
        said.append(f"jobs speed up by {_named(study.speedup)} where nothing else is said")
    for name in names:
        given = study.speedups.get(name)
        if given is None and folder is not None:
            given = _file(folder, name)
        if given is None:
            if common is None:
                raise TraceError(f"no speedup is given for class {name!r}", HINT)
            found.append(common)
            continue
        found.append(_read(given))
        said.append(f"class {name} speeds up by {_named(given)}")
    return tuple(found), tuple(said)


def _named(value: Any) -> str:
    if isinstance(value, Path) or (isinstance(value, str) and Path(value).is_file()):
        return f"the concave fit to {Path(value).name}"
    if isinstance(value, Speedup):
        return f"{value.kind} {value.parameters()}"
    return f"{value}"


def _folder(value: Any) -> Path | None:
    if isinstance(value, str | Path) and Path(value).is_dir():
        return Path(value)
    return None


def _file(folder: Path, name: str) -> Path:
    """The measurements of a class: NAME.csv, or the one file whose name begins so."""
    files = sorted(folder.glob("*.csv"))
    exact = [file for file in files if file.stem == name]
    found = exact or [file for file in files if file.stem.partition("-")[0] == name]
    if not found:
        hint = f"its files are {', '.join(file.name for file in files) or 'no CSV files'}"
        raise TraceError(f"{folder} has no measurements of {name!r}", hint)
    return found[0]


def _read(value: Any) -> Speedup:
    """A speedup, however it is given."""
    if isinstance(value, Speedup | Mapping) or callable(value):
        return Speedup.of(value)
    if isinstance(value, Path) or (isinstance(value, str) and Path(value).is_file()):
        return fit_speedup(read_measurements(value), "concave").speedup
    if not isinstance(value, str):
        raise TraceError(f"not a speedup: {value!r:.60}", HINT)
    try:
        built = catalog.build("speedups", value, Speedup)
    except MalleableError as error:
        if "/" in value or value.endswith(".csv"):
            raise TraceError(f"there is no file {value!r}", HINT) from None
        raise TraceError(f"the speedup {value!r:.60}: {error.problem}", error.hint or HINT) from None
    return Speedup.of(built)
