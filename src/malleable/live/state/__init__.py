"""What outlives the broker: the programs that were submitted, and what has become of them."""

from malleable.live.state.request import ProgramRequest
from malleable.live.state.schema import StoreError
from malleable.live.state.store import Store, StoredJob

__all__ = ["ProgramRequest", "Store", "StoreError", "StoredJob"]
