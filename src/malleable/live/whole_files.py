"""Files that a reader sees all of or nothing of, whenever the writer is killed."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


def write_whole(path: Path, text: str) -> None:
    """Write a file beside its place, for this user alone, and put it there."""
    part = path.with_name(f".{path.name}.part")
    file = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(file, "w", encoding="utf-8") as opened:
        opened.write(text)
    part.replace(path)


def write_document(path: Path, document: Any) -> None:
    """Write a document as JSON."""
    write_whole(path, json.dumps(document))


def read_document(path: Path) -> Any:
    """A document that was written whole; None where there is none yet."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
