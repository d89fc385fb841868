"""The dashboard in a real browser: what the broker says is to be seen, on a desk, on a phone, in the dark."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from malleable.live.broker.page import FILES, HEADERS
from malleable.live.core.events import CoresChanged, Finished
from support.browser import DESK, KEPT, PATIENCE, PHONE, chromium
from support.live_documents import NASTY, START, Machine, busy_machine
from support.page_server import TOKEN, PageServer

SCREENS = {
    "desk": DESK,
    "phone": PHONE,
    "narrow": {**PHONE, "viewport": {"width": 320, "height": 640}},
    "dark": {**DESK, "color_scheme": "dark", "reduced_motion": "reduce"},
}
MACHINES = {
    "none": lambda: Machine(8),
    "two": lambda: busy_machine(2, 8),
    "fifty": lambda: busy_machine(50, 64, ("sweep", "build", "etl", "train", "index")),
}


@pytest.fixture(scope="module")
def browser():
    with chromium() as running:
        yield running


@pytest.fixture(scope="module")
def machines():
    """Machines with no, two and fifty jobs; none is changed by a test."""
    made = {}

    def get(name):
        if name not in made:
            made[name] = MACHINES[name]()
        return made[name]

    yield get
    for one in made.values():
        one.close()


class Visit:
    """A page opened on some screen, with all that it said and asked for."""

    def __init__(self, browser, address, **screen):
        self.context = browser.new_context(**screen)
        self.context.set_default_timeout(PATIENCE)
        self.page = self.context.new_page()
        self.said, self.asked = [], []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(address)
        self.page.wait_for_selector("#connection[data-state=live]")

    def text(self, selector):
        return self.page.locator(selector).inner_text()

    def wait_for(self, expression):
        """Until it holds; asked from outside, as the page may not evaluate text."""
        for _ in range(PATIENCE // 50):
            if self.page.evaluate(f"!!({expression})"):
                return
            time.sleep(0.05)
        pytest.fail(f"never: {expression}")


@pytest.fixture
def visit(browser, request):
    """Open a page on a server that stands in for the broker's."""
    opened = []

    def start(status, history, **screen):
        server = PageServer(status, history)
        opened.append((server, None))
        seen = Visit(browser, server.address, **(screen or DESK))
        opened[-1] = (server, seen)
        return server, seen

    yield start
    for server, seen in opened:
        if seen is not None:
            seen.context.close()
        server.close()


@pytest.fixture
def changing():
    """A machine whose jobs come and go."""
    made = Machine(8, "equi")
    yield made
    made.close()


@pytest.mark.parametrize(
    ("name", "screen"),
    [
        ("fifty", "narrow"),
        pytest.param("two", "dark", marks=pytest.mark.slow),
        pytest.param("none", "phone", marks=pytest.mark.slow),
        pytest.param("fifty", "desk", marks=pytest.mark.slow),
        pytest.param("none", "desk", marks=pytest.mark.slow),
        pytest.param("two", "desk", marks=pytest.mark.slow),
        pytest.param("two", "phone", marks=pytest.mark.slow),
        pytest.param("fifty", "dark", marks=pytest.mark.slow),
    ],
)
def test_everything_is_there(visit, machines, tmp_path, name, screen):
    """With no, two and fifty jobs: nothing is complained of, fetched elsewhere, or sticks out at the side."""
    machine = machines(name)
    status = machine.status()
    server, seen = visit(status, machine.history.document(), **SCREENS[screen])
    seen.wait_for("document.querySelectorAll('#cores-chart .tick').length > 3")
    seen.wait_for("performance.getEntriesByType('resource').some((one) => one.name.includes('v1/jobs'))")
    assert seen.said == []
    assert {url.removeprefix(server.address) for url in seen.asked if not url.startswith("data:")} == {
        *("" if path == "/" else path[1:] for path in FILES),
        *("v1/status", "v1/history", "v1/events?most=200", "v1/jobs?ended=20&present=false"),
    }
    width = SCREENS[screen]["viewport"]["width"]
    assert seen.page.evaluate("document.documentElement.scrollWidth") <= width
    assert seen.page.locator("tr.job").count() == len(status["jobs"])
    assert seen.text("#fact-jobs") == str(len(status["jobs"]))
    assert seen.text("#fact-cores") == f"{status['granted']} of {status['cores']}"
    pieces = seen.page.locator("#bar .piece:not([hidden])")
    busy = sum(job["granted"] > 0 for job in status["jobs"])
    assert pieces.count() == busy + (status["granted"] < status["cores"])
    observed = sum(bool(one["points"]) for one in status["classes"])
    assert seen.page.locator("#speedups figure").count() == observed
    assert seen.page.locator("#waiting").is_visible() == (status["waiting"] > 0)
    folder = Path(KEPT) if KEPT else tmp_path
    folder.mkdir(parents=True, exist_ok=True)
    seen.page.screenshot(path=folder / f"{name}-{screen}.png", full_page=True)


def test_what_changes_is_seen(visit, changing):
    """A job that comes, grows, shrinks and ends is shown so, without loading anything again."""
    server, seen = visit(changing.status(), changing.history.document())
    assert seen.page.locator("#no-jobs").is_visible()
    changing.join("first", "sweep", units=1e4)
    changing.run(3)
    server.send(changing.status())
    seen.page.wait_for_selector("tr.job")
    assert seen.text("td[data-label=Cores]") == "8"
    changing.join("second", "etl", units=1e4, weight=3.0)
    changing.run(3)
    server.send(changing.status())
    seen.wait_for("document.querySelectorAll('tr.job').length === 2")
    assert [cell.inner_text() for cell in seen.page.locator("td[data-label=Cores]").all()] == ["4", "4"]
    assert [cell.inner_text() for cell in seen.page.locator("td[data-label=Weight]").all()] == ["1", "3"]
    seen.wait_for("document.querySelectorAll('#cores-chart .share').length === 2")
    changing.broker.tell(Finished("first"))
    changing.run(1)
    server.send(changing.status())
    seen.wait_for("document.querySelectorAll('tr.job').length === 1")
    assert seen.text("td[data-label=Cores]") == "8"
    assert "1 finished" in seen.text("#more-jobs")
    assert "above the bound" in seen.text("#more-cost")
    assert seen.said == []
    assert len([url for url in seen.asked if "/v1/" in url and "/v1/jobs" not in url]) == 3


def test_until_the_broker_answers_it_is_connecting(browser, changing):
    """A page that has heard nothing yet does not say that there are no jobs."""
    server = PageServer(changing.status(), changing.history.document())
    context = browser.new_context(**DESK)
    try:
        page = context.new_page()
        page.route("**/v1/*", lambda _route: None)  # never answered
        page.goto(server.address)
        assert page.locator("#connecting").is_visible()
        assert not page.locator("#no-jobs").is_visible()
        assert not page.locator("#jobs").is_visible()
    finally:
        context.close()
        server.close()


def test_the_price_is_called_an_index(visit, machines):
    """The price of a core is what divides the cores; nothing on the page calls it a saving."""
    machine = machines("two")
    _, seen = visit(machine.status(), machine.history.document())
    assert "index" in seen.text("#more-price")
    assert not re.search(r"saved|(?<!not what )one more core would save", seen.text("body"))


def test_who_waits_is_on_top(visit, changing):
    """Jobs without cores and how long they wait stand before all but the numbers, the longest wait first."""
    changing.broker.tell(CoresChanged(1))
    for job in ("first", "second", "third"):
        changing.join(job, "sweep", units=1e4, never_pause=True)
        changing.run(30)
    _, seen = visit(changing.status(), changing.history.document())
    assert seen.page.locator("main > section").nth(1).get_attribute("id") == "waiting"
    shown = seen.page.locator("#waiting-list li").all_inner_texts()
    assert [re.sub(r":.*", "", text) for text in shown] == ["second", "third"]
    assert re.search(r": (1 min|59 s|1 min 1 s), not started", shown[0]), shown
    assert "2 waiting up to 1 min" in seen.text("#more-jobs")


def test_ended_programs_have_logs(visit, changing):
    """The last programs that ended are listed with outcome and times; their output is there for the token."""
    server, seen = visit(changing.status(), changing.history.document())
    assert not seen.page.locator("#ended-programs").is_visible()
    times = {"submitted": START, "started": START + 5.0, "ended": START + 65.0}
    known = {"command": ["make", NASTY], "reason": "", "removed": False, **times}
    server.ended = [
        {"id": "1", "state": "finished", "exit_code": 0, **known},
        {"id": "2", "state": "failed", "exit_code": 3, **known},
    ]
    server.logs = {"2": {"out": f"hello\n{NASTY}\n", "err": "oh\n"}}
    server.send({**changing.status(), "ended": {"finished": 1, "failed": 1}})
    seen.page.wait_for_selector("#ended tr.job")
    last = seen.page.locator("#ended tr.job").first
    assert {"2", "failed, 3", "5.0 s", "1 min"} <= set(re.split(r"[\t\n]", last.inner_text()))
    last.locator("button").click()
    seen.wait_for("document.querySelector('#ended .log').textContent.includes('token')")
    seen.page.evaluate(f"sessionStorage.setItem('malleable-token', '{TOKEN}')")
    last.locator("button").click()
    last.locator("button").click()
    seen.wait_for("document.querySelector('#ended .log').textContent.includes('oh')")
    assert seen.page.locator("#ended .log").first.inner_text() == f"hello\n{NASTY}\noh"


def test_what_is_left_is_marked_where_it_is_an_estimate(visit, changing):
    """A job that has told neither its size nor its progress has ≈ before the time that is left."""
    changing.join("known", "sweep", units=1e4)
    changing.run(3)
    changing.join("guessed", "etl", units=None)
    _, seen = visit(changing.status(), changing.history.document())
    rows = seen.page.locator("#jobs tr.job").all()
    texts = {
        row.locator(".name").first.inner_text(): row.locator("[data-label=Left]").inner_text() for row in rows
    }
    assert texts["guessed"].startswith("≈")
    assert not texts["known"].startswith("≈")


def test_names_are_text(visit, changing):
    """Whatever names jobs and classes have, they are shown as they are, and nothing is carried out."""
    changing.join(NASTY, NASTY, units=100.0)
    changing.join("b", "__proto__", units=100.0)
    changing.extra[NASTY] = {"kind": "program", "command": ["sh", "-c", "<script>alert(1)</script>"]}
    changing.run(3)
    _, seen = visit(changing.status(), changing.history.document())
    seen.page.locator("button.open").first.click()
    assert seen.text("tr.job >> nth=0 >> button.open >> .name") == NASTY
    assert seen.text("tr.job >> nth=0 >> button.open >> .command") == "sh -c <script>alert(1)</script>"
    assert NASTY in seen.text("#legend")
    assert "__proto__: 4 cores, 1 job" in seen.text("#legend")
    assert "<script>alert(1)</script>" in seen.text("tr.detail")
    assert seen.page.locator("main img, main script").count() == 0
    assert seen.said == []


@pytest.mark.parametrize("screen", ["desk", "narrow"])
def test_long_names_stay_within_the_page(visit, changing, screen):
    """Names of 200 letters, and a command of many words, do not make the page wider than the screen."""
    changing.join("j" * 200, "c" * 200, units=1e5)
    changing.join("w" * 200, "d" * 200, units=1e5)
    changing.extra["j" * 200] = {"kind": "program", "command": ["word"] * 100}
    changing.run(5)
    _, seen = visit(changing.status(), changing.history.document(), **SCREENS[screen])
    seen.page.locator("button.open").first.click()
    width = SCREENS[screen]["viewport"]["width"]
    assert seen.page.evaluate("document.documentElement.scrollWidth") <= width
    # The headings of the columns are there for screen readers only on a phone.
    right = "[...document.querySelectorAll('main :not(thead *)')].map(e => e.getBoundingClientRect().right)"
    assert seen.page.evaluate(f"Math.max(...{right})") <= width


def test_a_job_opens(visit, machines):
    """A row opens by keyboard, stays open while jobs change, and shows the job's width over time."""
    machine = machines("two")
    server, seen = visit(machine.status(), machine.history.document())
    button = seen.page.locator("button.open").first
    button.focus()
    seen.page.keyboard.press("Enter")
    assert button.get_attribute("aria-expanded") == "true"
    assert seen.page.locator(f"#{button.get_attribute('aria-controls')} .share").count() == 1
    status = machine.status()
    later = {**status, "time": status["time"] + 5.0, "jobs": status["jobs"][::-1]}
    server.send(later)
    seen.wait_for("document.querySelectorAll('tr.job button')[0].getAttribute('aria-expanded') === 'false'")
    assert seen.page.locator("tr.detail").count() == 1
    assert seen.page.locator("tr.job + tr.detail").count() == 1
    assert "wanted by the policy" in seen.text("tr.detail")
    assert not seen.page.locator("tr.detail form").is_visible()


def test_times_can_be_read(visit, machines):
    """Arrow keys move through time; the words beside the chart say who had how many cores then."""
    machine = machines("two")
    _, seen = visit(machine.status(), machine.history.document())
    seen.wait_for("document.querySelector('#cores-chart .share')")
    before = seen.text("#readout")
    seen.page.locator("#cores-chart").focus()
    for _ in range(20):
        seen.page.keyboard.press("ArrowLeft")
    after = seen.text("#readout")
    assert after != before
    assert re.match(r"\d\d:\d\d:\d\d .*\(\d+ jobs?\)", after)
    seen.page.get_by_role("button", name="all").click()
    assert seen.page.locator("[aria-pressed=true]").inner_text() == "all"


def test_read_only_without_a_token(visit, machines):
    """Changes need the token; it is kept for the tab, sent as such, and can be forgotten."""
    machine = machines("two")
    status = machine.status()
    server, seen = visit(status, machine.history.document())
    seen.page.locator("button.open").first.click()
    form = seen.page.locator("tr.detail form")
    assert not form.is_visible()
    seen.page.locator("#access-summary").click()
    seen.page.fill("#token", "wrong")
    seen.page.get_by_role("button", name="Use it").click()
    form.get_by_label("Weight").fill("4.5")
    form.get_by_role("button", name="Change").click()
    seen.wait_for("document.querySelector('tr.detail [role=status]').textContent.includes('not accepted')")
    assert server.changes == []
    seen.said.clear()  # the browser tells of the 401

    seen.page.locator("#access-summary").click()
    seen.page.get_by_role("button", name="Forget the token").click()
    assert not form.is_visible()
    seen.page.locator("#access-summary").click()
    seen.page.fill("#token", TOKEN)
    seen.page.get_by_role("button", name="Use it").click()
    form.get_by_role("button", name="Change").click()
    seen.wait_for("document.querySelector('tr.detail [role=status]').textContent.includes('4.5')")
    cancel = form.get_by_role("button", name="Cancel")
    cancel.click()
    assert len(server.changes) == 1
    cancel.click()
    seen.wait_for("document.querySelector('tr.detail [role=status]').textContent.includes('asked')")
    job = status["jobs"][0]["id"]
    assert server.changes == [
        ("PATCH", f"/v1/jobs/{job}", {"weight": 4.5}),
        ("DELETE", f"/v1/jobs/{job}", None),
    ]
    assert seen.page.evaluate("localStorage.length") == 0
    assert seen.said == []


def test_the_broker_goes_and_comes(visit, machines):
    """When the broker is gone the page says so and since when; when it is back, it shows it."""
    machine = machines("two")
    server, seen = visit(machine.status(), machine.history.document())
    port = server.port
    server.close()
    seen.page.wait_for_selector("#connection[data-state=gone]")
    assert "does not answer" in seen.text("#notice")
    assert re.search(r"\d\d:\d\d:\d\d", seen.text("#notice"))
    assert seen.page.locator("tr.job").count() == 2
    server.start(port)
    seen.page.wait_for_selector("#connection[data-state=live]")
    seen.page.locator("#notice").wait_for(state="hidden")


def test_a_policy_with_a_problem(visit, machines):
    """What is wrong with the policy stands above everything else, and a machine that drains says so."""
    machine = machines("none")
    status = {**machine.status(), "problem": "no plan for <b>9</b> classes", "draining": True}
    server, seen = visit(status, machine.history.document())
    assert "no plan for <b>9</b> classes" in seen.text("#notice")
    assert "draining" in seen.text("#machine")
    server.send(machine.status() | {"time": status["time"] + 1.0})
    seen.page.locator("#notice").wait_for(state="hidden")


def test_very_many_jobs(visit, machines):
    """Of thousands of jobs some are shown, and it is said how many are not."""
    status = machines("fifty").status()
    jobs = [{**job, "id": f"{job['id']}-{k}"} for k in range(60) for job in status["jobs"]]
    shown = {**status, "jobs": jobs, "present": 3000}
    _, seen = visit(shown, machines("fifty").history.document())
    assert seen.page.locator("tr.job").count() == 200
    assert "2,800 more jobs" in seen.text("#more-rows")
    assert seen.said == []


def test_for_screen_readers(visit, machines):
    """On a phone the cards are still a table with headers, and every drawing has words."""
    machine = machines("two")
    _, seen = visit(machine.status(), machine.history.document(), **PHONE)
    assert seen.page.get_by_role("table", name="Jobs").get_by_role("row").count() == 3
    assert seen.page.get_by_role("columnheader").count() == 8
    assert seen.page.get_by_role("rowheader").count() == 2
    seen.wait_for("[...document.querySelectorAll('[role=img]')].every(e => e.getAttribute('aria-label'))")
    unnamed = (
        "[...document.querySelectorAll('button, input')].filter(e => !e.textContent && !e.labels?.length)"
    )
    assert seen.page.evaluate(f"{unnamed}.length") == 0


def test_files_are_text_of_ours():
    """Every file of the page is listed, none names another host, and scripts insert text as text only."""
    folder = Path(__file__).parents[4] / "src" / "malleable" / "live" / "broker" / "page"
    names = {file.name for file in FILES.values()}
    assert names == {path.name for path in folder.iterdir() if path.suffix not in {".py", ".pyc", ""}}
    for file in FILES.values():
        text = file.text().replace("http://www.w3.org/2000/svg", "")
        assert "http:" not in text
        assert "https:" not in text
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", text)
    assert "default-src 'none'" in HEADERS["Content-Security-Policy"]


def test_ages_go_on(visit, machines):
    """While nothing happens the broker sends nothing, and ages grow all the same."""
    machine = machines("two")
    _, seen = visit(machine.status(), machine.history.document())
    first = seen.page.locator("td[data-label=Age]").first.inner_text()
    for _ in range(600):
        if seen.page.locator("td[data-label=Age]").first.inner_text() != first:
            return
        time.sleep(0.1)
    pytest.fail("the age stood still for a minute")
