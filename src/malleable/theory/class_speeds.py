"""A policy as a function of the class counts: the speeds that the exact chain of `theory.markov_chain` needs.

While jobs do not outnumber cores, WHAM, WHAM on whole cores, EQUI and GREEDY look at class counts alone.
Beyond that they look at more, which a chain on class counts cannot know. There we take

- EQUI as it is: n/N of a core for every job;
- WHAM without its knowledge of sizes: one core each by c_i/E[X_i] and not by c/x. With exponential sizes that
  is what a scheduler can know, as the expected remaining size stays E[X_i] (the *size-blind* WHAM);
- GREEDY with all jobs tied (w = 1) sharing the cores in time, for its order of arrival is not in the counts;
- WHAM-IMPROVED as it is: its rule is asked whatever the counts.

On whole cores the jobs of a class may have different widths; with exponential sizes only their total speed
matters, and every job is given the average. With other sizes that is an approximation.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from malleable import catalog
from malleable.engine import rule_interface
from malleable.engine.rule_interface import COUNTS, FIFO, INDEX, SHARE, Program
from malleable.errors import UnsupportedError
from malleable.model import checked_cores
from malleable.theory.any_width import check_any_width

if TYPE_CHECKING:
    from collections.abc import Callable

    from malleable.contracts import FloatArray, Policy
    from malleable.model import Workload
    from malleable.model.jobs import IntArray


def class_speeds(
    policy: Policy, workload: Workload, cores: float, *, time_shared: bool = False
) -> Callable[[FloatArray], FloatArray]:
    """The speed of a job of each class at given class counts (vectors × classes), as `exact.solve` asks.

    With `time_shared`, all jobs share the cores evenly where they outnumber them under any class rule, so
    that chains of different rules differ only in what the rules do while cores suffice.
    """
    check_any_width(workload, "chain of counts")
    buyers = policy.buyers(workload)  # refuses what is not a rule on class counts
    cores = checked_cores(cores)
    program = policy.program(workload, cores)
    if program is not None and program.sees == COUNTS and program.discipline in {SHARE, INDEX, FIFO}:
        if program.discipline == SHARE and not time_shared:
            return partial(_asked_always, program, workload, cores)
        ordered = program.discipline == INDEX and not time_shared
        return partial(_by_rule, program, workload, cores, ordered)
    name = catalog.display("policies", policy.kind)
    if program is not None and program.sees == COUNTS:
        raise UnsupportedError(f"{name} keeps a queue for each class", "use theory.fw_cam for its cost")
    if program is None or program.period or buyers is None:
        raise UnsupportedError(f"{name} has no rule on class counts", "simulate it")
    return partial(_by_job, program, workload, cores)


def _by_rule(
    program: Program, workload: Workload, cores: float, ordered: bool, counts: FloatArray
) -> FloatArray:
    totals = counts.sum(axis=1)
    shared = cores / np.maximum(totals, 1.0)[:, None] * np.ones_like(counts)
    crowded = totals >= cores
    widths = _in_order(workload, cores, counts) if ordered else shared
    for row in np.flatnonzero((totals > 0.0) & ~crowded):
        program.rule(counts[row], cores, program.table, widths[row])
    speeds = np.column_stack([s(k) for s, k in zip(workload.speedups, widths.T, strict=True)])
    return np.where(crowded[:, None], widths, speeds)


def _asked_always(program: Program, workload: Workload, cores: float, counts: FloatArray) -> FloatArray:
    """Speeds under a rule that divides the cores among any number of jobs."""
    widths, table = np.zeros_like(counts), program.table.copy()
    for row in np.flatnonzero(counts.sum(axis=1) > 0.0):
        program.rule(counts[row], cores, table, widths[row])
    return np.column_stack([s(k) for s, k in zip(workload.speedups, widths.T, strict=True)])


def _in_order(workload: Workload, cores: float, counts: FloatArray) -> FloatArray:
    """The share of each class's jobs that have a core when classes are served by c_i/E[X_i]."""
    order = np.argsort(-workload.holding_costs / workload.mean_sizes, kind="stable")
    waiting = counts[:, order]
    before = np.cumsum(waiting, axis=1) - waiting
    served = np.clip(cores - before, 0.0, waiting)
    share = np.empty_like(counts)
    share[:, order] = np.divide(served, waiting, out=np.zeros_like(served), where=waiting > 0.0)
    return share


def _by_job(program: Program, workload: Workload, cores: float, counts: FloatArray) -> FloatArray:
    """Ask the rule about jobs that are all of mean size; of a class, n jobs are all that can matter."""
    usable = np.minimum(counts, np.floor(cores)).astype(np.intp)
    vectors, which = np.unique(usable, axis=0, return_inverse=True)
    totals = np.zeros(vectors.shape)
    for row, vector in enumerate(vectors):
        index = np.repeat(np.arange(len(vector)), vector)
        totals[row] = _asked(program, workload, cores, index)
        if not np.allclose(totals[row], _asked(program, workload, cores, index[::-1])):
            raise UnsupportedError(
                f"at class counts {vector} the order of arrival decides between classes", "simulate it"
            )
    return np.asarray(totals[which.ravel()] / np.maximum(counts, 1.0))


def _asked(program: Program, workload: Workload, cores: float, index: IntArray) -> FloatArray:
    """The total speed of each class when jobs of these classes arrived in this order."""
    jobs = _jobs(workload, index)
    given = np.zeros(len(jobs))
    program.rule(jobs, cores, program.table, given)
    return np.array([s(given[index == i]).sum() for i, s in enumerate(workload.speedups)])


def _jobs(workload: Workload, index: IntArray) -> FloatArray:
    """Jobs of mean size as a job rule sees them, the earliest first."""
    jobs = np.zeros((len(index), rule_interface.COLUMNS))
    jobs[:, rule_interface.AGE] = len(index) - np.arange(len(index))
    jobs[:, rule_interface.CLASS], jobs[:, rule_interface.IDENTITY] = index, np.arange(len(index))
    jobs[:, rule_interface.REMAINING] = jobs[:, rule_interface.SIZE] = workload.mean_sizes[index]
    jobs[:, rule_interface.WEIGHT] = workload.holding_costs[index]
    return jobs
