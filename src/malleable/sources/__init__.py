"""Where jobs come from: drawn from the laws of a workload, or given as arrays.

A `Source` is a description, small enough to send to a worker; its `stream` hands out the jobs in chunks.
"""

from malleable.sources.drawn import Drawn, stream
from malleable.sources.given import ArrayStream, Given
from malleable.sources.streams import Chunk, Source, Stream

__all__ = ["ArrayStream", "Chunk", "Drawn", "Given", "Source", "Stream", "stream"]
