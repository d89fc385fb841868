"""From findings to the page: nothing wrong is hidden, all is on the page, and it stands alone."""

from __future__ import annotations

import csv
import html
import json
import os
import re
import socket
from html.parser import HTMLParser
from pathlib import Path

import pytest

from malleable import plots
from malleable.errors import ExecutionError
from malleable.paper.cell_store import CellStore
from malleable.paper.contracts import NORMAL, QUICK, Findings, Table
from malleable.paper.manifest import manifest
from malleable.paper.write import Chapter, publish
from malleable.plots import SUFFIXES
from support import paper_samples as samples

VOID = {"meta", "link", "img", "br", "input", "hr"}


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


def test_manifest_names_no_host(published):
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
