"""The command line as a process: version, help, light imports, pipes and colours."""

from __future__ import annotations

import json
import subprocess
import sys
from ast import literal_eval

import pytest

import malleable as package
from support.cli_checks import assert_one_line
from support.shell import environment, malleable, shell

pytestmark = pytest.mark.usefixtures("with_jobs")


def test_version():
    assert malleable("--version").out == f"malleable {package.__version__}\n"


@pytest.mark.parametrize("verb", ["", "bound ", "allocate ", "meanfield ", "list "])
def test_help_in_both_spellings(verb):
    short, long = (malleable(*f"{verb}{flag}".split()) for flag in ("-h", "--help"))
    assert short == long
    assert (short.status, short.err) == (0, "")
    assert "Usage: malleable" in short.out


HEAVY = ("numba", "matplotlib", "numpy", "scipy", "malleable.model")
HELP = """\
import sys
sys.argv = ["malleable", {arguments}]
from malleable.cli import main
try:
    main()
finally:
    print([name for name in {heavy} if name in sys.modules], file=sys.stderr)
"""


@pytest.mark.parametrize("arguments", ["'--help'", "'bound', '--help'", "'--version'"])
def test_help_imports_nothing_heavy(arguments):
    """`--help` answers at once because nothing heavy is imported: no NumPy, no SciPy, no Numba."""
    code = HELP.format(arguments=arguments, heavy=HEAVY)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0
    assert done.stderr.strip() == "[]"


def test_a_verb_imports_no_other(tmp_path):
    """`submit` imports its own module, and neither those of other verbs nor the catalog of kinds."""
    code = HELP.format(
        arguments="'submit', '--', 'true'",
        heavy="[name for name in sys.modules if name.startswith(('malleable.cli.', 'malleable.catalog'))]",
    )
    there = {**environment(), "MALLEABLE_HOME": str(tmp_path), "MALLEABLE_STATE": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=False, env=there
    )
    *said, loaded = done.stderr.splitlines()
    assert said[0] == "error: no broker runs"
    verbs = {name for name in literal_eval(loaded) if "._" not in name}
    assert verbs == {"malleable.cli.submit"}


def test_import_is_light():
    code = f"import sys, malleable; print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=True)
    assert done.stdout.strip() == "[]"


def test_the_installed_command_works():
    """The entry point, in a process of its own: stdin, stdout, stderr and status as in a shell."""
    good = shell("malleable allocate paper -n 16 --jobs - --json < jobs.csv")
    assert (good.status, good.err) == (0, "")
    assert len(json.loads(good.out)["allocation"]) == 5
    assert_one_line(shell("malleable bound paper --cores none"), "cores must be a number")


@pytest.mark.parametrize(
    "command",
    [
        "list",
        "bound paper -n 64",
        pytest.param("list --json", marks=pytest.mark.slow),
        pytest.param("meanfield paper -n 64 --starts 1", marks=pytest.mark.slow),
    ],
)
def test_closed_pipe_is_no_error(command):
    """`malleable … | head` ends quietly when the reader has seen enough."""
    done = shell(f"malleable {command} | (exec 0<&-; sleep 0.1); exit ${{PIPESTATUS[0]}}")
    assert "Traceback" not in done.err
    assert "BrokenPipe" not in done.err
    assert (done.status, done.err) == (0, "")


def test_colours_only_on_request():
    """Without a terminal nothing is coloured."""
    assert "\x1b" not in shell("malleable bound paper -n 64").out
    assert "NO_COLOR" in environment()
