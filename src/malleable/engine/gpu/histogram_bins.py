"""The bins of histograms, as the CPU engine has them."""

from __future__ import annotations

import math

from malleable.engine.rule_interface import BIN_BITS, BIN_LOWEST, BINS

LOWEST = 2.0**BIN_LOWEST
PER_OCTAVE = float(1 << BIN_BITS)


def histogram_bin(x: float) -> int:
    """The bin of a positive number: exponent and leading bits of the mantissa, as the CPU engine has it."""
    if not x >= LOWEST:
        return 0
    mantissa, exponent = math.frexp(x)
    octave = exponent - 1 - BIN_LOWEST
    return min((octave << BIN_BITS) + int((2.0 * mantissa - 1.0) * PER_OCTAVE), BINS - 1)
