"""Job types, job classes, workloads and the jobs present: frozen, validated, readable from files."""

from malleable.model.job_class import JobClass as JobClass
from malleable.model.job_type import JobType as JobType
from malleable.model.reading import builtin_workloads as builtin_workloads
from malleable.model.reading import load_workload as load_workload
from malleable.model.reading import paper_workload as paper_workload
from malleable.model.reading import parse_workload as parse_workload
from malleable.model.reading import read_workload as read_workload
from malleable.model.reading import workload_listing as workload_listing
from malleable.model.workload import ConditionWarning as ConditionWarning
from malleable.model.workload import Workload as Workload
from malleable.model.workload import checked_cores as checked_cores
