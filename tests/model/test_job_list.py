"""Given jobs: what is refused, and what a job weighs."""

import numpy as np
import pytest

from malleable.errors import JobsError
from malleable.model import paper_workload
from malleable.model.job_list import JobList


def test_a_job_weighs_what_its_class_says_unless_it_brings_a_weight():
    """Without weights, the weight of a job is the holding cost of its class."""
    workload = paper_workload()
    costs = [one.holding_cost for one in workload.classes]
    assert JobList(workload, [0.0, 1.0], [2, 0], [1.0, 2.0]).weight.tolist() == [costs[2], costs[0]]
    assert JobList(workload, [0.0, 1.0], [2, 0], [1.0, 2.0], [3.0, 4.0]).weight.tolist() == [3.0, 4.0]


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        (([1.0, 0.0], [0, 0], [1.0, 1.0]), "order of arrival"),
        (([0.0], [0], [0.0]), "size"),
        (([0.0], [7], [1.0]), "class"),
        (([0.0], [0], [1.0, 2.0]), "2 sizes"),
        (([0.0], [0], [1.0], [-1.0]), "weight"),
    ],
)
def test_what_cannot_be_a_job_is_refused(columns, said):
    """Unsorted times, sizes and weights that are not positive, unknown classes and short columns."""
    with pytest.raises(JobsError, match=said):
        JobList(paper_workload(), *columns)


def test_what_the_log_says_is_kept_and_checked():
    """Missing entries are NaN; a job on less than one core and a negative wait are refused."""
    jobs = JobList(paper_workload(), [0.0, 1.0], [0, 1], [1.0, 2.0], cores=[4, 1], waits=[np.nan, 2])
    assert jobs.cores.tolist() == [4.0, 1.0]
    assert jobs.waits[1] == 2.0
    for wrong in ({"cores": [0.5, 1.0]}, {"waits": [-1.0, 0.0]}, {"estimates": [1.0]}):
        with pytest.raises(JobsError):
            JobList(paper_workload(), [0.0, 1.0], [0, 1], [1.0, 2.0], **wrong)
