"""From records to numbers: warm-up, length, estimates with intervals, differences, percentiles, stability.

Everything here is made from `Records` and the `Workload` alone, so simulation, replay and live runs share
it. One idea per module; the names below are what the rest of the library uses.
"""

from malleable.statistics.estimates import Estimates as Estimates
from malleable.statistics.estimates import Regression as Regression
from malleable.statistics.estimates import checked_confidence as checked_confidence
from malleable.statistics.estimates import difference as difference
from malleable.statistics.estimates import estimate as estimate
from malleable.statistics.estimates import shared_regression as shared_regression
from malleable.statistics.intervals import Controls as Controls
from malleable.statistics.intervals import Estimate as Estimate
from malleable.statistics.intervals import reached as reached
from malleable.statistics.percentiles import Percentiles as Percentiles
from malleable.statistics.percentiles import percentiles as percentiles
from malleable.statistics.run_length import Length as Length
from malleable.statistics.run_length import length as length
from malleable.statistics.stability import Stability as Stability
from malleable.statistics.stability import stability as stability
from malleable.statistics.time_averages import Totals as Totals
from malleable.statistics.time_averages import totals as totals
from malleable.statistics.warmup import Warmup as Warmup
from malleable.statistics.warmup import find_warmup as find_warmup
