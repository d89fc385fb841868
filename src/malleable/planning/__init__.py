"""Plans and explanations: how many cores, for whom, and what is one more worth."""

from malleable.planning.changes import Changes as Changes
from malleable.planning.explain import ExplainedJob as ExplainedJob
from malleable.planning.explain import Explanation as Explanation
from malleable.planning.explain import WhatIf as WhatIf
from malleable.planning.explain import explain as explain
from malleable.planning.explain import read_arrival as read_arrival
from malleable.planning.log_plan import is_log as is_log
from malleable.planning.log_plan import plan_log as plan_log
from malleable.planning.plan import Plan as Plan
from malleable.planning.plan import Point as Point
from malleable.planning.workload_plan import plan as plan
from malleable.planning.workload_plan import refuse_for_workloads as refuse_for_workloads
