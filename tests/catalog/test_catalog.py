"""Finding kinds by name, options behind names, and kinds from a user's own file."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from malleable import catalog
from malleable.contracts import Policy, Speedup
from malleable.errors import MalleableError, ParameterError, UnknownKindError
from malleable.policies.greedy import Greedy
from malleable.policies.wham import Wham
from malleable.policies.wham_integer import WhamInteger
from support.examples import examples

MINE = '''
from __future__ import annotations
from dataclasses import dataclass
from typing import Annotated
import numpy as np
from annotated_types import Gt
from malleable.contracts import Allocation, Policy

@dataclass(frozen=True)
class Mine(Policy):
    """Everything to the first job."""

    alpha: Annotated[float, Gt(0)] = 1.0

    def allocate(self, jobs, cores, *, integer=False):
        out = np.zeros(len(jobs))
        out[:1] = cores
        return Allocation(out, None)

class Forgotten(Policy):
    def allocate(self, jobs, cores, *, integer=False):
        return Allocation(np.zeros(len(jobs)), None)

instance = Mine(3.0)
number = 5
'''


@pytest.fixture
def mine(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(MINE)
    return file


class TestKinds:
    """Listing a folder."""

    @pytest.mark.parametrize("family", catalog.FAMILIES)
    def test_every_kind_can_be_found(self, family):
        """Each module of a family holds one class whose kind is the module's name."""
        assert catalog.kinds(family)
        for kind in catalog.kinds(family):
            found = catalog.find(family, kind)
            assert found.kind == kind
            assert found.__doc__

    def test_public_kinds(self):
        """The kinds that DESIGN.md promises for this stage are there."""
        promised = {"power", "amdahl", "usl", "rooftop", "table"}
        assert promised <= set(catalog.kinds("speedups"))
        assert {"poisson", "renewal"} <= set(catalog.kinds("arrivals"))
        policies = {"wham", "wham_integer", "fw_cam", "equi", "greedy", "greedy_star"}
        assert policies <= set(catalog.kinds("policies"))

    @pytest.mark.parametrize("name", ["wham-integer", "wham_integer", "WHAM-Integer", " wham-integer "])
    def test_spelling(self, name):
        """Hyphens, underscores and capitals are all the same."""
        assert catalog.find("policies", name) is WhamInteger

    def test_private_modules_are_hidden(self):
        """Helper modules are no kinds."""
        assert not any(kind.startswith("_") for family in catalog.FAMILIES for kind in catalog.kinds(family))
        with pytest.raises(UnknownKindError):
            catalog.find("policies", "_purchase")

    @pytest.mark.parametrize(
        ("family", "name", "words"),
        [
            ("policies", "wam", "no policy is called 'wam'.*did you mean 'wham'"),
            ("policies", "gredy", "did you mean 'greedy'"),
            ("policies", "fw_cm", "did you mean 'fw-cam"),
            ("speedups", "tabel", "no speedup is called 'tabel'.*did you mean 'table'"),
            ("distributions", "exponentail", "no distribution is called.*did you mean 'exponential'"),
            ("arrivals", "poison", "no arrival process is called.*did you mean 'poisson'"),
            ("policies", "zzzzzz", "known: .*wham"),
            ("capacities", "failure", "no capacity is called.*did you mean 'failures'"),
            ("policies", "", "no policy is called ''"),
        ],
    )
    def test_unknown(self, family, name, words):
        """An unknown name gets a suggestion, or the list when nothing is near."""
        with pytest.raises(UnknownKindError, match=words):
            catalog.find(family, name)


class TestOptions:
    """Options ride behind the name."""

    @pytest.mark.parametrize(
        ("text", "options"),
        [
            ("", {}),
            ("beta=0.8", {"beta": 0.8}),
            ("a=1,b=2.5,c=true,d=False,e=text", {"a": 1, "b": 2.5, "c": True, "d": False, "e": "text"}),
            ("widths=4/2/8", {"widths": (4, 2, 8)}),
            ("weight=c/x", {"weight": "c/x"}),
            ("max-jobs=3", {"max_jobs": 3}),
            ("a=1,,b=2,", {"a": 1, "b": 2}),
            (" a = 1 ", {"a": 1}),
            ("a=1e-3", {"a": 1e-3}),
            ("a=x=y", {"a": "x=y"}),
        ],
    )
    def test_parsing(self, text, options):
        """Numbers, booleans, lists of widths and words."""
        parsed = catalog.parse_options(text)
        assert parsed == options
        assert all(type(parsed[key]) is type(value) for key, value in options.items())

    @pytest.mark.parametrize("text", ["beta", "=3", "a=1,b", " =1"])
    def test_unreadable(self, text):
        """An option without a name or an equals sign is named."""
        with pytest.raises(UnknownKindError, match="cannot read the option"):
            catalog.parse_options(text)

    def test_building(self):
        """Names with options make policies; equal options make equal policies."""
        assert catalog.build("policies", "wham") == Wham()
        assert catalog.build("policies", "wham:") == Wham()
        assert catalog.build("policies", "greedy:weight=cmu") == Greedy("cmu")
        assert catalog.build("policies", "greedy:weight=1") == Greedy()
        assert catalog.build("policies", "greedy:weight=c/x").weight == "c/x"

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("greedy:weight=z", "greedy.*weight"),
            ("greedy:wait=c", "greedy.*no key 'wait'.*did you mean 'weight'"),
            ("wham:beta=1", "wham.*no key 'beta'"),
            ("greedy:weight", "cannot read the option"),
            ("greedy:weight=c:x=1", "cannot read"),
            ("nosuch:beta=1", "no policy is called 'nosuch'"),
            (":", "no policy"),
        ],
    )
    def test_bad_options(self, text, words):
        """The message names the policy and the option."""
        with pytest.raises(MalleableError, match=words):
            Policy.of(text)

    @settings(max_examples=examples(60))
    @given(
        st.one_of(
            st.text(max_size=20),
            st.tuples(
                st.sampled_from(["wham", "greedy", "equi", "fw-cam", "x.py", "greedy-star"]),
                st.text(alphabet="weight=beta,:/.019-cmux ", max_size=20),
            ).map(":".join),
        )
    )
    def test_random_names(self, text):
        """Any text is a policy or an error of ours."""
        with contextlib.suppress(MalleableError):
            assert isinstance(Policy.of(text), Policy)

    @pytest.mark.parametrize("value", [None, 3, Speedup.of({"kind": "power", "exponent": 0.5}), [], Wham])
    def test_not_a_policy(self, value):
        """What is neither a name nor a policy is refused."""
        with pytest.raises(ParameterError, match="policy"):
            Policy.of(value)


class TestFiles:
    """`file.py:Name`."""

    def test_policy_from_a_file(self, mine):
        """A dataclass in a file, postponed annotations and all, is validated like our own."""
        assert Policy.of(f"{mine}:Mine").alpha == 1.0
        assert Policy.of(f"{mine}:Mine:alpha=2").alpha == 2.0
        with pytest.raises(ParameterError, match=r"alpha.*greater than 0"):
            Policy.of(f"{mine}:Mine:alpha=-1")

    def test_instance_from_a_file(self, mine):
        """A policy object is taken as it is."""
        assert Policy.of(f"{mine}:instance").alpha == 3.0

    @pytest.mark.parametrize(
        ("reference", "words"),
        [
            ("{mine}:Min", "defines no 'Min'.*did you mean 'Mine'"),
            ("{folder}/nowhere.py:Mine", "no file"),
            ("{folder}:Mine", "cannot read the option 'Mine'"),
            ("{mine}:number", "not a policy"),
            ("{mine}:Policy", "Policy"),
            ("{mine}:Forgotten", "dataclass"),
            ("{mine}:Mine:alpha=1:x=2", "cannot read"),
            ("{mine}", "defines 2 classes: Mine, Forgotten"),
        ],
    )
    def test_mistakes(self, mine, reference, words):
        """Wrong names, wrong files and wrong things are told apart."""
        with pytest.raises(MalleableError, match=words):
            Policy.of(reference.format(mine=mine, folder=mine.parent))

    @pytest.mark.parametrize(
        "source", ["def broken(:\n", "1/0\n", "import no_such_module_at_all\n", "raise KeyError\n", "\0"]
    )
    def test_file_that_cannot_be_imported(self, tmp_path, source):
        """An error in the user's file is reported as one line that names the file."""
        file = tmp_path / "broken.py"
        file.write_text(source)
        with pytest.raises(MalleableError, match=r"broken\.py"):
            Policy.of(f"{file}:Mine")

    def test_file_named_like_a_module(self, tmp_path):
        """A file called json.py does not replace the module json."""
        import json
        import sys

        file = tmp_path / "json.py"
        file.write_text(MINE)
        assert Policy.of(f"{file}:Mine").alpha == 1.0
        assert sys.modules["json"] is json
