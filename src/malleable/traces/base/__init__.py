"""What the formats of logs share: the trace, the contract, tables, times and the reading of files."""

from malleable.traces.base.columns import Columns as Columns
from malleable.traces.base.reading import find_format as find_format
from malleable.traces.base.reading import read_trace as read_trace
from malleable.traces.base.source import Source as Source
from malleable.traces.base.source import open_source as open_source
from malleable.traces.base.trace import Dropped as Dropped
from malleable.traces.base.trace import Labels as Labels
from malleable.traces.base.trace import Trace as Trace
from malleable.traces.base.trace_format import TraceFormat as TraceFormat
