"""Files behind a module: what it imports counts, what it does not import does not."""

from malleable.paper.contracts import QUICK
from malleable.paper.reproduce import all_experiments
from malleable.paper.source_digest import PACKAGE, digest, files, members, source


def names(module):
    return {path.relative_to(PACKAGE).as_posix() for path in files([module])}


def test_imports_of_imports_count():
    """The kernel depends on the blocks of marks and on the speedup table, and through it on the families."""
    found = names("malleable.engine.kernels.class_kernel")
    direct = {"engine/kernels/class_kernel.py", "engine/mark_blocks.py", "engine/speedup_table.py"}
    assert direct | {"speedups/power.py"} <= found


def test_others_do_not_count():
    """A new policy does not make the kernel, or another policy, stale."""
    assert not any(
        name.startswith(("policies/", "cli/")) for name in names("malleable.engine.kernels.class_kernel")
    )
    assert "policies/hell.py" not in names("malleable.policies.knee")


def test_modules_named_in_an_import_count():
    """`from malleable.paper.experiments.shared import evidence` leads to the module."""
    found = names("malleable.paper.experiments.e02_converge.verdicts")
    assert "paper/experiments/shared/evidence.py" in found


def test_words_about_values_do_not_make_them_stale():
    """Cells depend on what computes them, not on the figures, verdicts and words made from their values."""
    for module in {cell.work.__module__ for one in all_experiments() for cell in one.cells(QUICK)}:
        ours = [name for name in names(module) if name.startswith("paper/experiments/")]
        told = [name for name in ours if name.endswith(("__init__.py", "figures.py", "verdicts.py"))]
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
