"""What a policy is built on: a policy's file imports from here, and NumPy.

- `Policy`, and its answer: a `Program` for a `Need`, with what its rule sees (`JOBS`, `COUNTS`) and the
  disciplines; `JobRule`, a policy given by a rule on single jobs; `Allocation`, an answer for one moment;
  `not_a_class_rule`, an error. `ClassProgram` and `JobProgram` make programs of either kind.
- The columns of the job array that a rule sees.
- `encode`, `speed` and `table_of`: speedups as numbers in a rule's table; `demand` and `work_demand`: the
  cores that a job wants at a price; `clearing`: the search for the price at which that is all cores.
- Orders of jobs, and where rounding ends.
- Ranges for the options of a policy.
"""

from malleable.catalog.spec import Count as Count
from malleable.catalog.spec import NonNegative as NonNegative
from malleable.catalog.spec import OpenFraction as OpenFraction
from malleable.catalog.spec import Positive as Positive
from malleable.catalog.spec import Probability as Probability
from malleable.contracts import ANY as ANY
from malleable.contracts import Allocation as Allocation
from malleable.contracts import Need as Need
from malleable.contracts import Policy as Policy
from malleable.contracts import not_a_class_rule as not_a_class_rule
from malleable.engine.rule_interface import AGE as AGE
from malleable.engine.rule_interface import CLASS as CLASS
from malleable.engine.rule_interface import COUNTS as COUNTS
from malleable.engine.rule_interface import FIFO as FIFO
from malleable.engine.rule_interface import HELD as HELD
from malleable.engine.rule_interface import IDENTITY as IDENTITY
from malleable.engine.rule_interface import INDEX as INDEX
from malleable.engine.rule_interface import JOBS as JOBS
from malleable.engine.rule_interface import POOLS as POOLS
from malleable.engine.rule_interface import REMAINING as REMAINING
from malleable.engine.rule_interface import RESTARTS as RESTARTS
from malleable.engine.rule_interface import SHARE as SHARE
from malleable.engine.rule_interface import SIZE as SIZE
from malleable.engine.rule_interface import WEIGHT as WEIGHT
from malleable.engine.rule_interface import ClassProgram as ClassProgram
from malleable.engine.rule_interface import JobProgram as JobProgram
from malleable.engine.rule_interface import Moment as Moment
from malleable.engine.rule_interface import Program as Program
from malleable.engine.speedup_table import demand as demand
from malleable.engine.speedup_table import encode as encode
from malleable.engine.speedup_table import most_efficient as most_efficient
from malleable.engine.speedup_table import peak as peak
from malleable.engine.speedup_table import speed as speed
from malleable.engine.speedup_table import work_demand as work_demand
from malleable.model.memoization import memoized as memoized
from malleable.policies.base.asking import a_class_each as a_class_each
from malleable.policies.base.asking import job_rows as job_rows
from malleable.policies.base.asking import usable as usable
from malleable.policies.base.job_rule import JobRule as JobRule
from malleable.policies.base.job_rule import table_of as table_of
from malleable.policies.rules.ordering import ascending as ascending
from malleable.policies.rules.ordering import by_remaining as by_remaining
from malleable.policies.rules.ordering import one_core_each as one_core_each
from malleable.policies.rules.price_search import clearing as clearing
from malleable.policies.rules.tolerances import DUST as DUST
from malleable.policies.rules.tolerances import TIGHT as TIGHT
from malleable.policies.rules.tolerances import TINY as TINY
