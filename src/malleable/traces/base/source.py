"""The bytes of a log: read from a file or standard input, unpacked, and as text."""

from __future__ import annotations

import gzip
import io
import sys
import zlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from malleable.errors import TraceError, to_install

if TYPE_CHECKING:
    from collections.abc import Iterator

GZIP, ZSTD, PARQUET = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PAR1"
HEAD = 1 << 16
"""Bytes that tell the format of a file."""
BYTE_ORDERS = ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"), (b"\xef\xbb\xbf", "utf-8-sig"))


@dataclass(frozen=True)
class Source:
    """A log, unpacked."""

    name: str
    data: bytes

    @property
    def parquet(self) -> bool:
        """Whether it is a Parquet file."""
        return self.data[:4] == PARQUET

    @cached_property
    def text(self) -> str:
        """All of it as text; what cannot be decoded, and NUL, becomes a mark that no number contains."""
        encoding = next((name for mark, name in BYTE_ORDERS if self.data.startswith(mark)), "utf-8")
        return self.data.decode(encoding, errors="replace").replace("\0", "\ufffd")

    @cached_property
    def head(self) -> list[str]:
        """The first lines, the last of which may be cut off."""
        if self.parquet:
            return []
        part = Source(self.name, self.data[: HEAD & ~1]).text
        return [line.rstrip("\r") for line in part.split("\n")]

    @property
    def first(self) -> str:
        """The first line that holds something."""
        return next((line for line in self.head if line.strip()), "")

    def lines(self) -> Iterator[str]:
        """All lines, without their ends."""
        return (line.rstrip("\r\n") for line in io.StringIO(self.text, newline="\n"))


def open_source(path: str | Path) -> Source:
    """Read and unpack a file, or standard input if `path` is -."""
    name = "the input" if str(path) == "-" else str(path)
    data = _bytes(path)
    if data.startswith(GZIP):
        data = _gunzip(data, name)
    elif data.startswith(ZSTD):
        data = _unzstd(data, name)
    return Source(name, data)


def _bytes(path: str | Path) -> bytes:
    try:
        if str(path) == "-":
            if sys.stdin is None or sys.stdin.closed:
                raise TraceError("there is no standard input", "give a file in place of -")
            return sys.stdin.buffer.read()
        return Path(path).read_bytes()
    except FileNotFoundError:
        raise TraceError(
            f"there is no file {str(path)!r}", "give the path of a log, or - for input"
        ) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise TraceError(f"cannot read {str(path)!r}: {reason}") from None


def _gunzip(data: bytes, name: str) -> bytes:
    try:
        return gzip.decompress(data)
    except EOFError:
        raise TraceError(f"{name} ends in the middle of its gzip data", "copy or download it again") from None
    except (OSError, zlib.error) as error:
        raise TraceError(f"{name} is not valid gzip: {error}", "copy or download it again") from None


def _unzstd(data: bytes, name: str) -> bytes:
    try:
        import pyarrow as pa  # noqa: PLC0415 - an extra
    except ImportError:
        hint = f"unpack it with `zstd -d`, or {to_install('traces')}"
        raise TraceError(f"{name} is packed with zstd, and pyarrow is not installed", hint) from None
    try:
        with pa.CompressedInputStream(pa.BufferReader(data), "zstd") as stream:
            unpacked: bytes = stream.read()
    except (OSError, ValueError) as error:
        raise TraceError(f"{name} is not valid zstd: {error}"[:160], "copy or download it again") from None
    return unpacked
