"""The page about a replay, in a real browser: everything drawn, nothing fetched, nothing complained of."""

from pathlib import Path

import pytest

from malleable import api, plots
from malleable.errors import OutputError
from malleable.plots.replay_figures import Clock, mounting, replay_figures
from malleable.reports import write_replay
from malleable.reports.replay_page import practice_of, sentences
from malleable.traces import read_trace
from support.browser import DESK, KEPT, PHONE, Visit, chromium
from support.log_samples import SACCT
from support.logs import written

DAY = "2026-03-01T"


def line(i):
    """A job that comes every ten minutes, waits for seconds and runs for an hour."""
    hour, minute = 8 + i // 6, 10 * (i % 6)
    submit, start = f"{DAY}{hour:02}:{minute:02}:00", f"{DAY}{hour:02}:{minute:02}:{i:02}"
    user, name = ("ann", "bob", "eve")[i % 3], ("fit", "gen")[i % 2]
    end = f"{DAY}{hour + 1:02}:{minute:02}:00"
    return f"{20 + i}|{user}|hep|p|COMPLETED|{submit}|{start}|{end}||{2 ** (i % 5)}||UNLIMITED|{name}\n"


LINES = "".join(map(line, range(40)))


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    trace = read_trace(written(tmp_path_factory.mktemp("log"), SACCT + LINES))
    return api.replay(trace, 64, "wham,easy,fcfs", shares="0,100", resample=3)


@pytest.fixture(scope="module")
def page(found, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        # One picture stands for all: drawing them takes longer than all else.
        picture = plots.draw_picture(next(iter(replay_figures(found, practice_of(found)).values())))
        patch.setattr(plots, "draw_picture", lambda _: picture)
        return write_replay(found, tmp_path_factory.mktemp("page") / "replay.html")


def test_every_part_is_there(found, page):
    """Summary, costs, time, Gantt, slowdowns, users, calendar, blame, shares and assumptions."""
    text = page.read_text(encoding="utf-8")
    parts = "summary costs over-time gantt slowdowns users calendar blame shares assumptions"
    for part in parts.split():
        assert f'<section id="{part}"' in text
        assert f'href="#{part}"' in text
    for assumption in found.jobs.assumptions:
        assert assumption in text
    assert len(sentences(found, practice_of(found))) == 3
    assert practice_of(found).policy == "the log itself"


def test_losses_end_at_the_gap(found):
    """The curve of cost over time against the bound rises to cost less bound."""
    clock = Clock(found)
    for fault in found.faults.values():
        curve = mounting(fault, found, clock.grid(50))
        assert curve[0] == pytest.approx(0.0, abs=1e-9)
        assert (curve[1:] >= curve[:-1] - 1e-9).all()
        assert curve[-1] == pytest.approx(fault.total)


@pytest.mark.parametrize("place", ["page.pdf", "page", "folder/"])
def test_a_page_is_html(found, tmp_path, place):
    """Other endings are refused in one line, and nothing is written."""
    with pytest.raises(OutputError, match="names no page"):
        write_replay(found, str(tmp_path / place))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "screen"), [("desk", DESK), pytest.param("phone", PHONE, marks=pytest.mark.slow)]
)
def test_opens_from_disk(page, tmp_path, name, screen):
    """All plots are drawn; no message, no request, nothing that sticks out at the side; pictures on paper."""
    with chromium() as browser:
        seen = Visit(browser, page, **screen)
        assert seen.said == []
        assert [url for url in seen.asked if not url.startswith(("data:", "blob:"))] == [page.as_uri()]
        drawn = seen.page.evaluate("window.malleablePlots")
        assert drawn["failed"] == 0
        assert drawn["total"] == len(seen.shown(".plot")) >= 11
        assert seen.page.evaluate("document.documentElement.scrollWidth") <= screen["viewport"]["width"]
        folder = Path(KEPT) if KEPT else tmp_path
        assert len(seen.page.screenshot(path=folder / f"replay-{name}.png", full_page=True)) > 50_000
        seen.page.emulate_media(media="print")
        assert all(size == (0.0, 0.0) for size in seen.shown(".plot"))
        assert all(min(size) > 100.0 for size in seen.shown(".static"))
