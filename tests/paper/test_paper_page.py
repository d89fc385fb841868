"""From cells to the page: nothing is computed or drawn twice, nothing wrong is hidden, all is on the page."""

from __future__ import annotations

import csv
import errno
import html
import json
import os
import re
import socket
from html.parser import HTMLParser
from pathlib import Path
from unittest import mock

import pytest

from malleable import plots
from malleable.errors import ExecutionError, OutputError, UnknownKindError
from malleable.paper.cell_store import CellStore
from malleable.paper.contracts import NORMAL, QUICK, Findings, Table
from malleable.paper.manifest import manifest
from malleable.paper.reproduce import ExperimentError, all_experiments, reproduce
from malleable.paper.write import Chapter, publish
from malleable.plots import SUFFIXES
from support import paper_fakes
from support import paper_samples as samples

VOID = {"meta", "link", "img", "br", "input", "hr"}


# --- the page ---------------------------------------------------------------------------------------------


class Reader(HTMLParser):
    """Reads a page: ids, links, pictures, text; complains of tags that are not closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open, self.ids, self.links, self.pictures, self.badges = [], set(), [], [], []
        self.text, self.scripts, self.elements = "", [], []

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.elements.append((tag, given))
        if tag not in VOID:
            self.open.append(tag)
        if "id" in given:
            assert given["id"] not in self.ids, f"{given['id']} twice"
            self.ids.add(given["id"])
        if tag == "a":
            self.links.append(given["href"])
        if tag == "img":
            self.pictures.append(given["src"])
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            self.scripts[-1] += data
        elif self.open and self.open[-1] != "style":
            self.text += data


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """The samples, written to a folder."""
    folder = tmp_path_factory.mktemp("page")
    page, drawn = publish(samples.chapters(), QUICK, CellStore(folder))
    return page, drawn


@pytest.fixture(scope="module")
def read(published):
    """The page, read."""
    reader = Reader()
    reader.feed(published[0].read_text(encoding="utf-8"))
    reader.close()
    assert not reader.open
    return reader


def test_page_says_everything(read):
    """Titles, sources, statements, captions, verdicts with their numbers, remarks and cells are all shown."""
    wanted = []
    for chapter in samples.chapters():
        found = chapter.findings
        wanted += [found.title, found.source, found.statement, *found.remarks]
        wanted += [figure.caption for figure in found.figures]
        wanted += [text for verdict in found.verdicts for text in (verdict.statement, verdict.measured)]
        wanted += [table.title for table in found.tables]
    wanted += ["1.23457", "∞", "–", "yes", "✓ 1 holds", "✗ 1 fails", "? 1 undecided", "column 9"]
    wanted += ["β", "0.8", "3, 4, 7", "numpy", "quick"]
    assert [text for text in wanted if text not in read.text] == []


def test_nothing_is_read_as_markup(published, read):
    """Texts of experiments stand in the page as texts: no script or cell of theirs comes to be."""
    page = published[0].read_text(encoding="utf-8")
    assert "<script>alert" not in page
    assert html.escape(samples.NASTY, quote=False).split('"')[0] in page
    assert not [script for script in read.scripts if script.startswith("alert")]


def test_verdicts_are_linked(read):
    """The summary counts what holds and links the rest to its place; badges carry their word as a class."""
    assert "#e01_lines-verdict-1" not in read.links
    for number in (2, 3):
        assert f"#e01_lines-verdict-{number}" in read.links
    classes = [given.get("class", "") for tag, given in read.elements if tag == "span"]
    for word, places in (("holds", 2), ("fails", 3), ("undecided", 3), ("partly", 1)):
        assert classes.count(f"badge {word}") == places  # counted, if it does not hold named, in its section
    assert "1 of 3" in read.text


def test_links_lead_somewhere(published, read):
    """Every link leads to a place in the page or to a file beside it; all files of figures are offered."""
    folder = published[0].parent
    for link in read.links:
        if link.startswith("#"):
            assert link[1:] in read.ids
        else:
            assert (folder / link).is_file()
    for figure in samples.FIGURES:
        for suffix in (*SUFFIXES, "csv"):
            assert f"figures/{figure.name}.{suffix}" in read.links
    assert {"tables/wide.csv", "tables/hidden.csv"} <= set(read.links)


def test_page_is_alone(published, read):
    """The page holds plotly.js once and all its pictures, and forbids itself to fetch anything."""
    text = published[0].read_text(encoding="utf-8")
    assert text.count("Copyright 2012-") == 1
    assert len([script for script in read.scripts if len(script) > 1_000_000]) == 1
    assert len(read.pictures) == len(samples.FIGURES)
    assert all(picture.startswith("data:image/svg+xml,") for picture in read.pictures)
    policy = next(given["content"] for tag, given in read.elements if given.get("http-equiv"))
    assert "default-src 'none'" in policy
    sources = [given[key] for _, given in read.elements for key in ("src", "href") if key in given]
    assert not [source for source in sources if re.match(r"(https?:)?//", source)]
    assert any(given.get("name") == "viewport" for _, given in read.elements)


def test_drawings_are_in_the_page(read):
    """Each figure stands in the page as JSON, with its numbers."""
    drawings = [json.loads(script) for script in read.scripts if script.startswith('{"data"')]
    assert len(drawings) == len(samples.FIGURES)
    assert drawings[0] == plots.interactive(samples.MANY)


def test_tables_as_csv(published):
    """A table's file has its columns and all digits; a figure's file has all its points."""
    folder = published[0].parent
    with (folder / "tables/wide.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert rows[0]["cost"] == "1.23456789"
    assert rows[1]["policy"] == samples.NASTY
    with (folder / "figures/styles.csv").open(encoding="utf-8", newline="") as file:
        points = list(csv.DictReader(file))
    gap = [row for row in points if row["series"] == "both" and row["x"] == "32"]
    assert gap[0]["y"] == "nan"
    assert gap[0]["note"] == "32 cores"
    assert len([row for row in points if row["series"] == "marked"]) == 3


def test_findings_as_json(published):
    """Findings are on disk as strict JSON, down to the last point."""
    text = (published[0].parent / "findings/e01_lines.json").read_text(encoding="utf-8")
    found = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert found["verdicts"][0]["holds"] is True
    assert found["verdicts"][2]["holds"] is None
    assert found["figures"][1]["panels"][2]["series"][0]["y"][3] is None


def test_manifest_names_nobody(published):
    """The manifest tells seeds, versions, effort, choices and machine, but no host and no folder."""
    text = (published[0].parent / "manifest.json").read_text(encoding="utf-8")
    record = json.loads(text)
    assert record["seeds"] == {"e01_lines": [3, 4, 7], "e02_heat": []}
    assert {"malleable", "python", "numpy", "numba", "scipy", "plotly", "matplotlib"} <= set(
        record["versions"]
    )
    assert record["effort"]["name"] == "quick"
    assert record["choices"] == {"e01_lines": {"β": "0.8"}}
    assert record["machine"]["cores"] == os.cpu_count()
    assert socket.gethostname() not in text
    assert str(Path.home()) not in text
    assert str(published[0].parent) not in text


def test_page_without_figures(tmp_path):
    """An experiment may have nothing but a statement."""
    page, drawn = publish(
        (Chapter("e01_bare", Findings("Bare", "here", "Only words.")),), NORMAL, CellStore(tmp_path)
    )
    assert drawn == ()
    text = page.read_text(encoding="utf-8")
    assert "Only words." in text
    assert "Plotly" not in text


@pytest.mark.parametrize("name", ["../up", "a b", "", "a/b", ".hidden"])
def test_names_of_files(tmp_path, name):
    """A name that is none for a file is refused before anything is written."""
    findings = Findings("T", "s", "S.", tables=(Table(name, "T", {"a": (1,)}),))
    with pytest.raises(ExecutionError, match="no name for a file"):
        publish((Chapter("e01_x", findings),), QUICK, CellStore(tmp_path))
    assert not list(tmp_path.iterdir())


def test_seeds_anywhere():
    """Seeds are found wherever they stand in arguments and values; booleans and texts are none."""
    values = {"a": [{"seeds": [[1], 2]}, {"seed": True}], "b": {"deep": {"seed": 9}}, "seed": "none"}
    chapter = Chapter("e01_x", Findings("T", "s", "S."), {}, values, ({"seed": 4},))
    assert manifest((chapter,), QUICK)["seeds"] == {"e01_x": [1, 2, 4, 9]}


# --- the whole way, with tiny experiments -----------------------------------------------------------------


@pytest.fixture
def sketched(monkeypatch):
    """Pictures that cost nothing, where it matters only which are drawn; forked workers know it too."""

    def sketch(figure):
        return {suffix: f"<svg>{suffix} {plots.digest(figure)}</svg>".encode() for suffix in SUFFIXES}

    monkeypatch.setattr(plots, "draw_files", sketch)


def state(folder: Path) -> dict[str, int]:
    """When each file below a folder was written."""
    return {
        file.relative_to(folder).as_posix(): file.stat().st_mtime_ns
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }


def changed(before: dict[str, int], after: dict[str, int]) -> set[str]:
    """Files that were written in between."""
    return {name for name, time in after.items() if before.get(name) != time}


def lines(log: Path) -> list[str]:
    return log.read_text().splitlines() if log.exists() else []


@pytest.mark.usefixtures("sketched")
def test_rerun_writes_only_what_is_missing(tmp_path):
    """A second run writes nothing; when half of the folder is lost, exactly that half is made again."""
    log, out = paper_fakes.write(tmp_path, "e01_first", "e02_second"), tmp_path / "out"
    with paper_fakes.used(tmp_path):
        first = reproduce(out, QUICK)
        assert first.page == out / "index.html"
        assert len(lines(log)) == 6
        assert first.drawn == ("e01_first-a", "e01_first-b", "e02_second-a", "e02_second-b")
        full = state(out)
        assert len(full) == 6 + 4 * 4 + 2 + 2 + 3  # cells, figures, tables, findings; digests, manifest, page

        assert reproduce(out, QUICK).drawn == ()
        assert state(out) == full
        assert len(lines(log)) == 6

        lost = set(list(full)[::2])
        for name in lost:
            (out / name).unlink()
        again = reproduce(out, QUICK)
    assert changed(full, state(out)) == lost
    assert set(state(out)) == set(full)
    cells = [name for name in lost if name.startswith("cells/")]
    assert len(lines(log)) == 6 + len(cells)
    assert set(again.drawn) >= {Path(name).stem for name in lost if name.endswith((".svg", ".png", ".pdf"))}


@pytest.mark.usefixtures("sketched")
def test_changed_findings_are_drawn_again(tmp_path):
    """When findings change, their figures and the page follow, and nothing else does."""
    log, out = paper_fakes.write(tmp_path, "e01_first", "e02_second"), tmp_path / "out"
    with paper_fakes.used(tmp_path):
        reproduce(out, QUICK)
    before, computed = state(out), lines(log)
    paper_fakes.write(tmp_path, "e02_second", shift=1.0)
    with paper_fakes.used(tmp_path):
        found = reproduce(out, QUICK)
    assert found.drawn == ("e02_second-a", "e02_second-b")
    touched = changed(before, state(out))
    assert {"index.html", "figures/e02_second-a.svg", "tables/e02_second-table.csv"} <= touched
    assert not [name for name in touched if "e01_first" in name]
    assert lines(log) == computed


@pytest.mark.usefixtures("sketched")
def test_efforts_do_not_disturb_each_other(tmp_path):
    """A quick look into the folder of a longer run costs none of its cells."""
    log, out = paper_fakes.write(tmp_path, "e01_first"), tmp_path / "out"
    with paper_fakes.used(tmp_path):
        reproduce(out, NORMAL)
        reproduce(out, QUICK)
        computed = len(lines(log))
        reproduce(out, NORMAL)
    assert computed == 6
    assert len(lines(log)) == 6


@pytest.mark.usefixtures("sketched")
def test_only(tmp_path):
    """Experiments can be chosen by name; an unknown name is an error that offers one."""
    log, out = paper_fakes.write(tmp_path, "e01_first", "e02_second"), tmp_path / "out"
    with paper_fakes.used(tmp_path):
        found = reproduce(out, QUICK, ["e02_second"])
        assert [chapter.name for chapter in found.chapters] == ["e02_second"]
        assert {line.split()[0] for line in lines(log)} == {"e02_second"}
        with pytest.raises(UnknownKindError, match="e01_frist") as caught:
            reproduce(out, QUICK, ["e01_frist"])
    assert "e01_first" in caught.value.hint


@pytest.mark.usefixtures("sketched")
def test_infeasible_cells_are_kept(tmp_path):
    """An error that the model gives is a value like another: it is kept, and the point is left out."""
    log, out = paper_fakes.write(tmp_path, "e01_first", infeasible=1), tmp_path / "out"
    with paper_fakes.used(tmp_path):
        found = reproduce(out, QUICK)
        reproduce(out, QUICK)
    assert len(lines(log)) == 3
    assert found.chapters[0].values["c1"] == {"error": "load 1.5: too much work"}
    assert (
        json.loads((out / "findings/e01_first.json").read_text())["figures"][0]["panels"][0]["series"][0][
            "y"
        ][1]
        is None
    )


@pytest.mark.usefixtures("sketched")
def test_failed_cells_do_not_cost_the_page(tmp_path):
    """Findings that cannot do without a cell that was refused are open; others are published."""
    paper_fakes.write(tmp_path, "e01_first", raises=True, infeasible=1)
    paper_fakes.write(tmp_path, "e02_second")
    with paper_fakes.used(tmp_path):
        made = reproduce(tmp_path / "out", QUICK)
    first, second = made.to_dict()["verdicts"]
    assert first["holds"] is None
    assert first["measured"] == "c1: load 1.5: too much work"
    assert second["holds"] is True
    page = made.page.read_text(encoding="utf-8")
    assert "A tiny experiment." in page
    assert "load 1.5: too much work" in page
    assert "e01_first raised KeyError" in page


@pytest.mark.usefixtures("sketched")
def test_raising_findings_name_the_experiment(tmp_path):
    """Findings that raise are an error that names the experiment; its cells are kept."""
    log, out = paper_fakes.write(tmp_path, "e01_first", raises=True), tmp_path / "out"
    with paper_fakes.used(tmp_path):
        for _ in range(2):
            with pytest.raises(ExperimentError, match="e01_first raised KeyError") as caught:
                reproduce(out, QUICK)
    assert "in findings" in caught.value.trace
    assert len(lines(log)) == 3
    assert not (out / "index.html").exists()


@pytest.mark.usefixtures("sketched")
def test_a_bug_in_a_cell_names_the_cell(tmp_path):
    """What is no error of the model is raised as it is, with the name of the cell."""
    paper_fakes.write(tmp_path, "e01_first", wrong=1)
    with paper_fakes.used(tmp_path), pytest.raises(ZeroDivisionError) as caught:
        reproduce(tmp_path / "out", QUICK)
    assert caught.value.__notes__ == ["in e01_first/c1"]


@pytest.mark.usefixtures("sketched")
def test_a_dying_worker(tmp_path):
    """A worker that dies is an error, not a wait without end; the next run goes on."""
    out = tmp_path / "out"
    paper_fakes.write(tmp_path, "e01_first", fatal=0)
    with paper_fakes.used(tmp_path), pytest.raises(ExecutionError, match="a worker process died"):
        reproduce(out, QUICK)
    paper_fakes.write(tmp_path, "e01_first")
    with paper_fakes.used(tmp_path):
        assert reproduce(out, QUICK).page.exists()


@pytest.mark.usefixtures("sketched")
def test_figures_of_the_same_name(tmp_path):
    """Two experiments cannot write the same file."""
    paper_fakes.write(tmp_path, "e01_first", "e02_second", table="same")
    with paper_fakes.used(tmp_path), pytest.raises(ExecutionError, match="e01_first and e02_second both"):
        reproduce(tmp_path / "out", QUICK)


# --- folders that cannot be written to --------------------------------------------------------------------


@pytest.mark.usefixtures("sketched")
def test_no_folder_no_work(tmp_path):
    """Where no folder can be, that is said before anything is computed."""
    log = paper_fakes.write(tmp_path, "e01_first")
    (tmp_path / "file").write_text("")
    with paper_fakes.used(tmp_path), pytest.raises(OutputError, match="cannot write") as caught:
        reproduce(tmp_path / "file" / "out", QUICK)
    assert "--out" in caught.value.hint
    assert lines(log) == []


@pytest.mark.usefixtures("sketched")
@pytest.mark.parametrize("problem", [errno.EROFS, errno.ENOSPC, errno.EACCES])
def test_full_and_read_only_disks(tmp_path, problem):
    """A full or read-only disk is one clear line before anything is computed; no half of a file is left."""
    log, out = paper_fakes.write(tmp_path, "e01_first"), tmp_path / "out"

    def refuse(path, target):  # a file that came out short, on its way into place
        os.truncate(path, 10)
        raise OSError(problem, os.strerror(problem))

    broken = mock.patch.object(Path, "replace", refuse)
    with paper_fakes.used(tmp_path), broken, pytest.raises(OutputError) as caught:
        reproduce(out, QUICK)
    assert os.strerror(problem) in caught.value.sentence
    assert "\n" not in caught.value.sentence
    assert lines(log) == []
    assert state(out) == {}


@pytest.mark.usefixtures("sketched")
@pytest.mark.parametrize("stage", ["cells", "figures", "index"])
def test_disk_full_on_the_way(tmp_path, stage):
    """A disk that fills up later is the same clear error, in workers too; what is written is kept."""
    out = tmp_path / "out"
    paper_fakes.write(tmp_path, "e01_first")
    real = Path.replace

    def full(path, target):
        if stage in path.as_posix():
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(path, target)

    with paper_fakes.used(tmp_path):
        with mock.patch.object(Path, "replace", full), pytest.raises(OutputError, match="No space left"):
            reproduce(out, QUICK)
        assert not [name for name in state(out) if Path(name).name.startswith(".")]
        assert reproduce(out, QUICK).page.exists()


# --- the real experiments ---------------------------------------------------------------------------------


def test_names_of_experiments():
    """Every experiment has the two functions, says what it is for, and its choices are texts."""
    found = all_experiments()
    assert found
    for experiment in found:
        assert re.fullmatch(r"e\d\d[a-z]?_[a-z_]+", experiment.name)
        assert experiment.module.__doc__
        assert callable(experiment.module.cells)
        assert callable(experiment.module.findings)
        assert all(isinstance(key, str) and isinstance(text, str) for key, text in experiment.choices.items())
