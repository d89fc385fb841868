"""From cells to files: nothing is computed or drawn twice, and what fails is named."""

from __future__ import annotations

import errno
import json
import os
import re
from pathlib import Path
from unittest import mock

import pytest

from malleable import plots
from malleable.errors import ExecutionError, OutputError, UnknownKindError
from malleable.paper.contracts import NORMAL, QUICK
from malleable.paper.reproduce import FIGURES, ExperimentError, all_experiments, reproduce
from malleable.plots import SUFFIXES
from support import paper_fakes

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


@pytest.mark.parametrize(("figure", "experiment"), FIGURES.items())
def test_figures_of_the_paper_have_names(figure, experiment):
    """`--only fig2a` is the experiment whose findings say that they are the paper's figure 2a."""
    (found,) = all_experiments([figure])
    assert found.name == experiment
    source = Path(found.module.findings.__globals__["__file__"]).read_text(encoding="utf-8")
    assert f'source="Figure {figure.removeprefix("fig")}: ' in source
