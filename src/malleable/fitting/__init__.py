"""Speedups and sizes from measurements, offline and online."""

from malleable.fitting.fit import Fit as Fit
from malleable.fitting.fit import Point as Point
from malleable.fitting.fit import fit_speedup as fit_speedup
from malleable.fitting.learner import Learner as Learner
from malleable.fitting.measurements import Measurements as Measurements
from malleable.fitting.measuring import Measured as Measured
from malleable.fitting.measuring import measure as measure
from malleable.fitting.reading import as_measurements as as_measurements
from malleable.fitting.reading import parse_measurements as parse_measurements
from malleable.fitting.reading import read_measurements as read_measurements
from malleable.fitting.sizes import SizeFit as SizeFit
from malleable.fitting.sizes import fit_sizes as fit_sizes
