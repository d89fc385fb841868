"""Logs of jobs: formats (one per file), what a log says, and how it becomes jobs that can be resized."""

from malleable.traces.base import Dropped as Dropped
from malleable.traces.base import Labels as Labels
from malleable.traces.base import Trace as Trace
from malleable.traces.base import TraceFormat as TraceFormat
from malleable.traces.base import read_trace as read_trace
from malleable.traces.study import Study as Study
from malleable.traces.study import malleabilise as malleabilise
from malleable.traces.study import read_study as read_study
