"""What outlives the broker: the programs that were submitted, and what has become of them."""

from malleable.live.broker.state.request import ProgramRequest
from malleable.live.broker.state.schema import StoreError
from malleable.live.broker.state.store import Store, StoredJob

__all__ = ["ProgramRequest", "Store", "StoreError", "StoredJob"]
