"""numba's CUDA module and settings, which come without types and differ between numba and numba-cuda."""

from __future__ import annotations

from typing import Any

import numba
import numba.cuda

cuda: Any = numba.cuda
config: Any = numba.config
