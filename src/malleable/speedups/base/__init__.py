"""What a speedup family is built on: its file imports from here, and NumPy."""

from typing import Annotated

from annotated_types import Ge, Lt

from malleable.catalog.spec import INFINITY as INFINITY
from malleable.catalog.spec import NonNegative as NonNegative
from malleable.catalog.spec import OpenFraction as OpenFraction
from malleable.catalog.spec import Positive as Positive
from malleable.catalog.spec import Probability as Probability
from malleable.contracts import Speedup as Speedup
from malleable.speedups.base.numeric import NumericSpeedup as NumericSpeedup

Width = Annotated[float, Ge(1), Lt(INFINITY)]
"""A number of cores of at least one."""
