"""Any program, held to a width from outside: by CPU affinity and by pauses. Linux only."""

from malleable.live.programs.program import Program
from malleable.live.programs.progress import Progress, parse_build_progress

__all__ = ["Program", "Progress", "parse_build_progress"]
