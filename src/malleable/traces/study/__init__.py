"""Studies of logs: what is assumed of their jobs, and the jobs that follow from it."""

from malleable.traces.study.malleabilise import malleabilise as malleabilise
from malleable.traces.study.study import Study as Study
from malleable.traces.study.study import read_study as read_study
