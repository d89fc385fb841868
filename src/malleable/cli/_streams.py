"""Standard streams that take whatever is written to them: closed ones, and those that know only ASCII."""

from __future__ import annotations

import codecs
import os
import sys
import unicodedata

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PLAIN = {
    "±": "+/-", "–": "-", "−": "-", "—": "-", "…": "...", "∞": "inf", "→": "->", "≤": "<=", "≥": ">=",
    "×": "x", "·": "*", "√": "sqrt", "²": "^2", "³": "^3", "′": "'",
    "‘": "'", "’": "'", "“": '"', "”": '"', "─": "-", "━": "-", "│": "|", "╭": "+", "╮": "+", "╰": "+",
    "╯": "+", "├": "+", "┤": "+", "•": "*",
}  # fmt: skip
"""How to write what an encoding does not have."""
HANDLER = "malleable-plain"


def prepare() -> None:
    """Have a place for all three standard streams, and write what their encoding lacks in another way.

    Standard input that was closed stays None: who reads it must not take it for an empty one.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # Else the next file that is opened would take its place.
            os.open(os.devnull, os.O_RDWR)
    sys.stdout = sys.stdout or open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    _configure(sys.stdin, encoding="utf-8", errors="backslashreplace")
    _configure(sys.stdout, errors=HANDLER)
    _configure(sys.stderr, errors=HANDLER)


def in_encoding(text: str) -> str:
    """The text as it will stand on stdout, so that its width is known beforehand."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    return text.encode(encoding, HANDLER).decode(encoding)


def silence(stream: Any) -> None:
    """Send the rest of a stream nowhere: Python flushes it once more when it ends."""
    try:
        number = stream.fileno()
    except (OSError, ValueError):
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, number)
    os.close(nowhere)


def _configure(stream: Any, **options: str) -> None:
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(**options)


def _plain(error: UnicodeError) -> tuple[str | bytes, int]:
    """In other words, or as an escape sequence."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(map(_in_words, error.object[error.start : error.end])), error.end


def _in_words(character: str) -> str:
    if character in PLAIN:
        return PLAIN[character]
    name = unicodedata.name(character, "")
    if name.startswith("GREEK SMALL LETTER "):
        return name.split()[3].lower()
    return character.encode("ascii", "backslashreplace").decode()


codecs.register_error(HANDLER, _plain)
