"""FW-CAM repaired for small n: at least one slot per class, and slots as wide as its cores allow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from malleable.policies.fw_cam import FwCam


@dataclass(frozen=True)
class FwCamRepaired(FwCam):
    """FW-CAM without idle leftovers: at least one slot per class, slots widened; 0.5 < beta < 1."""

    needs = "speedups, rates, mean sizes"

    repaired: ClassVar[bool] = True
