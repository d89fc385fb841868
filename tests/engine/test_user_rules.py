"""Rules that users write: compiled from what they say now, kept from memory that is not theirs, stoppable."""

from __future__ import annotations

import importlib
import signal
import subprocess
import sys
import textwrap
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from malleable import simulate
from malleable.catalog import load_object
from malleable.catalog.code_digest import UnknownContentError, code_digest
from malleable.engine.compiling import JOB_RULE, compiled
from malleable.engine.rule_interface import POOLS, ClassProgram, JobProgram
from malleable.engine.run import departures
from malleable.errors import PolicyError, PolicyRaisedError
from malleable.model import JobClass, Workload, paper_workload
from malleable.sources import Drawn
from support.shell import environment, malleable, shell

JOBS = 600
CURVE = {"kind": "power", "exponent": 0.5}
SHARE = """
    for j in range(len(out)):
        out[j] = {share} * cores / len(out)
"""


def cost(rule, **options):
    return simulate("paper", 8, rule, load=0.25, jobs=JOBS, **options).cost.mean


def written(folder, name, text):
    path = folder / name
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    return path


def rule_text(head, share):
    return f"{head}\n\ndef rule(jobs, cores, table, out):{SHARE.format(share=share)}\n\nrule.sharing = True\n"


class TestFreshCode:
    """The machine code is that of the rule as it is now, wherever its parts live."""

    @pytest.mark.parametrize("value", ["1.0", "0.5"])
    def test_a_global_from_the_environment(self, tmp_path, monkeypatch, value):
        """A module global read from the environment counts with its value of this run."""
        path = written(tmp_path, "mine.py", rule_text('import os\nK = float(os.environ["K"])', "K"))
        monkeypatch.setenv("K", value)
        rule = load_object(f"{path}:rule")
        assert cost(rule) == cost(rule, interpreted=True)

    def test_a_global_that_changes_within_the_process(self, tmp_path):
        """Setting a global of the rule's module changes what the rule does, compiled too."""
        rule = load_object(f"{written(tmp_path, 'mine.py', rule_text('K = 1.0', 'K'))}:rule")
        before = cost(rule)
        rule.__globals__["K"] = 0.5
        assert cost(rule) == cost(rule, interpreted=True) > before

    @pytest.mark.parametrize(
        ("head", "share"),
        [
            ("from {name} import factor", "factor()"),
            ("from {name} import K", "K"),
            ("import {name} as module", "module.K"),
        ],
        ids=["helper", "constant", "attribute"],
    )
    def test_an_imported_file_that_was_edited(self, tmp_path, monkeypatch, head, share):
        """After editing a helper or a constant in an imported file the rule is compiled anew."""
        monkeypatch.syspath_prepend(str(tmp_path))
        # Names of their own, since Python keeps modules by name.
        name = f"helpers_{abs(hash(head))}"
        found = []
        for value in ("1.0", "0.5"):
            written(tmp_path, f"{name}.py", f"K = {value}\n\ndef factor():\n    return 1.0 * {value}\n")
            sys.modules.pop(name, None)
            importlib.invalidate_caches()
            monkeypatch.setattr(sys, "dont_write_bytecode", True)
            rule = load_object(
                f"{written(tmp_path, 'mine.py', rule_text(head.format(name=name), share))}:rule"
            )
            found.append((cost(rule), cost(rule, interpreted=True)))
        (first, plain_first), (second, plain_second) = found
        assert first == plain_first
        assert second == plain_second != first

    def test_what_it_closes_over(self):
        """Two rules of one factory differ by what they close over, functions among it."""

        def made(factor):
            def share(n):
                return n * factor

            def rule(jobs, cores, table, out):
                for j in range(len(out)):
                    out[j] = share(cores) / len(out)

            rule.sharing = True
            return rule

        for factor in (1.0, 0.5):
            assert cost(made(factor)) == cost(made(factor), interpreted=True)

    def test_a_rule_that_its_author_compiled(self):
        """A function under numba's own decorator is a rule like any other."""
        from numba import njit

        @njit
        def rule(jobs, cores, table, out):
            for j in range(len(out)):
                out[j] = cores / len(out)

        rule.sharing = True
        assert cost(rule) == cost("equi")

    def test_rules_that_other_processes_compiled(self, tmp_path):
        """Rules whose machine code two processes kept are told apart in a third, however often each runs.

        numba numbers functions per process, so both were compiled under the same number.
        """
        files = [written(tmp_path, f"{share}.py", rule_text("", share)) for share in ("1.0", "0.5")]
        for path in files:
            assert (
                shell(f"python -m malleable simulate paper --cores 8 --jobs 100 --policy {path}:rule").status
                == 0
            )
        one, half = (load_object(f"{path}:rule") for path in files)
        expected = [cost(rule, interpreted=True) for rule in (one, half)]
        for _ in range(2):
            assert [cost(rule) for rule in (one, half)] == expected


class TestDigest:
    """Equal digests mean equal machine code."""

    @given(
        st.lists(
            st.one_of(st.integers(), st.floats(), st.booleans(), st.text(max_size=3)), min_size=2, max_size=2
        )
    )
    def test_constants_and_their_types(self, values):
        """1, 1.0 and True are three different constants; NaN is one and the same."""
        a, b = (code_digest(value) for value in values)
        assert (a == b) == (repr(values[0]) == repr(values[1]) and type(values[0]) is type(values[1]))

    def test_lines_do_not_count(self, tmp_path):
        """A function that moved within its file, or to another one, is still the same."""
        one = load_object(f"{written(tmp_path, 'one.py', rule_text('', '1.0'))}:rule")
        two = load_object(f"{written(tmp_path, 'two.py', rule_text('# moved' + chr(10) * 9, '1.0'))}:rule")
        assert code_digest(one) == code_digest(two)

    def test_arrays_and_defaults(self):
        """Content of arrays and values of defaults count."""

        def rule(jobs, k=2.0):
            return k * WEIGHTS[0]  # noqa: F821 - set below

        rule.__globals__["WEIGHTS"] = np.array([1.0, 2.0])
        before = code_digest(rule)
        rule.__globals__["WEIGHTS"][0] = 3.0
        changed = code_digest(rule)
        rule.__defaults__ = (3.0,)
        assert len({before, changed, code_digest(rule)}) == 3
        del rule.__globals__["WEIGHTS"]

    def test_what_cannot_be_told_is_not_kept(self):
        """A function that refers to a class of its author's has no digest, and is compiled each time."""

        class Mine:
            pass

        def rule(jobs):
            return Mine

        with pytest.raises(UnknownContentError, match="Mine"):
            code_digest(rule)


def past_the_end(jobs, cores, table, out):
    for j in range(len(out)):
        out[j] = 0.0 * jobs[j + 1, 1] + cores / len(out)


def beyond_out(jobs, cores, table, out):
    out[len(out) + 5] = cores


def in_a_helper(jobs, cores, table, out):
    out[0] = third(jobs) + cores


def third(jobs):
    return jobs[len(jobs), 3]


def complains(jobs, cores, table, out):
    raise ValueError("not on my shift")


class TestMemory:
    """What a rule may touch is its own."""

    @pytest.mark.parametrize("rule", [past_the_end, beyond_out, in_a_helper], ids=lambda f: f.__name__)
    def test_no_way_past_the_end(self, rule):
        """Reading or writing past the end of an array is an IndexError with its line, never a number."""
        with pytest.raises(PolicyRaisedError, match="IndexError") as caught:
            cost(rule)
        assert rule.__name__ in caught.value.trace

    def test_what_a_rule_raises_is_shown(self):
        """An exception of a compiled rule ends the run with the rule's own words and traceback."""
        with pytest.raises(PolicyRaisedError, match="not on my shift") as caught:
            cost(complains)
        assert "raise ValueError" in caught.value.trace

    def test_in_compare_too(self, tmp_path):
        """With worker processes the message is the same, not a guess about memory."""
        path = written(
            tmp_path, "mine.py", "def rule(jobs, cores, table, out):\n    out[len(out) + 5] = cores\n"
        )
        found = malleable(
            "compare", "paper", "-n", "8", "--load", ".25", "--jobs", "500", "--policies", f"equi,{path}:rule"
        )
        assert found.status == 1
        assert "IndexError" in found.err
        assert "memory" not in found.err

    @pytest.mark.parametrize("interpreted", [False, True])
    def test_writing_into_the_jobs_changes_nothing(self, interpreted):
        """A rule works on a copy: work that it writes away is still there."""

        def cheat(jobs, cores, table, out):
            for j in range(len(out)):
                out[j] = cores / len(out)
                jobs[j, 1] = 0.0

        assert cost(cheat, interpreted=interpreted) == pytest.approx(cost("equi"), rel=1e-9)

    @given(st.integers(-3, 12), st.integers(-9, 12))
    def test_every_index(self, row, column):
        """Compiled rules accept and refuse the very indices that NumPy does, whatever they are."""
        jobs, out = np.arange(24.0).reshape(3, 8), np.zeros(3)
        compiled_reads()(jobs, 1.0, np.array([float(row), float(column)]), out)
        try:
            assert out[0] == jobs[row, column]
        except IndexError:
            assert out[0] == -np.inf


def below_eight(jobs, cores, table, out):
    if cores < 8.0:
        raise ValueError("not on so few")
    for j in range(len(out)):
        out[j] = cores / len(out)


def at_the_mean(jobs, cores, table, out):
    for j in range(len(out)):
        if jobs[j, 1] == jobs[j, 5] == 0.5:
            raise ValueError("this is an average")
        out[j] = cores / len(out)


def all_of_eight(jobs, cores, table, out):
    out[0] = 8.0


def below_nothing(jobs, cores, table, out):
    out[0] = -np.inf


FALLS = {"kind": "schedule", "times": [0.0, 5.0], "cores": [8, 2]}


class TestWhatARuleWasAsked:
    """An error of a compiled rule is that of the decision at which it was raised, on the cores of then."""

    def test_after_cores_were_lost(self):
        """A rule that raises on 2 cores is shown as raising, though the machine has 8."""
        below_eight.sharing = True
        with pytest.raises(PolicyRaisedError, match="ValueError: not on so few"):
            cost(below_eight, capacity=FALLS)

    def test_more_than_is_left(self):
        """A rule that gives out 8 cores when 2 are left gives out more than 2, says the error."""
        with pytest.raises(PolicyError, match=r"gave out more than 2 cores .* cores 8"):
            cost(all_of_eight, capacity=FALLS)

    def test_beside_jobs_that_cannot_move(self):
        """A rule is asked about the cores that rigid jobs leave; so are its errors."""
        rigid = paper_workload(8, 0.25).to_dict()
        rigid["classes"][0] |= {"shape": "rigid", "width": 2}
        below_eight.sharing = True
        with pytest.raises(PolicyRaisedError, match="ValueError: not on so few"):
            simulate(Workload.from_dict(rigid), 8, below_eight, jobs=JOBS)

    def test_sizes_that_it_does_not_know(self):
        """A rule that sees averages in place of sizes is asked about these again."""
        job_class = JobClass(
            "only", {"kind": "poisson", "rate": 1.0}, {"kind": "exponential", "mean": 0.5}, CURVE
        )
        at_the_mean.sharing = True
        with pytest.raises(PolicyRaisedError, match="ValueError: this is an average"):
            simulate(Workload("w", (job_class,)), 8, at_the_mean, jobs=JOBS, sizes="unknown")

    def test_minus_infinity(self):
        """What marks an exception may also be a rule's own number, and is refused as one."""
        with pytest.raises(PolicyError, match=r"returned a negative number of cores .* cores -inf"):
            cost(below_nothing)

    def test_what_is_no_error_the_second_time(self):
        """A rule that raises once only, because of what it keeps in its table, is told how to look for it."""

        def third_time(jobs, cores, table, out):
            table[0] += 1.0
            if table[0] == 3.0:
                raise ValueError("enough")
            for j in range(len(out)):
                out[j] = cores / len(out)

        third_time.sharing = True
        program = JobProgram(third_time, np.zeros(1), sharing=True)
        jobs = Drawn(0).stream(paper_workload(8, 0.25)).take()
        with pytest.raises(PolicyError, match="compiled, but not when interpreted") as caught:
            departures(paper_workload(8, 0.25), 8, program, jobs)
        assert "--interpreted" in caught.value.hint


class TestPools:
    """Slots and widths of pools are checked before they are used: compiled code trusts them."""

    @pytest.mark.parametrize(
        ("width", "slots", "problem"),
        [
            (-1.0, (4, 4, 4), "returned a negative number of cores in its pools: 4 of -1 cores"),
            (np.nan, (4, 4, 4), "returned NaN in its pools"),
            (np.inf, (4, 4, 4), "gave out more than 8 cores in its pools"),
            (1.0, (4, 4, 4), "gave out more than 8 cores in its pools: 4 of 1 cores"),
            (0.5, (4,), r"has the slots \(4,\) for 3 classes"),
            (0.5, (4, 4, -1), r"has the slots \(4, 4, -1\) for 3 classes"),
            (0.5, (4, 4, 1.5), r"has the slots \(4, 4, 1.5\) for 3 classes"),
        ],
    )
    def test_impossible_pools(self, width, slots, problem):
        """Widths that are no numbers of cores, more slots than fit, or slots of too few classes."""

        def widths(counts, cores, table, out):
            out[:] = width

        workload = paper_workload(8, 0.25)
        with pytest.raises(PolicyError, match=problem):
            departures(
                workload, 8, ClassProgram(widths, np.zeros(1), POOLS, slots), Drawn(0).stream(workload).take()
            )


TERMS = (
    *("jobs[j + {a}, {b}]", "jobs[j - {a}, 1]", "out[j + {a}]"),
    *("table[{b}]", "cores / {c}", "helper(jobs, {a})"),
)
HELPER = "def helper(jobs, a):\n    return jobs[a, {b}]\n"


def random_rule(seed):
    """The source of a rule that reads here and there, sometimes where there is nothing."""
    rng = np.random.default_rng(seed)

    def term():
        return str(rng.choice(TERMS)).format(a=rng.integers(0, 3), b=rng.integers(0, 9), c=rng.integers(1, 4))

    def line():
        return f"        out[j + {rng.integers(0, 2)}] = {term()} {rng.choice(['+', '*', '-'])} {term()}"

    body = f"    for j in range(len(out) - {rng.integers(0, 3)}):\n{line()}\n{line()}\n"
    return f"{HELPER.format(b=rng.integers(-9, 9))}\n\ndef rule(jobs, cores, table, out):\n{body}"


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 200))])
def test_random_rules(tmp_path, seed):
    """Compiled, a random rule writes what it writes interpreted, and raises exactly where it does there."""
    rule = load_object(f"{written(tmp_path, 'random_rule.py', random_rule(seed))}:rule")
    fast = compiled(rule, JOB_RULE)
    rng = np.random.default_rng(seed)
    for size in (1, 2, 5):
        jobs, table = rng.uniform(0.0, 3.0, (size, 8)), rng.uniform(0.0, 3.0, 7)
        plain, out = np.zeros(size), np.zeros(size)
        fast(jobs, 4.0, table, out)
        try:
            rule(jobs.copy(), 4.0, table, plain)
        except IndexError:
            plain[:] = -np.inf
        assert np.array_equal(plain, out)


def reads(jobs, cores, table, out):
    out[0] = jobs[int(table[0]), int(table[1])]


@cache
def compiled_reads():
    """Machine code of `reads`, made when it is first asked for."""
    return compiled(reads, JOB_RULE)


class TestStopping:
    """Ctrl-C is heard while compiled code runs."""

    def test_between_two_records(self):
        """A stop is heard at the next event, and what was done so far is the result."""
        told = [-1]

        def impatient(done, _total):
            if done == told[-1]:  # asked twice within one stretch of jobs, so it is a long one
                raise KeyboardInterrupt
            told.append(done)

        result = simulate("paper", 4096, "hesrpt", load=0.25, jobs=1_000_000, progress=impatient)
        assert result.status == "interrupted"
        assert 0 < result.jobs < 1_000_000
        assert result.cost.mean > 0.0

    @pytest.mark.parametrize(
        ("call", "signals", "status"),
        [("main()", 1, 130), ("simulate('paper', 8, sys.argv[-1], load=.25)", 2, -signal.SIGINT)],
        ids=["command line", "library"],
    )
    def test_a_rule_that_never_returns(self, tmp_path, call, signals, status):
        """Where nothing was found, the command line ends at once, and a call at the second Ctrl-C."""
        text = "def rule(jobs, cores, table, out):\n    while out[0] >= 0.0:\n        out[0] += 1.0\n"
        path = written(tmp_path, "endless.py", text)
        code = (
            "import sys, pathlib\n"
            "from malleable import simulate\n"
            "from malleable.cli import main\n"
            "import malleable.engine.run as run\n"
            "plain = run.Run.extend\n"
            f"started = pathlib.Path({str(tmp_path / 'started')!r})\n"
            "def extend(*a, **k):\n    started.touch()\n    plain(*a, **k)\n"
            f"run.Run.extend = extend\n{call}\n"
        )
        line = [sys.executable, "-c", code, *f"simulate paper -n 8 --load .25 --policy {path}:rule".split()]
        with subprocess.Popen(line, stderr=subprocess.PIPE, text=True, env=environment()) as process:
            try:
                _wait_for((tmp_path / "started").exists)
                for _ in range(signals):
                    with pytest.raises(subprocess.TimeoutExpired):
                        process.wait(0.5)
                    process.send_signal(signal.SIGINT)
                assert process.wait(60) == status
                traced = "Traceback" in process.stderr.read()
                assert traced == (signals > 1)  # Python's own, for who called the library
            finally:
                process.kill()


def _wait_for(condition):
    import time

    for _ in range(1200):
        if condition():
            return
        time.sleep(0.05)
    pytest.fail("it never came")
