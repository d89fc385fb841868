"""Job types: what live jobs and traces need of a class, without a law of arrivals."""

from __future__ import annotations

import pickle
from dataclasses import fields, replace

import pytest

from malleable import JobClass, paper_workload
from malleable.errors import ParameterError
from malleable.model import JobType, Workload

AMDAHL = {"kind": "amdahl", "sequential": 0.1}


def test_a_class_knows_its_type():
    """The type of a class has its name, its speedup and its holding cost; two classes may share one."""
    poisson, size = {"kind": "poisson", "rate": 2.0}, {"kind": "exponential", "mean": 1.0}
    one = JobClass("a", poisson, size, AMDAHL, 3.0)
    other = JobClass("a", {"kind": "poisson", "rate": 5.0}, size, AMDAHL, 3.0)
    assert one != other
    assert one.job_type == other.job_type == JobType("a", AMDAHL, 3.0)
    assert hash(one.job_type) == hash(other.job_type)


def test_types_of_a_workload():
    """A workload lists the types of its classes, in order; scaling the arrivals leaves them as they are."""
    workload = paper_workload()
    assert [t.name for t in workload.job_types] == list(workload.class_names)
    assert [t.weight for t in workload.job_types] == workload.holding_costs.tolist()
    assert tuple(t.speedup for t in workload.job_types) == workload.speedups
    assert workload.at(64, 0.5).job_types == workload.job_types


def test_a_type_survives_documents_and_pickle():
    made = JobType("a", AMDAHL, 2.0)
    assert JobType.from_parameters(made.parameters()) == made
    assert pickle.loads(pickle.dumps(made)) == made


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ({"name": "", "speedup": AMDAHL}, "name: must not be empty"),
        ({"name": "a", "speedup": AMDAHL, "weight": 0.0}, "weight: must be greater than 0"),
        ({"name": "a"}, "missing key 'speedup'"),
        ({"name": "a", "speedup": AMDAHL, "arrivals": {}}, "a job type has no key 'arrivals'"),
    ],
)
def test_bad_types(keys, problem):
    """A type without name, weight or speedup is refused, and so is one with arrivals."""
    with pytest.raises(ParameterError) as caught:
        JobType.from_parameters(keys)
    assert problem in caught.value.sentence


def test_errors_speak_of_a_class():
    """A mistake in a workload file is said of a class, which is what the file calls it."""
    with pytest.raises(ParameterError, match="a class has no key 'speeedup'"):
        JobClass.from_parameters({"name": "a", "speeedup": AMDAHL})


def test_a_class_is_limited_by_the_keys_of_its_type():
    """What a class and its type have in common has the same kinds of values and the same defaults."""
    ours, theirs = ({field.name: field for field in fields(kind)} for kind in (JobClass, JobType))
    shared = ours.keys() & theirs.keys()
    assert shared == theirs.keys() - {"weight"}
    for name in shared:
        assert (ours[name].type, ours[name].default) == (theirs[name].type, theirs[name].default), name


def test_a_class_of_another_type_is_as_if_checked():
    """What is made without checks, because its parts were checked, is the same value as what is checked."""
    workload = paper_workload()
    other = JobType("b", AMDAHL, 2.0, "moldable", widths="whole", quiet=1.0)
    for one in workload.classes:
        made = one.of_type(other, "b")
        checked = replace(
            one, name="b", speedup=other.speedup, shape=other.shape, width=other.width, widths=other.widths,
            resize=other.resize, quiet=other.quiet,
        )  # fmt: skip
        assert made == checked
        assert hash(made) == hash(checked)
    known = Workload.of_known(workload.name, workload.classes)
    assert known == workload
    assert hash(known) == hash(workload)
    assert known.class_names == workload.class_names
