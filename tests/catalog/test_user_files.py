"""Policies in files of a user's own: modules beside them, several classes in one, and mistakes."""

from __future__ import annotations

import importlib
import multiprocessing
import pickle
import re
import sys
from concurrent.futures import ProcessPoolExecutor

import pytest

from malleable import Jobs, allocate, catalog, compare, paper_workload, simulate
from malleable.catalog.user_files import defined, load_module
from malleable.contracts import Policy
from malleable.errors import MalleableError, UnknownKindError
from support.shell import malleable, shell

WORKLOAD = paper_workload()
POLICY = """
from dataclasses import dataclass
import numpy as np
from malleable.contracts import Allocation, Policy
{imports}

@dataclass(frozen=True)
class {name}(Policy):
    part: float = 1.0

    def allocate(self, jobs, cores, *, integer=False):
        return Allocation(np.full(len(jobs), self.part * {width}), None)
"""


def write(folder, **files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        file = folder / f"{name.replace('_in_', '/')}.py"
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    return folder


def policy(imports="from helper import WIDTH", width="WIDTH", name="Mine"):
    return POLICY.format(imports=imports, width=width, name=name)


def cores(reference):
    """What a policy gives to a single job."""
    return float(allocate(WORKLOAD, Jobs.of(WORKLOAD, [0], [1.0]), 64, reference).cores[0])


# --- modules beside a file --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("imports", "width"),
    [
        ("from helper import WIDTH", "WIDTH"),
        ("import helper", "helper.WIDTH"),
        ("import helper as other", "other.WIDTH"),
        ("import package.inner", "package.inner.WIDTH"),
        ("from package import inner", "inner.WIDTH"),
        ("from package.inner import WIDTH", "WIDTH"),
        ("from . import helper", "helper.WIDTH"),
        ("from .helper import WIDTH", "WIDTH"),
        ("def width():\n    import helper\n    return helper.WIDTH", "width()"),
    ],
)
def test_a_module_beside_the_file(tmp_path, imports, width):
    """A file may import its neighbours, also when one of its functions runs, and neighbours theirs."""
    folder = write(
        tmp_path / "a.folder",
        mine=policy(imports, width),
        helper="from constants import WIDTH\n",
        constants="WIDTH = 3.0\n",
        package_in___init__="",
        package_in_inner="from constants import WIDTH\nfrom . import more\n",
        package_in_more="import constants\n",
    )
    before = list(sys.path)
    assert cores(f"{folder / 'mine.py'}:Mine") == 3.0
    assert sys.path == before
    assert not {"helper", "constants", "package"} & set(sys.modules)
    with pytest.raises(ImportError):
        importlib.import_module("helper")


def test_folders_do_not_meet(tmp_path):
    """Two folders with a module of one name each have their own."""
    one = write(tmp_path / "one", mine=policy(), helper="WIDTH = 1.0\n")
    two = write(tmp_path / "two", mine=policy(), helper="WIDTH = 2.0\n")
    policies = [Policy.of(f"{folder / 'mine.py'}:Mine") for folder in (one, two, one)]
    assert [cores(each) for each in policies] == [1.0, 2.0, 1.0]


def test_an_edited_neighbour(tmp_path):
    """A neighbour that changed is read again, were it within the same second and of the same length."""
    folder = write(tmp_path, mine=policy(), helper="from deep import WIDTH\n", deep="WIDTH = 1.0\n")
    found = []
    for width in ("1.0", "5.0", "7.0"):
        write(folder, deep=f"WIDTH = {width}\n")
        found.append(cores(f"{folder / 'mine.py'}:Mine"))
    assert found == [1.0, 5.0, 7.0]


def test_the_standard_library_goes_first(tmp_path):
    """A file called json.py or queue.py beside a policy hides nothing from anybody, nor malleable itself."""
    folder = write(
        tmp_path,
        mine=policy("import json, queue, malleable.catalog.spec", "len(json.dumps([1]))"),
        json="raise ImportError\n",
        queue="raise ImportError\n",
        malleable_in___init__="raise ImportError\n",
    )
    assert cores(f"{folder / 'mine.py'}:Mine") == 3.0


def test_a_neighbour_that_fails(tmp_path):
    """What is wrong with a neighbour is one line that names the file, and the last good one stays."""
    folder = write(tmp_path, mine=policy(), helper="WIDTH = 2.0\n")
    good = Policy.of(f"{folder / 'mine.py'}:Mine")
    write(folder, helper="WIDTH = 1 / 0\n")
    with pytest.raises(UnknownKindError, match=r"mine\.py: ZeroDivisionError"):
        Policy.of(f"{folder / 'mine.py'}:Mine")
    assert cores(good) == 2.0
    assert pickle.loads(pickle.dumps(good)) == good


def test_in_worker_processes(tmp_path):
    """Workers know the neighbours: those of our own, and those of an executor that starts from nothing."""
    rule = "import helper\ndef mine(jobs, cores):\n    from late import f\n    return f(jobs, cores)\n"
    folder = write(
        tmp_path,
        rule=rule,
        helper="def f(size, cores):\n    return [cores / size] * size\n",
        late="import helper\ndef f(jobs, cores):\n    return helper.f(len(jobs), cores)\n",
        mine=policy("from helper import f", "f(1, cores)[0] / len(jobs)"),
    )
    options = {"load": 0.2, "jobs": 60, "interpreted": True}
    for reference in (f"{folder / 'rule.py'}:mine", f"{folder / 'mine.py'}:Mine"):
        alone = simulate("paper", 4, reference, **options)
        both = simulate("paper", 4, reference, replications=2, **options)
        assert both.records[0].response.tolist() == alone.records[0].response.tolist()
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as workers:
        apart = simulate("paper", 4, reference, executor=workers, **options)
    assert apart.cost == alone.cost


# --- which of the things in a file ------------------------------------------------------------------------


def test_a_file_without_a_name(tmp_path):
    """A file that defines one class needs no name; options may follow it."""
    file = write(tmp_path, mine=policy("", "2.0")) / "mine.py"
    assert cores(str(file)) == 2.0
    assert cores(f"{file}:") == 2.0
    assert cores(f"{file}:part=2") == 4.0
    assert cores(f"{file}:Mine:part=3") == 6.0


def test_several_classes(tmp_path, monkeypatch):
    """Several classes in one file are named, and how to choose: in a file, and in another package."""
    folder = write(tmp_path, mine=policy("", "2.0", "Mine") + policy("", "3.0", "Yours"))
    with pytest.raises(UnknownKindError, match=r"mine\.py defines 2 classes: Mine, Yours.*mine\.py:Mine"):
        Policy.of(str(folder / "mine.py"))
    assert cores(f"{folder / 'mine.py'}:Yours") == 3.0
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setattr("malleable.catalog.finding.kinds", lambda _: {"theirs": "mine"})
    catalog.find.cache_clear()
    with pytest.raises(UnknownKindError, match=r"mine defines 2 classes: Mine, Yours.*mine:Mine"):
        catalog.find("policies", "theirs")
    catalog.find.cache_clear()
    sys.modules.pop("mine", None)


@pytest.mark.parametrize(
    ("reference", "words"),
    [
        ("nofile.py:f", r"no file 'nofile\.py'.*did you mean 'onefile\.py'"),
        ("nofile.py", r"no file 'nofile\.py'"),
        ("onefile.py:shar", r"onefile\.py defines no 'shar'.*did you mean 'share'"),
        ("onefile.py:np", r"not a policy"),
        ("onefile.py:zzz", r"onefile\.py defines no 'zzz'.*known: Number, share"),
        ("onefile.py", r"onefile\.py defines no policy.*onefile\.py:share"),
        ("onefile.py:", r"onefile\.py defines no policy.*onefile\.py:share"),
        ("empty.py:f", r"empty\.py defines no 'f'.*define it there"),
        ("empty.py", r"empty\.py defines no policy"),
    ],
)
def test_mistakes(tmp_path, monkeypatch, reference, words):
    """What is not there is told with what is: files beside it, and names that the file has of its own."""
    text = "import numpy as np\nfrom math import sqrt\nclass Number: pass\ndef share(jobs, cores): pass\n"
    monkeypatch.chdir(write(tmp_path, onefile=text, empty=""))
    with pytest.raises(MalleableError, match=words):
        Policy.of(reference)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        ("speed.py:missing", "defines no 'missing'.*did you mean|defines no 'missing'.*known: fast"),
        ("speed.py:", "not of the form file.py:Name.*defines fast"),
        ("speed.py", "not of the form file.py:Name.*speed.py defines fast"),
        ("nowhere.py:fast", "no file"),
    ],
)
def test_a_speedup_that_is_not_there(tmp_path, monkeypatch, function, words):
    """A workload that names a function that does not exist says so, and does not blame the function."""
    monkeypatch.chdir(write(tmp_path, speed="def fast(k):\n    return k**0.5\n"))
    (tmp_path / "mine.toml").write_text(
        '[[classes]]\narrivals = { kind = "poisson", rate = 1.0 }\n'
        'size = { kind = "exponential", mean = 1.0 }\n'
        f'speedup = {{ kind = "custom", function = "{function}" }}\n'
    )
    done = malleable("bound", "mine.toml", "-n", "8")
    assert done.status == 1
    line = " ".join(done.err.splitlines())
    assert line.startswith("error: mine.toml: classes[0].speedup.function: ")
    assert "raised" not in line
    assert re.search(words, line)


def test_a_module_of_its_own(tmp_path):
    """What a file imports is not taken for its own."""
    module = load_module(str(write(tmp_path, mine=policy("", "1.0")) / "mine.py"))
    assert defined(module) == ["Mine"]


FORGETFUL = """
from dataclasses import dataclass
import numpy as np
from malleable.policies.base import SHARE, Allocation, ClassProgram, JobRule, Policy

LIMIT = 3

def rule(jobs, cores, table, out):
    for j in range(len(out)):
        out[j] = max(1.0, cores / len(out) / LIMIT)

def helper(x):
    return x

"""
DATACLASS = "@dataclass(frozen=True)\n"
NO_ALLOCATE = DATACLASS + "class SqrtShare(Policy):\n    def notes(self, workload, cores): ...\n"
NO_RULE = DATACLASS + "class Favour(JobRule):\n    power: float = 0.5\n"
NO_DATACLASS = "class Plain(JobRule):\n    part: float = 1.0\n    rule = staticmethod(rule)\n"
NO_POLICY = "class Stranger:\n    def allocate(self, jobs, cores, *, integer=False): ...\n"
WHOLE = DATACLASS + "class Whole(JobRule):\n    rule = staticmethod(rule)\n"


@pytest.mark.parametrize(
    ("text", "name", "problem", "hint"),
    [
        (
            NO_ALLOCATE,
            "",
            "class SqrtShare is incomplete: add an `allocate` method",
            "def allocate(self, jobs, cores, *, integer=False) -> Allocation",
        ),
        (
            NO_ALLOCATE,
            ":SqrtShare",
            "class SqrtShare is incomplete: add an `allocate` method",
            "def allocate",
        ),
        (NO_ALLOCATE, ":SHARE", "SHARE is 0, not a policy", "class SqrtShare is incomplete: add an"),
        (NO_RULE, "", "class Favour is incomplete: add a `rule`", "rule = staticmethod(function)"),
        (NO_RULE + NO_ALLOCATE, "", "class Favour is incomplete: add a `rule`", "staticmethod"),
        (NO_DATACLASS, "", "class Plain is no dataclass", "write @dataclass(frozen=True) above it"),
        (NO_DATACLASS, ":Plain", "class Plain is no dataclass", "write @dataclass(frozen=True) above it"),
        (NO_POLICY, ":Stranger", "Stranger is a class, but not a policy", "Stranger inherit from Policy"),
        (
            WHOLE + WHOLE.replace("Whole", "Too"),
            "",
            "defines 2 classes: Whole, Too",
            "say which one: FILE:Whole",
        ),
        (WHOLE, ":LIMIT", "LIMIT is 3, not a policy", "name it: FILE:Whole"),
        (WHOLE, ":np", "np is a module, not a policy", "name it: FILE:Whole"),
        ("", "", "defines no policy", "name it: FILE:rule"),
        ("", ":LIMIT", "LIMIT is 3, not a policy", "name it: FILE:rule"),
        ("", ":helper", "helper cannot be called as a policy", "write f(jobs, cores, table, out)"),
    ],
)
def test_what_a_file_lacks(tmp_path, text, name, problem, hint):
    """The error says what to add, and its hint names nothing that would be refused in turn."""
    file = write(tmp_path, mine=FORGETFUL + text) / "mine.py"
    with pytest.raises(MalleableError) as caught:
        Policy.of(f"{file}{name}")
    assert problem in caught.value.problem
    assert hint.replace("FILE", str(file)) in caught.value.hint
    for offered in re.findall(r"\S+\.py:\w+", caught.value.hint):
        assert isinstance(Policy.of(offered), Policy)


@pytest.mark.parametrize("text", [WHOLE, WHOLE + NO_ALLOCATE, WHOLE + NO_POLICY])
def test_a_file_with_one_class_that_is_whole(tmp_path, text):
    """It needs no name, whatever else is in the file that cannot be meant."""
    assert type(Policy.of(str(write(tmp_path, mine=FORGETFUL + text) / "mine.py"))).__name__ == "Whole"


@pytest.mark.parametrize("text", ["", "LIMIT = 3\n", "from malleable.policies.base import SHARE, Policy\n"])
def test_a_file_without_any(tmp_path, text):
    """What a file imports, and its constants, are not offered: the hint says what to write."""
    with pytest.raises(MalleableError, match=r"defines no policy \(define a subclass of Policy there, or a"):
        Policy.of(str(write(tmp_path, mine=text) / "mine.py"))


def test_classes_in_python(tmp_path):
    """A class in place of a policy is told what to write; a job rule without its rule cannot be made."""
    module = load_module(str(write(tmp_path, mine=FORGETFUL + WHOLE + NO_RULE + NO_ALLOCATE) / "mine.py"))
    with pytest.raises(MalleableError, match=r"not a policy: the class Whole \(give one of it: Whole\(\)\)"):
        simulate(WORKLOAD, 4, module.Whole)
    for lacking in (lambda: Policy.of(module.Favour), module.Favour):
        with pytest.raises(MalleableError, match="class Favour is incomplete: add a `rule`"):
            lacking()
    with pytest.raises(MalleableError, match="class SqrtShare is incomplete: add an `allocate` method"):
        Policy.of(module.SqrtShare)


def test_from_a_shell(tmp_path):
    """The command line finds the neighbours, in `compare` with its workers too."""
    folder = write(tmp_path / "there", mine=policy("from helper import f", "f(jobs, cores)"))
    write(folder, helper="def f(jobs, cores):\n    return cores / len(jobs)\n")
    policies = "--policies equi,there/mine.py:Mine"
    line = f"malleable compare paper -n 4 --load .2 --jobs 50 --interpreted --json {policies}"
    done = shell(line, folder=tmp_path)
    assert done.status == 0, done.err
    assert '"there/mine.py:Mine"' in done.out


def test_compare_takes_both_of_a_file(tmp_path):
    """Two classes of one file may be compared."""
    file = write(tmp_path, mine=policy("", "cores / len(jobs)") + policy("", "cores / len(jobs)", "Yours"))
    names = [f"{file / 'mine.py'}:Mine", f"{file / 'mine.py'}:Yours"]
    found = compare("paper", 4, names, load=0.2, jobs=60, interpreted=True)
    assert found.results[0].cost == found.results[1].cost
