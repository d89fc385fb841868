"""Files that a reader sees all of or nothing of, whenever the writer is killed.

That a machine has no file, memory or process to give says nothing of what was asked for: such a `SHORTAGE` is
an error, to be tried again, where what is not there is an answer.
"""

from __future__ import annotations

import errno
import json
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

SHORTAGE = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN, errno.ENOSPC, errno.EDQUOT))


def raise_if_short(error: OSError) -> None:
    """Raise an error again that says nothing of what was asked for."""
    if error.errno in SHORTAGE:
        raise error


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
    except OSError as error:
        raise_if_short(error)
    except ValueError:
        pass
    return None
