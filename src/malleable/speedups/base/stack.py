"""Many speedups of different families, evaluated together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from malleable.contracts import FloatArray, Speedup


class Stack:
    """Speedups j = 0, 1, … as arrays: one vectorised call a family, whatever the number of jobs.

    Arguments may have further axes before that of the members; a price then ends in an axis of length 1.
    """

    def __init__(self, speedups: Sequence[Speedup]) -> None:
        self.members = tuple(speedups)
        self.size = len(self.members)
        families: dict[Any, list[int]] = {}
        for position, speedup in enumerate(self.members):
            families.setdefault(type(speedup) if speedup.vectorised else position, []).append(position)
        self._parts = [
            (np.array(where), type(self.members[where[0]]).stack([self.members[j] for j in where]))
            if self.members[where[0]].vectorised
            else (np.array(where), self.members[where[0]])
            for where in families.values()
        ]
        self.peak = self._constants("peak")
        self.most_efficient = self._constants("most_efficient")
        self.concave = np.array([s.concave for s in self.members], dtype=bool)

    def _constants(self, name: str) -> FloatArray:
        out = np.empty(self.size)
        for where, part in self._parts:
            out[where] = getattr(part, name)
        return out

    def _gather(self, method: str, *arguments: FloatArray | float) -> FloatArray:
        out = np.empty(np.broadcast_shapes((self.size,), *map(np.shape, arguments)))
        for where, part in self._parts:
            out[..., where] = getattr(part, method)(*(self._pick(a, where) for a in arguments))
        return out

    def _pick(self, argument: FloatArray | float, where: Any) -> FloatArray | float:
        """What some members are given: their entries, or what is the same for all."""
        shared = not isinstance(argument, np.ndarray) or argument.shape[-1] != self.size
        return argument if shared else argument[..., where]  # type: ignore[index]

    def __call__(self, cores: FloatArray) -> FloatArray:
        """s_j(k_j)."""
        return self._gather("__call__", cores)

    def demand(self, price: FloatArray | float, weights: FloatArray) -> FloatArray:
        """argmin over k ≥ 1 of (c_j + l·k)/s_j(k)."""
        return self._gather("demand", price, weights)

    def work_demand(self, price: FloatArray | float, weights: FloatArray) -> FloatArray:
        """argmax over k of w_j·s_j(k) − l·k, at or above the most efficient width."""
        return self._gather("work_demand", price, weights)

    def derivatives(self, cores: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """s_j and its first three derivatives at k_j."""
        out = np.empty((4, *cores.shape))
        for where, part in self._parts:
            out[..., where] = part.derivatives(cores[..., where])
        return out[0], out[1], out[2], out[3]
