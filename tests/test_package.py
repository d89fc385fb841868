"""The package as an index would hand it out: it builds, its description renders, every extra installs."""

from __future__ import annotations

import shlex
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXTRAS = [
    name
    for name in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    if name != "dev"
]
FRAME = "import malleable; malleable.simulate('paper', 4, load=.2, jobs=2000).to_frame()"
UNIT = """from malleable.live import Executor
with Executor("smoke") as executor:
    assert executor.submit(len, "ab").result() == 2"""
PLOT = shlex.split("-m malleable compare paper -n 4 --load .2 --jobs 2000 --policies wham,equi --plot x.svg")
BOUND = shlex.split("-m malleable bound paper --cores 64 --load 0.25")
SMOKE = {"frames": ["-c", FRAME], "live": ["-c", UNIT], "paper": PLOT}
"""What each extra is for; without one, the bound."""


def done(*words, cwd):
    found = subprocess.run(words, cwd=cwd, capture_output=True, encoding="utf-8", timeout=900, check=False)
    assert found.returncode == 0, found.stdout[-3000:] + found.stderr[-3000:]
    return found.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A wheel and an sdist, made by tools of their own."""
    folder = tmp_path_factory.mktemp("built")
    done(sys.executable, "-m", "venv", "tools", cwd=folder)
    python = folder / "tools" / "bin" / "python"
    done(python, "-m", "pip", "install", "--quiet", "build", "twine", cwd=folder)
    done(python, "-m", "build", "--outdir", folder / "dist", ROOT, cwd=folder)
    done(python, "-m", "twine", "check", "--strict", *sorted((folder / "dist").iterdir()), cwd=folder)
    return folder / "dist"


@pytest.mark.slow
def test_wheel_and_sdist(built):
    """Both are built and checked; the wheel has the package and its data, and no tests."""
    (wheel,) = built.glob("*.whl")
    assert len(list(built.glob("*.tar.gz"))) == 1
    names = zipfile.ZipFile(wheel).namelist()
    here = {path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src").rglob("*.py")}
    assert here <= set(names)
    assert {"malleable/py.typed", "malleable/workloads/paper.toml"} <= set(names)
    assert not any(name.startswith(("tests", "docs", "benchmarks")) for name in names)


@pytest.mark.slow
@pytest.mark.parametrize("extra", ["", *EXTRAS])
def test_it_installs(built, tmp_path, extra):
    """In a fresh environment the wheel installs with the extra, and what the extra is for works."""
    (wheel,) = built.glob("*.whl")
    done(sys.executable, "-m", "venv", "fresh", cwd=tmp_path)
    python = tmp_path / "fresh" / "bin" / "python"
    what = f"{wheel}[{extra}]" if extra else str(wheel)
    done(
        python,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--constraint",
        ROOT / "constraints.txt",
        what,
        cwd=tmp_path,
    )
    done(python, *SMOKE.get(extra, SMOKE[""]), cwd=tmp_path)
