"""What a speedup family is built on: its file imports from here, and NumPy.

- `Speedup`, and `NumericSpeedup` for a family that gives only `speed`.
- `Formulas` with `ROW` and `PriceForm`: what the engine compiles; `Fit`: how a family is fitted.
- Ranges for the parameters.
"""

from typing import Annotated

from annotated_types import Ge, Lt

from malleable.catalog.spec import INFINITY as INFINITY
from malleable.catalog.spec import NonNegative as NonNegative
from malleable.catalog.spec import OpenFraction as OpenFraction
from malleable.catalog.spec import Positive as Positive
from malleable.catalog.spec import Probability as Probability
from malleable.contracts import Speedup as Speedup
from malleable.speedups.base.family import ALONG as ALONG
from malleable.speedups.base.family import ROW as ROW
from malleable.speedups.base.family import Fit as Fit
from malleable.speedups.base.family import Formulas as Formulas
from malleable.speedups.base.family import PriceForm as PriceForm
from malleable.speedups.base.family import bounded_power as bounded_power
from malleable.speedups.base.family import width_between as width_between
from malleable.speedups.base.numeric import NumericSpeedup as NumericSpeedup

Width = Annotated[float, Ge(1), Lt(INFINITY)]
"""A number of cores of at least one."""
