"""The documentation is true: every block of code in it runs, and prints what the page says.

On each page, from top to bottom, in a folder of its own:

- a `python` block runs, in one namespace for the page; a `text` block right behind it is its exact output;
- a `console` block runs each line behind `$ ` and compares what follows (`...` on a line of its own stands
  for any lines); stdout and stderr stand together, as in a terminal;
- `<!-- log: NAME -->` puts the NASA log there by that name; without the log, the page is only read;
- a block whose first line is `# file: NAME`, or that stands behind `<!-- file: NAME -->`, is written to that
  file; `toml` and `json` blocks are parsed in any case.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tomllib
import types
import warnings
from dataclasses import dataclass
from pathlib import Path

import pytest

import malleable as package
from malleable.cli import app
from malleable.live.broker.http_client import BrokenOffError, NoBrokerError
from support.broker_server import cancel_programs, short_folder
from support.logs import NASA
from support.shell import Outcome, malleable, shell

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
DATA = ROOT.parent / "shared" / "data"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted(DOCS.rglob("*.md"))]
FENCE = re.compile(
    r"(?:<!-- file: (?P<name>\S+) -->\n)?```(?P<language>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)
NAMED = re.compile(r"# file: (\S+)\n")
LOG = re.compile(r"<!-- log: (\S+) -->")
"""Says that a page works on the NASA log, by this name; it stays out of the project."""
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
SKIPPED = ("make ", "git ", "cd ", "python3 -m venv ", ".venv/bin/python -m pip ", ". .venv/bin/activate")
"""Lines of a console block that set up a machine; the tests run on one that is set up."""
SHELL_SYNTAX = set("|<>;&$`*")


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    language: str
    text: str
    line: int
    file: str | None
    follows: bool
    """Whether it stands right behind the block before it."""


def blocks(page: Path) -> list[Block]:
    text, found, end = page.read_text(encoding="utf-8"), [], 0
    for match in FENCE.finditer(text):
        body, file = match["text"], match["name"]
        if named := NAMED.match(body):
            file = named[1]
        line = text.count("\n", 0, match.start("text")) + 1
        follows = bool(found) and not text[end : match.start()].strip()
        found.append(Block(match["language"], body, line, file, follows))
        end = match.end()
    return found


def with_code() -> list[Path]:
    return [page for page in PAGES if any(block.language != "text" for block in blocks(page))]


@pytest.fixture
def own_broker(monkeypatch):
    """Folders for the broker that a page starts, and its end if the page does not come to that."""
    with short_folder() as folder:
        monkeypatch.setenv("MALLEABLE_HOME", str(folder / "home"))
        monkeypatch.setenv("MALLEABLE_STATE", str(folder / "state"))
        monkeypatch.delenv("MALLEABLE_BROKER", raising=False)
        yield
        with warnings.catch_warnings():
            # The broker may be ending by itself, and httpx leaves the socket of a failed connection open.
            warnings.simplefilter("ignore", ResourceWarning)
            with contextlib.suppress(NoBrokerError, BrokenOffError, ProcessLookupError):
                cancel_programs(folder / "home" / "broker.sock")
                os.kill(int((folder / "home" / "broker.lock").read_text()), signal.SIGTERM)


@pytest.mark.usefixtures("own_broker")
@pytest.mark.parametrize("page", with_code(), ids=name_of)
def test_page_runs(page, tmp_path, monkeypatch):
    """Everything that a page tells its reader to type works, and prints what the page says."""
    monkeypatch.chdir(tmp_path)
    if log := LOG.search(page.read_text(encoding="utf-8")):
        if not NASA.is_file():
            pytest.skip(f"the log of this page is not at {NASA}")
        shutil.copy(NASA, log[1])
    module = types.ModuleType("__page__")
    monkeypatch.setitem(sys.modules, "__page__", module)
    found = blocks(page)
    for block, following in zip(found, [*found[1:], None], strict=True):
        place = f"{name_of(page)}:{block.line}"
        if block.file:
            Path(block.file).write_text(NAMED.sub("", block.text, count=1), encoding="utf-8")
        if block.language == "toml":
            tomllib.loads(block.text)
        elif block.language == "json":
            json.loads(block.text)
        elif block.language == "python" and not block.file:
            printed = run_python(block, page, module)
            if following and following.language == "text" and following.follows:
                assert printed.rstrip() == following.text.rstrip(), place
        elif block.language == "console":
            run_console(block, place)
        else:
            assert block.language in {"python", "text", "csv", "svg", "make"}, f"{place}: name the language"


def run_python(block: Block, page: Path, module: types.ModuleType) -> str:
    out = io.StringIO()
    # Line numbers in a traceback are those of the page.
    source = "\n" * (block.line - 1) + block.text
    with contextlib.redirect_stdout(out), warnings.catch_warnings():
        warnings.simplefilter("error")
        exec(compile(source, str(page), "exec"), vars(module))
    return out.getvalue()


def run_console(block: Block, place: str) -> None:
    last = Outcome(0, "", "")
    for command, expected in commands(block.text):
        if command.startswith(SKIPPED):
            continue
        if command == "echo $?":
            assert str(last.status) == expected.strip(), f"{place}: {command}"
            continue
        last = run_command(command)
        assert "Traceback" not in last.err, f"{place}: {command}\n{last.err}"
        shown = tidy(last.out + last.err)
        if not matches(expected, shown):
            assert shown == tidy(expected), f"{place}: {command}"


def commands(text: str) -> list[tuple[str, str]]:
    """The commands of a console block, each with the output that the page shows."""
    found: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif line.startswith("> ") and found and found[-1][0].endswith("\\"):
            found[-1] = (found[-1][0][:-1] + line[2:], [])
        else:
            assert found, f"a console block starts with '$ ': {line}"
            found[-1][1].append(line)
    return [(command, "\n".join(lines)) for command, lines in found]


def run_command(command: str) -> Outcome:
    """Run a line; `malleable` at its front in this process, and what is behind its pipe in a shell."""
    first, bar, others = command.partition(" | ")
    first, joined, _ = first.partition(" 2>&1")
    if not first.startswith("malleable ") or SHELL_SYNTAX & set(first):
        return shell(command)
    done = malleable(*shlex.split(first)[1:])
    if not bar:
        return done
    piped = shell(others, done.out + done.err if joined else done.out)
    return Outcome(piped.status, piped.out, piped.err if joined else done.err + piped.err)


def tidy(text: str) -> str:
    """Without what is not seen: space at the ends of lines, empty lines at both ends."""
    return "\n".join(line.rstrip() for line in text.splitlines()).strip("\n")


def matches(expected: str, shown: str) -> bool:
    lines = [r"(?:.*\n)*" if line == "..." else re.escape(line + "\n") for line in tidy(expected).split("\n")]
    return re.fullmatch("".join(lines), shown + "\n") is not None


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_resolve(page):
    """Every relative link of a page leads to a file, and its anchor to a heading."""
    prose = FENCE.sub("", page.read_text(encoding="utf-8"))
    for target in LINK.findall(prose):
        if "://" in target or target.startswith("mailto:"):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), f"{name_of(page)} links to {target}"
        if anchor and file.suffix == ".md":
            assert anchor in anchors(file), f"{name_of(page)} links to {target}"


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    prose = FENCE.sub("", page.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.*)$", prose, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_lines_are_short(page):
    """Lines stay within 110 characters, like the code, and name no place of one machine."""
    text = page.read_text(encoding="utf-8")
    lines = enumerate(text.splitlines(), 1)
    # Rows of a table and links cannot be broken.
    long = [n for n, line in lines if len(line) > 110 and not line.startswith("|") and "](" not in line]
    assert not long, f"{name_of(page)}: lines {long}"
    assert not re.search(r"(?<![\w.~])/(?:home|root|work|tmp|Users)/", text), name_of(page)


@pytest.mark.parametrize("script", ["generate.py", "make_images.py"])
def test_generated_pages_are_fresh(script):
    """`make docs` would change nothing."""
    done = subprocess.run(
        [sys.executable, DOCS / script, "--check"], capture_output=True, encoding="utf-8", check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_check_notices_a_stale_page(tmp_path):
    """`generate.py --check` exits with 1 and names what is stale or missing."""
    done = subprocess.run(
        [sys.executable, DOCS / "generate.py", "--check", "--out", tmp_path],
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 1
    assert "cli.md" in done.stdout
    assert not list(tmp_path.iterdir())


def test_every_command_is_documented():
    """Every verb has its section in the reference, and an example that the tests run."""
    reference = (DOCS / "reference" / "cli.md").read_text(encoding="utf-8")
    examples = [command for page in PAGES for b in blocks(page) for command, _ in console_commands(b)]
    for verb in [command.name for command in app.registered_commands]:
        assert f"## malleable {verb}" in reference
        assert any(f"malleable {verb}" in command for command in examples), f"no example of {verb}"


NEW_THINGS = (
    "a speedup family", "a speedup family with formulas", "a distribution", "a policy", "a market policy",
    "a source of jobs", "an engine", "a backend",
)  # fmt: skip


@pytest.mark.parametrize("thing", NEW_THINGS)
def test_every_new_thing_has_an_example(thing, tmp_path):
    """CONTRIBUTING shows each new thing as one file, and a block that runs it by the name of that file."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = re.search(rf"^## Example: {thing}\n.*?(?=^## )", text, re.MULTILINE | re.DOTALL)
    assert section is not None
    page = tmp_path / "section.md"
    page.write_text(section[0], encoding="utf-8")
    found = blocks(page)
    (file,) = [block.file for block in found if block.file and block.language == "python"]
    assert any(f"{file}:" in block.text for block in found if not block.file)


def console_commands(block: Block) -> list[tuple[str, str]]:
    return commands(block.text) if block.language == "console" else []


def test_every_public_name_is_documented():
    """Everything in `malleable.__all__` has its heading in the reference."""
    reference = (DOCS / "reference" / "api.md").read_text(encoding="utf-8")
    for name in package.__all__:
        assert re.search(rf"^### {name}$", reference, re.MULTILINE), name
        assert package.__dict__.get(name, getattr(package, name)).__doc__, f"{name} has no docstring"


def test_index_leads_everywhere():
    """Every page under docs/ can be reached from docs/index.md by one link."""
    linked = {(DOCS / target).resolve() for target in LINK.findall((DOCS / "index.md").read_text("utf-8"))}
    assert {page for page in DOCS.rglob("*.md") if page.name != "index.md"} <= linked


def test_changelog_names_the_version():
    """The changelog has a section for the version that the package carries."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(rf"^## \[{re.escape(package.__version__)}\]", text, re.MULTILINE)


@pytest.mark.parametrize(
    ("expected", "shown", "same"),
    [
        ("a\nb", "a\nb", True),
        ("a\n...\nc", "a\nb\nb\nc", True),
        ("a\n...\nc", "a\nc", True),
        ("a\n...", "b\nc", False),
        ("a.c", "abc", False),
    ],
)
def test_ellipsis(expected, shown, same):
    """`...` on its own line stands for any lines, and nothing else does."""
    assert matches(expected, shown) is same


@pytest.mark.slow
@pytest.mark.skipif(not DATA.is_dir(), reason=f"measured curves are not at {DATA}")
def test_the_table_of_fits_is_fresh():
    """`docs/make_fit_table.py` would change nothing."""
    line = [sys.executable, DOCS / "make_fit_table.py", DATA, "--check"]
    done = subprocess.run(line, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stdout + done.stderr
