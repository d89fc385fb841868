"""What a policy proposes is checked once and in one way: by `allocate`, its command and the simulator."""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from malleable import Jobs, allocate, catalog, paper_workload, simulate
from malleable.contracts import Allocation, Policy
from malleable.engine.compiling import SlowPolicyWarning
from malleable.engine.enforcement import enforce
from malleable.errors import JobsError, MalleableError, PolicyError, PolicyRaisedError, WorkloadError
from support.examples import examples
from support.shell import malleable

WORKLOAD = paper_workload()
POLICIES = sorted(catalog.kinds("policies"))

FILE = """
from dataclasses import dataclass
import numpy as np
from malleable.contracts import Allocation, Policy

@dataclass(frozen=True)
class Each(Policy):
    times: float = 1.0

    def allocate(self, jobs, cores, *, integer=False):
        return Allocation(np.full(len(jobs), self.times * cores), None)

def short(jobs, cores):
    return [0.5 * cores]
"""
CSV = "id,class,remaining\n" + "".join(f"{j},class-1,1\n" for j in range(5))


def jobs_of(size: int) -> Jobs:
    return Jobs.of(WORKLOAD, [0] * size, [1.0] * size)


@dataclass(frozen=True)
class Asked(Policy):
    """A policy that has only `allocate`, and proposes whatever it was made with."""

    propose: Any
    sharing = True

    def allocate(self, jobs, cores, *, integer=False):  # noqa: ARG002
        return Allocation(self.propose(len(jobs), cores), None)


def asked(propose):
    return Asked(propose)


def returning(propose):
    def mine(jobs, cores):
        return propose(len(jobs), cores)

    mine.sharing = True
    return mine


FORMS = (asked, returning)
KINDS = Asked.kind.replace("_", "-")
"""What a policy of this file is called."""


def complaint(question):
    """The error behind a question, or None where it was answered."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SlowPolicyWarning)
        try:
            question()
        except MalleableError as error:
            return error
    return None


# --- the command line and the library ---------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(FILE)
    (tmp_path / "jobs.csv").write_text(CSV)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("policy", "flags", "words"),
    [
        ("mine.py:Each", [], "more than 32 cores for 5 jobs: cores 32, 32, 32, 32, 32 (160 in all)"),
        ("mine.py:Each:times=0.05", ["--integer"], "parts of cores"),
        ("mine.py:Each:times=-1", [], "negative number of cores"),
        ("mine.py:Each:times=nan", [], "NaN"),
        ("mine.py:short", [], "1 number for 5 jobs"),
    ],
)
def test_the_command_refuses(policy, flags, words):
    """`malleable allocate` gives one line that names the policy and the numbers, and exit status 1."""
    done = malleable("allocate", "paper", "-n", "32", "--jobs", "jobs.csv", "--policy", policy, *flags)
    assert (done.status, done.out) == (1, "")
    line, _hint = done.err.splitlines()
    assert line.startswith(f"error: {policy}: the policy ")
    assert words in line


@pytest.mark.usefixtures("folder")
def test_what_is_legal_passes():
    """Whole shares pass with and without `--integer`, and the numbers are the policy's own."""
    for flags in ([], ["--integer"]):
        policy = "mine.py:Each:times=0.125"
        done = malleable(
            "allocate", "paper", "-n", "32", "--jobs", "jobs.csv", "--policy", policy, *flags, "--json"
        )
        assert [row["cores"] for row in json.loads(done.out)["allocation"]] == [4.0] * 5


def test_a_policy_that_raises_is_blamed():
    """What a user's policy raises inside `allocate` is shown as theirs, as in the simulator."""

    def breaks(_jobs, _cores):
        raise KeyError("mine")

    for question in (
        lambda: allocate("paper", jobs_of(2), 4, breaks),
        lambda: simulate("paper", 4, breaks, load=0.2, jobs=10),
    ):
        error = complaint(question)
        assert isinstance(error, PolicyRaisedError)
        assert "breaks" in error.sentence
        assert "KeyError" in error.trace


@pytest.mark.parametrize("answer", [None, [1.0, 1.0], 3])
def test_no_allocation(answer):
    """A policy whose `allocate` returns anything but an `Allocation` is told what to return."""

    class Bare(Asked):
        def allocate(self, jobs, cores, *, integer=False):  # noqa: ARG002
            return answer

    with pytest.raises(PolicyError, match=r"return Allocation"):
        allocate("paper", jobs_of(2), 4, Bare(None))
    assert "return Allocation" in str(complaint(lambda: simulate("paper", 4, Bare(None), load=0.2, jobs=10)))


def test_jobs_bring_a_workload():
    """With `Jobs` the workload is still looked up, and has to have the same classes."""
    with pytest.raises(WorkloadError, match="nowhere"):
        allocate("nowhere", jobs_of(2), 4)
    other = WORKLOAD.from_dict({**WORKLOAD.to_dict(), "classes": WORKLOAD.to_dict()["classes"][:2]})
    with pytest.raises(JobsError, match="class-3"):
        allocate(other, jobs_of(2), 4)


def test_no_jobs_are_no_question():
    """An idle queue gets an empty answer from any policy, even from one that divides by the jobs."""
    for policy in ("wham", "fw-cam", lambda jobs, cores: np.full(len(jobs), cores / len(jobs))):
        for none in (jobs_of(0), []):
            found = allocate("paper", none, 2, policy)
            assert found.cores.shape == (0,)
            assert found.price is None
    with pytest.raises(MalleableError, match="wam"):
        allocate("paper", [], 2, "wam")


def test_the_first_wrong_number_is_shown():
    """Among many jobs the message shows the number that is wrong, not the first dozen."""
    widths = np.zeros(1000)
    widths[700] = -3.0
    with pytest.raises(PolicyError, match=r"cores …, 0, .*, -3, …"):
        enforce(widths, 1000, 8.0)


def test_rounding_is_not_over_allocation():
    """A total that exceeds n by rounding is legal, one that exceeds it by more is not; whole means whole."""
    assert enforce([2.0, 2.0 + 1e-12], 2, 4.0).sum() > 4.0
    with pytest.raises(PolicyError):
        enforce([2.0, 2.0 + 1e-7], 2, 4.0)
    assert enforce([1.0 - 1e-12, 3.0], 2, 4.0, integer=True).tolist() == [1.0, 3.0]


IDLE = {
    *("easy", "fcfs", "srpt"),
    *("fixed_width", "fw_cam", "fw_cam_repaired"),
    *("knee", "elastic_first", "inelastic_first", "lpf"),
}
"""Policies that leave cores idle by design: docs/how-to/allocate-jobs.md names them."""


@pytest.mark.parametrize("integer", [False, True])
def test_who_leaves_cores_idle(integer):
    """All policies but those that the docs name use every core, as the paper's jobs can use any number."""
    workload = paper_workload(32, 0.25)
    idle = set()
    for classes, remaining in (([0, 1, 2], [1.0, 2.0, 3.0]), ([0], [0.1])):
        present = Jobs.of(workload, classes, remaining)
        for kind in POLICIES:
            used = allocate(workload, present, 32, kind, integer=integer).cores.sum()
            idle |= {kind} if used < 32 - 1e-6 else set()
    assert idle == IDLE


# --- random proposals -------------------------------------------------------------------------------------

FAULTS = {
    "one too few": lambda k, _: k[:-1],
    "one too many": lambda k, _: np.append(k, 0.0),
    "a scalar": lambda k, _: k[0],
    "a column": lambda k, _: k[:, None],
    "a row": lambda k, _: k[None],
    "nothing": lambda *_: None,
    "words": lambda k, _: ["1"] * len(k),
    "ragged": lambda k, _: [[1.0], [1.0, 1.0], *k],
    "complex": lambda k, _: k + 0j,
    "a dictionary": lambda k, _: dict(enumerate(k)),
    "NaN": lambda k, at: _with(k, at, np.nan),
    "infinite": lambda k, at: _with(k, at, np.inf),
    "minus infinite": lambda k, at: _with(k, at, -np.inf),
    "negative": lambda k, at: _with(k, at, -1e-3),
    "too much": lambda k, at: _with(k, at, 9.0),
    "far too much": lambda k, _: np.full(len(k), 1e308),
}


def _with(widths, at, value):
    changed = widths.copy()
    changed[at % len(widths)] = value
    return changed


@st.composite
def proposals(draw):
    """A function of (jobs, cores) that proposes shares, and what is wrong with them ("" if nothing)."""
    weights = draw(st.lists(st.floats(0.01, 1.0), min_size=1, max_size=6))
    part = draw(st.floats(0.1, 1.0))
    fault, at = draw(st.sampled_from(["", *FAULTS])), draw(st.integers(0, 5))
    kind = draw(st.sampled_from([np.asarray, list, tuple]))

    def propose(size, cores):
        shares = np.resize(weights, size)
        widths = part * cores * shares / shares.sum()
        return FAULTS[fault](widths, at) if fault else kind(widths)

    return propose, fault


def same_everywhere(drawn, form, size):
    """`allocate` and `simulate` refuse what is wrong as one kind of error, and nothing else."""
    propose, fault = drawn
    policy, cores = form(propose), 8
    errors = [
        complaint(lambda: allocate("paper", jobs_of(size), cores, policy)),
        complaint(lambda: simulate("paper", cores, policy, load=0.2, jobs=12)),
    ]
    if not fault:
        assert errors == [None, None]
        return
    assert [type(error) for error in errors] == [PolicyError, PolicyError]
    name = KINDS if form is asked else "mine"
    assert all(error.sentence.startswith(f"{name}: the policy ") for error in errors)
    # The same words, but for the place and the numbers.
    assert len({" ".join(error.problem.split()[:3]) for error in errors}) == 1
    assert all("\n" not in error.sentence for error in errors)


@settings(max_examples=examples(24))
@given(proposals(), st.sampled_from(FORMS), st.integers(1, 6))
def test_random_proposals(drawn, form, size):
    same_everywhere(drawn, form, size)


@pytest.mark.slow
@settings(max_examples=3000)
@given(proposals(), st.sampled_from(FORMS), st.integers(1, 20))
def test_very_many_random_proposals(drawn, form, size):
    same_everywhere(drawn, form, size)


@settings(max_examples=examples(24))
@given(proposals(), st.sampled_from(FORMS), st.integers(1, 6))
def test_random_proposals_of_whole_cores(drawn, form, size):
    """With `integer`, what comes through is whole and at most n; parts of cores are refused."""
    propose, fault = drawn
    try:
        found = allocate("paper", jobs_of(size), 8, form(propose), integer=True).cores
    except PolicyError:
        return
    assert not fault
    assert (found == np.floor(found)).all()
    assert found.sum() <= 8
    if form is asked:
        assert np.allclose(found, propose(size, 8), atol=1e-8)


@dataclass(frozen=True)
class Register(Policy):
    """Equal shares; notes which job was seen under which name."""

    seen: Any

    def allocate(self, jobs, cores, *, integer=False):  # noqa: ARG002
        assert len(set(jobs.ids)) == len(jobs)
        for name, size, age in zip(jobs.ids, jobs.size, jobs.age, strict=True):
            self.seen.setdefault(name, []).append((size, age))
        return Allocation(np.full(len(jobs), max(1.0, cores // len(jobs))), None)


@pytest.mark.filterwarnings("ignore::malleable.engine.compiling.SlowPolicyWarning")
def test_jobs_have_names_in_simulations():
    """`jobs.ids` names each job present, by a number in order of arrival that it keeps for life."""
    policy = Register({})
    simulate("paper", 64, policy, load=0.1, jobs=300)
    assert sorted(policy.seen, key=int) == [str(number) for number in range(300)]
    for visits in policy.seen.values():
        assert len({size for size, _ in visits}) == 1
        assert [age for _, age in visits] == sorted(age for _, age in visits)
    assert max(map(len, policy.seen.values())) > 5
