"""What a log looks like: its load, widths, laws, cycles and users; and a stochastic workload like it."""

from malleable.traces.describing.fitted import FittedWorkload as FittedWorkload
from malleable.traces.describing.fitted import fit_workload as fit_workload
from malleable.traces.describing.plain_log import plain_text as plain_text
from malleable.traces.describing.plain_log import trace_of_stays as trace_of_stays
from malleable.traces.describing.summary import TraceSummary as TraceSummary
from malleable.traces.describing.summary import describe as describe
