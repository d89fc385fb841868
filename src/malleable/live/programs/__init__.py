"""Any program, held to a width from outside: by CPU affinity, by a cgroup, and by pauses. Linux only."""

from malleable.live.programs.program import Program

__all__ = ["Program"]
