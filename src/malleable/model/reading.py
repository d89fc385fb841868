"""Reading workloads: a built-in name, a TOML file, or standard input."""

from __future__ import annotations

import tomllib
from importlib import resources
from pathlib import Path
from typing import Any

from malleable.errors import MalleableError, WorkloadError, did_you_mean
from malleable.model.standard_input import standard_input
from malleable.model.workload import Workload


def read_workload(source: Workload | str | Path) -> Workload:
    """The workload that `source` stands for: itself, a built-in name, a TOML file, or - (standard input)."""
    if isinstance(source, Workload):
        return source
    if str(source) != "-":
        return load_workload(source)
    try:
        return parse_workload(standard_input().read())
    except UnicodeDecodeError:
        raise WorkloadError("the input is not text", "a workload is a TOML file") from None


def builtin_workloads() -> dict[str, Path]:
    """The workload files that come with the package, by name."""
    folder = Path(str(resources.files("malleable") / "workloads"))
    return {file.stem: file for file in sorted(folder.glob("*.toml"))}


def load_workload(source: str | Path) -> Workload:
    """Read a workload: a built-in name such as `paper`, or a TOML file."""
    path = builtin_workloads().get(str(source), Path(source))
    try:
        text = path.read_bytes().decode("utf-8-sig")  # some editors mark UTF-8 with an invisible character
    except FileNotFoundError:
        hint = did_you_mean(str(source), [*builtin_workloads(), *(p.name for p in Path().glob("*.toml"))])
        raise WorkloadError(f"there is no workload or file {str(source)!r}", hint) from None
    except UnicodeDecodeError:
        raise WorkloadError(f"{source} is not a text file", "a workload is a TOML file") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise WorkloadError(f"cannot read {str(source)!r}: {reason}") from None
    return parse_workload(text, str(source), name=path.stem, folder=path.parent)


def parse_workload(
    text: str, source: str = "the input", *, name: str = "input", folder: Path | None = None
) -> Workload:
    """Read the text of a workload file; files that it names are relative to `folder`."""
    try:
        document = tomllib.loads(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError) as error:  # not every ValueError is a TOMLDecodeError
        raise WorkloadError(f"{source} is not valid TOML: {error}", "a workload is a TOML file") from None
    if not document:
        raise WorkloadError(
            f"{source} is empty", "add a [[classes]] table; `malleable list workloads` shows examples"
        )
    document.setdefault("name", name)
    try:
        return Workload.from_dict(_anchored(document, folder or Path()))
    except MalleableError as error:
        raise WorkloadError(f"{source}: {error.sentence}", error.hint) from None
    except ValueError as error:  # a number with too many digits to be shown
        raise WorkloadError(f"{source}: {error}") from None


def _anchored(document: Any, folder: Path) -> Any:
    """Files that a workload names (measured sizes, a Python function) are relative to the workload's own."""
    if isinstance(document, list):
        return [_anchored(item, folder) for item in document]
    if not isinstance(document, dict):
        return document
    return {
        key: str(folder / value)
        if key in {"file", "function"} and isinstance(value, str)
        else _anchored(value, folder)
        for key, value in document.items()
    }


def paper_workload(cores: float | None = None, load: float = 0.25) -> Workload:
    """The three classes of the paper's evaluation, at `load` on `cores` cores when given."""
    workload = load_workload("paper")
    return workload if cores is None else workload.at(cores, load)


def workload_listing() -> list[dict[str, Any]]:
    """The built-in workloads: name, summary and classes."""
    found = []
    for name in builtin_workloads():
        workload = load_workload(name)
        kinds = ", ".join(sorted({c.speedup.kind for c in workload.classes}))
        summary = f"{len(workload.classes)} classes ({kinds}), work for {workload.total_load:.4g} cores"
        found.append({"name": name, "summary": summary, "classes": list(workload.class_names)})
    return found
