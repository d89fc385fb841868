"""Functions as workers are sent them: by content, once for each worker, however large.

A function of `__main__` or of a notebook travels with the globals that it uses, and these may be large. It is
packed whenever it is submitted, so a global that has changed since is seen. Large arrays are only read for
that, not copied: a digest of the content tells whether the function is known. A large function is written
once to a file of memory (`memfd_create`), which all workers map; so neither this process nor a worker has
a copy of its own. A worker that writes to such an array gets pages of its own.
"""

from __future__ import annotations

import os
import pickle
import struct
import weakref
from collections import OrderedDict
from dataclasses import dataclass
from mmap import ACCESS_COPY, mmap
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from malleable.live.workers.by_value import pack, pickler_by_value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from hashlib import blake2b

LARGE_BYTES = 1 << 20
"""Arrays of this size stay out of the pickle, and functions of this size are written to a file."""
MOST_FILES = 32
"""Files that a pool has, as a process may open a limited number. Other functions travel in messages."""
SMALL_KEPT, LARGE_KEPT = 64, 4
"""Functions that a pool, and each worker, keeps for the next unit."""
CHUNK_BYTES = 1 << 18
ALIGNMENT = 64
"""Arrays begin at multiples of this, as compiled code expects."""
HASH = struct.Struct("!q")
Value = TypeVar("Value")


class Recent(Generic[Value]):
    """What was used last, by key: so many small things, and few large ones.

    The pool has one for each worker, and the worker has one; both are used in the order of the messages. So
    the pool knows what the worker has kept.
    """

    def __init__(self) -> None:
        self._small: OrderedDict[bytes, Value] = OrderedDict()
        self._large: OrderedDict[bytes, Value] = OrderedDict()

    def get(self, key: bytes) -> Value | None:
        for kept in (self._small, self._large):
            if key in kept:
                kept.move_to_end(key)
                return kept[key]
        return None

    def put(self, key: bytes, value: Value, *, large: bool) -> None:
        kept, most = (self._large, LARGE_KEPT) if large else (self._small, SMALL_KEPT)
        kept[key] = value
        kept.move_to_end(key)
        if len(kept) > most:
            kept.popitem(last=False)


@dataclass(frozen=True, slots=True)
class InMessage:
    """A function that travels in a message: its pickle, and the arrays that stand beside it."""

    stream: bytes
    buffers: tuple[bytes, ...]
    large = False

    def opened(self) -> Callable[[], Any]:
        """What makes the function, afresh at each call."""
        return lambda: pickle.loads(self.stream, buffers=map(bytearray, self.buffers))  # noqa: S301 - ours


@dataclass(frozen=True, slots=True)
class InFile:
    """A function that stands in a file of memory: where its pickle and its arrays begin and end."""

    path: str
    parts: tuple[tuple[int, int], ...]
    large = True

    def opened(self) -> Callable[[], Any]:
        """What makes the function, afresh at each call; the file is open until this is dropped."""
        file = MemoryFile(os.open(self.path, os.O_RDONLY | os.O_CLOEXEC))

        def make() -> Any:
            memory = memoryview(mmap(file.number, 0, access=ACCESS_COPY))
            stream, *buffers = (memory[start:end] for start, end in self.parts)
            return pickle.loads(stream, buffers=buffers)  # noqa: S301 - from our parent

        return make


class MemoryFile:
    """A file without a name; it is closed when this is dropped."""

    def __init__(self, number: int | None = None) -> None:
        self.number = os.memfd_create("malleable-function") if number is None else number
        self.size = 0
        weakref.finalize(self, os.close, self.number)

    @property
    def path(self) -> str:
        """Where this process and its workers find it."""
        return f"/proc/{os.getpid()}/fd/{self.number}"

    def write(self, data: bytes | bytearray | memoryview) -> None:
        view = memoryview(data)
        self.size += view.nbytes
        while view:
            view = view[os.write(self.number, view) :]

    def align(self) -> int:
        """Where the next array begins."""
        self.write(bytes(-self.size % ALIGNMENT))
        return self.size


@dataclass(eq=False)
class PackedFunction:
    """A function for workers; functions of one content have one `key`."""

    key: bytes
    name: str
    content: InMessage | InFile
    file: MemoryFile | None = None


class Functions:
    """The functions of a pool: those of units that are not done, and those that were used last."""

    def __init__(self) -> None:
        self._present: weakref.WeakValueDictionary[bytes, PackedFunction] = weakref.WeakValueDictionary()
        self._recent: Recent[PackedFunction] = Recent()
        self._files: weakref.WeakSet[MemoryFile] = weakref.WeakSet()

    def pack(self, function: Callable[..., Any], name: str) -> PackedFunction:
        """A function for workers; one clear error if it cannot be sent."""
        return pack(function, f"the function {name}", lambda what: self._packed(what, name))

    def _packed(self, function: Callable[..., Any], name: str) -> PackedFunction:
        stream = _Stream(to_file=len(self._files) < MOST_FILES)
        buffers: list[memoryview] = []

        def in_stream(buffer: pickle.PickleBuffer) -> bool:
            raw = buffer.raw()
            if raw.nbytes >= LARGE_BYTES:
                buffers.append(raw)
            return raw.nbytes < LARGE_BYTES

        pickler_by_value(stream, in_stream).dump(function)
        key = stream.key(buffers)
        found = self._present.get(key) or self._written(key, name, stream, buffers)
        self._present[found.key] = found
        self._recent.put(found.key, found, large=found.content.large)
        return found

    def _written(self, key: bytes, name: str, stream: _Stream, buffers: list[memoryview]) -> PackedFunction:
        if not stream.to_file or not (stream.file or buffers):
            return PackedFunction(key, name, InMessage(bytes(stream.memory), tuple(map(bytes, buffers))))
        file = stream.moved_to_file()
        parts = [(0, file.size)]

        def written() -> Iterator[bytes]:
            for buffer in buffers:
                start = file.align()
                for chunk in _chunks(buffer):
                    file.write(chunk)
                    yield chunk
                parts.append((start, file.size))

        # Another thread may have changed an array since it was read: the key is that of what is written.
        key = stream.key_with(written())
        self._files.add(file)
        return PackedFunction(key, name, InFile(file.path, tuple(parts)), file)


class _Stream:
    """What a pickle is written to: memory while it is small, then a file, if there may be one."""

    def __init__(self, *, to_file: bool) -> None:
        self.to_file = to_file
        self.memory = bytearray()
        self.file: MemoryFile | None = None
        from hashlib import blake2b  # noqa: PLC0415 - workers have no use for it

        self._digest = blake2b(digest_size=16)

    def write(self, data: Any) -> None:
        view = pickle.PickleBuffer(data).raw()
        for chunk in _chunks(view):
            _note(self._digest, chunk)
        if self.to_file and len(self.memory) + view.nbytes > LARGE_BYTES:
            self.moved_to_file()
        if self.file is None:
            self.memory += view
        else:
            self.file.write(view)

    def moved_to_file(self) -> MemoryFile:
        if self.file is None:
            self.file = MemoryFile()
            self.file.write(self.memory)
            self.memory = bytearray()
        return self.file

    def key(self, buffers: list[memoryview]) -> bytes:
        """The digest of the pickle and of the arrays beside it."""
        return self.key_with(chunk for buffer in buffers for chunk in _chunks(buffer))

    def key_with(self, chunks: Iterator[bytes]) -> bytes:
        digest = self._digest.copy()
        for chunk in chunks:
            _note(digest, chunk)
        return digest.digest()


def _chunks(view: memoryview) -> Iterator[bytes]:
    """The content in pieces that stay in a core's cache."""
    return (bytes(view[start : start + CHUNK_BYTES]) for start in range(0, view.nbytes, CHUNK_BYTES))


def _note(digest: blake2b, chunk: bytes) -> None:
    """Add a piece of content; of a large one its hash in 64 bits, which is four times as fast."""
    digest.update(chunk if len(chunk) < CHUNK_BYTES else HASH.pack(hash(chunk)))
