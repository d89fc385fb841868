"""`Result`, the hub: simulation, replay and live runs all end in one, and every report starts from one."""

from malleable.results.class_result import ClassResult as ClassResult
from malleable.results.comparison import Comparison as Comparison
from malleable.results.comparison import Difference as Difference
from malleable.results.errors import ResultError as ResultError
from malleable.results.result import Result as Result
from malleable.results.result import Status as Status
from malleable.results.summary import merge as merge
from malleable.results.summary import summarise as summarise
