"""Simulate a policy, or compare several on the same jobs.

Replications and sweeps are spread over processes (or any `concurrent.futures.Executor`); a task is its
settings and seed, so results do not depend on the spreading.
"""

from malleable.policies.base.asking import simulated
from malleable.simulation.compare import compare as compare
from malleable.simulation.run_task import run_task as run_task
from malleable.simulation.settings import DEFAULT_JOBS as DEFAULT_JOBS
from malleable.simulation.settings import Settings as Settings
from malleable.simulation.settings import default_jobs as default_jobs
from malleable.simulation.simulate import simulate as simulate
from malleable.simulation.simulate import simulate_apart as simulate_apart
from malleable.simulation.sweep import Swept as Swept
from malleable.simulation.sweep import sweep as sweep
from malleable.simulation.task import Task as Task

program = simulated
"""What is run for a policy: `program(policy, workload, cores)`."""
