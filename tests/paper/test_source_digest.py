"""Files behind a module: what it imports counts, what it does not import does not."""

from malleable.catalog import kinds
from malleable.paper.contracts import QUICK
from malleable.paper.reproduce import all_experiments
from malleable.paper.source_digest import PACKAGE, digest, files, imported, members, source

WORDS = ("/__init__.py", "/findings.py", "/policies.py", "/columns.py", "/comparisons.py", "/curves.py")
"""Modules of experiments that say what values show."""


def names(module):
    return {path.relative_to(PACKAGE).as_posix() for path in files([module])}


def test_imports_of_imports_count():
    """The kernel depends on the blocks of marks and on the speedup table; families count for every cell."""
    found = names("malleable.engine.kernels.class_kernel")
    direct = {"engine/kernels/class_kernel.py", "engine/mark_blocks.py", "engine/speedup_table.py"}
    assert direct | {"numerics/hull.py"} <= found
    assert {"malleable.speedups.power", "malleable.distributions.pareto"} <= set(
        members("malleable.speedups") + members("malleable.distributions")
    )


def test_others_do_not_count():
    """A new policy does not make the kernel, or another policy, stale."""
    found = names("malleable.engine.kernels.class_kernel")
    assert not found & {f"policies/{kind}.py" for kind in kinds("policies")}
    assert not any(name.startswith("cli/") for name in found)
    assert "policies/hell.py" not in names("malleable.policies.knee")


def test_modules_named_in_an_import_count():
    """`from malleable.paper.experiments.shared import evidence` leads to the module."""
    found = names("malleable.paper.experiments.e02_converge.findings")
    assert "paper/experiments/shared/evidence.py" in found


def test_imports_are_those_that_python_sees(tmp_path):
    """Every form of an import counts, wherever it stands; an example in a text is none."""
    page = tmp_path / "page.py"
    page.write_text(
        '"""An example:\n\n    from malleable.quoted import nothing\n"""\n'
        "from malleable.one import (\n    a,  # b\n    c as d,\n)\n"
        "def f():\n    import malleable.two.three; from malleable import four\n"
    )
    found = {name for name in imported(page) if name.startswith("malleable.")}
    assert found == {
        "malleable.one", "malleable.one.a", "malleable.one.c", "malleable.two.three", "malleable.four"
    }  # fmt: skip
    assert "policies/base/function_policy.py" in names("malleable.contracts")


def test_words_about_values_do_not_make_them_stale():
    """Cells depend on what computes them, not on the findings made from their values."""
    for module in {cell.work.__module__ for one in all_experiments() for cell in one.cells(QUICK)}:
        ours = [name for name in names(module) if name.startswith("paper/experiments/")]
        told = [name for name in ours if name.endswith(WORDS)]
        assert not told, f"{module} depends on {told}"


def test_other_packages_are_left_out():
    """What is not ours has no source here."""
    assert source("numpy.linalg") is None
    assert source("malleable.nothing") is None
    assert source("malleable.engine") == PACKAGE / "engine" / "__init__.py"


def test_digest_depends_on_everything_given():
    """Another module or another version gives another digest; the order of modules does not matter."""
    one = digest(["malleable.numerics.hull", "malleable.catalog.listing"], "1.0")
    assert one == digest(["malleable.catalog.listing", "malleable.numerics.hull"], "1.0")
    assert one != digest(["malleable.numerics.hull"], "1.0")
    assert one != digest(["malleable.numerics.hull", "malleable.catalog.listing"], "2.0")
    assert "malleable.policies.wham" in members("malleable.policies")
