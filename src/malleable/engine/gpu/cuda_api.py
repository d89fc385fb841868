"""numba's CUDA module and settings, which come without types and differ between numba and numba-cuda."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numba
import numba.cuda
import numpy as np

cuda: Any = numba.cuda
config: Any = numba.config

DROPPED = "row_stack"
"""NumPy 2.5 dropped this alias of `vstack`, which one module of numba-cuda up to 0.30 asks for."""


def _import_with_alias() -> None:
    """Import that module while there is the alias; nobody else sees it."""
    if hasattr(np, DROPPED) or find_spec("numba.cuda.np") is None:
        return
    setattr(np, DROPPED, np.vstack)
    try:
        import numba.cuda.np.arrayobj  # noqa: PLC0415, F401 - only where it is needed
    finally:
        delattr(np, DROPPED)


_import_with_alias()
