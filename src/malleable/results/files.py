"""Results on disk: one JSON document with every number, and one npz file beside it with the records.

The npz file is written first and the document names it with its SHA-256, both by renaming a finished
temporary file, so that a reader finds the old pair or the new one, or is told that they do not belong
together. Arrays are stored without pickling, so loading a stranger's file runs no code of theirs.
"""

from __future__ import annotations

import csv
import errno
import hashlib
import io
import json
import os
import tempfile
import warnings
import zipfile
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from malleable.engine.records import Records
from malleable.errors import MalleableError
from malleable.model import Workload
from malleable.results.errors import ResultError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

FORMAT = 1
Runs = tuple[Records, ...]
T = TypeVar("T")


def write(path: str | Path, document: Mapping[str, Any], groups: Sequence[Runs]) -> Path:
    """Write a document and the records of its results; returns the path of the document."""
    path = document_path(path)
    blob = packed(groups)
    file = {"format": FORMAT, "sha256": hashlib.sha256(blob).hexdigest(), "runs": [len(g) for g in groups]}
    text = json.dumps({**document, "file": file}, indent=1, allow_nan=False, ensure_ascii=False)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path.with_suffix(".npz"), blob)
        # A file name that is no text comes as half of a character, which JSON can write.
        replace_file(path, (text + "\n").encode(errors="backslashreplace"))
    except OSError as error:
        raise _unwritable(path, error) from None
    return path


def write_rows(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write flat rows that have the same keys as CSV."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    put(path, text.getvalue().encode(errors="backslashreplace"))


def put(path: Path, content: bytes) -> None:
    """Put `content` at `path` in one step, in a folder that is made if need be."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, content)
    except OSError as error:
        raise _unwritable(path, error) from None


def read(path: str | Path, build: Callable[[dict[str, Any], list[Runs]], T]) -> T:
    """Read a document and its records, and build from them what was saved."""
    path = _with_ending(Path(path))
    document = _document(path)
    try:
        file = document.pop("file")
        if file["format"] != FORMAT:
            hint = "read it with the version of malleable that wrote it"
            raise ResultError(f"{path} has format {file['format']!r:.20}, this version reads {FORMAT}", hint)
        blob = _bytes(path.with_suffix(".npz"))
        if hashlib.sha256(blob).hexdigest() != file["sha256"]:
            hint = "copy both files again, or rerun"
            raise ResultError(
                f"{path.with_suffix('.npz')} is not the one that {path.name} was saved with", hint
            )
        return build(document, unpacked(blob, file["runs"]))
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, zipfile.BadZipFile) as error:
        if isinstance(error, MalleableError):
            raise
        problem = f"{path} is not a saved result: {type(error).__name__} {error!s:.60}"
        raise ResultError(problem, "give a file that Result.save wrote") from None


def document_path(path: str | Path) -> Path:
    """Where to write the JSON document: `path`, with .json added if need be; never a folder."""
    text = os.fspath(path)
    if not text:
        raise ResultError("the file has no name", "for example run, for run.json and run.npz")
    if os.path.isdir(text) or text.endswith(("/", os.sep)):  # noqa: PTH112 - it raises nothing
        raise ResultError(f"{text!r} is a folder, not a file", f"name a file in it: {Path(text) / 'run'}")
    return _with_ending(Path(path))


def _with_ending(path: Path) -> Path:
    return path if path.suffix == ".json" or not path.name else path.with_name(path.name + ".json")


def table_path(folder: str | Path) -> Path:
    """The path of a comparison's document in a folder."""
    if not os.fspath(folder):
        raise ResultError("the folder has no name", "for example runs; . is this one")
    return Path(folder) / "comparison.json"


def check(path: Path) -> None:
    """See that a file could be written, before hours are spent on what would go into it; leave no trace."""
    missing = [folder for folder in path.parents if not os.path.exists(folder)]  # noqa: PTH110 - ditto
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, trial = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        os.close(handle)
        Path(trial).unlink()
        if os.path.isdir(path):  # noqa: PTH112 - ditto
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    except (OSError, ValueError) as error:
        raise _unwritable(path, error) from None
    finally:
        for folder in missing:
            with suppress(OSError):
                folder.rmdir()


def _unwritable(path: Path, error: Exception) -> ResultError:
    reason = getattr(error, "strerror", None) or error
    return ResultError(f"cannot write {str(path)!r}: {reason}", "choose another place with --out")


def packed(groups: Sequence[Runs]) -> bytes:
    """The records of all results as the bytes of an npz file."""
    arrays = {
        f"{group}.{run}.{name}": array
        for group, runs in enumerate(groups)
        for run, records in enumerate(runs)
        for name, array in records.arrays().items()
    }
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **arrays)
    return buffer.getvalue()


def unpacked(blob: bytes, runs: Sequence[int]) -> list[Runs]:
    """The records back from the bytes, one tuple for each result."""
    names = [f.name for f in fields(Records)]
    with np.load(io.BytesIO(blob), allow_pickle=False) as arrays:
        return [
            tuple(_records(arrays, names, f"{group}.{run}") for run in range(count))
            for group, count in enumerate(runs)
        ]


def replace_file(path: Path, content: bytes) -> None:
    """Put `content` at `path` in one step: readers see the old file or the whole new one."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(temporary).chmod(0o666 & ~_umask())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _records(arrays: Any, names: Sequence[str], place: str) -> Records:
    """The records at a place; a file from before an array was kept goes without it."""
    return Records(**{name: arrays[f"{place}.{name}"] for name in names if f"{place}.{name}" in arrays})


def same_records(ours: Runs, theirs: Runs) -> bool:
    """Whether all arrays are equal."""
    return len(ours) == len(theirs) and all(
        np.array_equal(array, b.arrays()[name], equal_nan=True)
        for a, b in zip(ours, theirs, strict=True)
        for name, array in a.arrays().items()
    )


def workload_document(workload: Workload | None) -> dict[str, Any] | None:
    """The workload as a document; None when a part of it is a Python object that has none."""
    try:
        return workload.to_dict() if workload else None
    except MalleableError:
        # Hours of simulation must not be lost because a speedup was a lambda.
        return None


def read_workload(document: Any) -> Workload | None:
    """The workload back from its document; the warnings were given when it was first made."""
    if document is None:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Workload.from_dict(document)


def _umask() -> int:
    """The umask, which can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise ResultError(f"there is no file {str(path)!r}", "a result is a .json and a .npz file") from None
    except OSError as error:
        raise ResultError(f"cannot read {str(path)!r}: {error.strerror or error}") from None


def _document(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(_bytes(path))
    except (ValueError, RecursionError) as error:
        raise ResultError(f"{path} is not valid JSON: {error!s:.80}", "was it cut short?") from None
    if not isinstance(document, dict):
        raise ResultError(f"{path} is not a saved result", "give a file that Result.save wrote")
    return document
