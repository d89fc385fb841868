"""The verbs of the broker, at a real `malleable serve`: output, statuses, and one line for errors."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from malleable.cli._live import duration
from malleable.live.broker.http_client import BrokerClient
from malleable.live.core.events import Registered
from support.broker_server import broker_thread, serve_process, short_folder
from support.cli_checks import REFERENCE, assert_one_line
from support.json_keys import keys
from support.living import wait_until
from support.shell import PATIENCE, malleable, shown_on_terminal

VERBS = ["status", "status 1", "submit -- true", "logs 1", "logs -f 1", "cancel 1", "set --cores 1", "drain"]


@pytest.fixture(scope="module")
def broker():
    with serve_process("--port", "0") as made:
        yield made


def run(broker, *arguments):
    """A verb in this process, which is faster, in the folder next to the broker's."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("MALLEABLE_HOME", "MALLEABLE_STATE", "OF_THE_USER"):
            patch.setenv(name, broker.environment.get(name, ""))
        patch.chdir(broker.state.parent)
        return malleable(*arguments)


def document(broker, verb, *arguments):
    done = run(broker, verb, "--json", *arguments)
    assert (done.status, done.err) == (0, ""), done
    return json.loads(done.out)


def state(broker, job):
    with BrokerClient(broker.path) as client:
        return client.job(job)["state"]


@pytest.mark.parametrize("verb", VERBS)
def test_without_a_broker_one_line_says_so(verb, monkeypatch, tmp_path):
    """Every verb that needs a broker says in one line that none runs, and how to start one."""
    monkeypatch.setenv("MALLEABLE_HOME", str(tmp_path / "none"))
    assert_one_line(malleable(*verb.split()), "no broker runs", "malleable serve")


def test_serve_says_where_it_listens(broker):
    """One line with the socket, the page and the token; the page is there."""
    words = broker.line.split()
    assert str(broker.path) in words
    page = next(word for word in words if word.startswith("http://127.0.0.1:"))
    assert httpx.get(page).status_code == 200
    assert (broker.home / "token").stat().st_mode & 0o777 == 0o600


def test_a_second_broker_is_refused(broker):
    """One line names the process that runs; that one goes on."""
    assert_one_line(run(broker, "serve"), f"process {broker.process.pid}")
    assert run(broker, "status").status == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--cores", "0"), ("cores",)),
        (("--cores", "many"), ("cores",)),
        (("--cores", "100000"), ("CPUs",)),
        (("--policy", "whamm"), ("whamm", "wham")),
        (("--workload", "nothing.toml"), ("nothing.toml",)),
        (("--memory", "much"), ("memory", "4G")),
        (("--port", "99999"), ("port",)),
        (("--keep", "7w"), ("7w", "7d")),
        (("--grace", "short"), ("grace",)),
        (("--grace", "-1"), ("grace must be at least 0", "-1")),
        (("--grace", "inf"), ("grace must be at least 0", "inf")),
        (("--paused-at-most", "-1"), ("paused-at-most",)),
    ],
)
def test_wrong_options_of_serve_are_one_line(options, words, monkeypatch):
    """What `serve` cannot do is one line and a hint, before anything listens."""
    monkeypatch.setattr("malleable.live.broker.server.run._answer", pytest.fail)
    with short_folder() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("MALLEABLE_HOME", str(folder / "home"))
        patch.setenv("MALLEABLE_STATE", str(folder / "state"))
        assert_one_line(malleable("serve", *options), *words)
        assert not (folder / "home" / "broker.sock").exists()


def test_waiting_shows_output_and_hands_on_the_status(broker):
    """`submit --wait` is like running the command: its output, both streams, and its exit status."""
    done = run(broker, "submit", "--wait", "--", "sh", "-c", "echo here; echo there >&2; pwd; exit 7")
    assert (done.status, done.err) == (7, "there\n")
    assert done.out.splitlines() == ["here", str(broker.state.parent)]
    found = run(broker, "submit", "--wait", "--json", "--", "sh", "-c", "kill -9 $$")
    assert (found.status, json.loads(found.out)["exit_code"]) == (137, -9)
    assert run(broker, "submit", "--wait", "--", "no-such-program").status != 0


def test_submitted_programs_have_the_variables_of_their_user(broker):
    """A program has the variables of the shell that it was submitted from, and its own output."""
    broker.environment["OF_THE_USER"] = "seen"
    job = run(
        broker, "submit", "--", "sh", "-c", "echo $OF_THE_USER $MALLEABLE_CORES; echo no >&2"
    ).out.strip()
    wait_until(lambda: state(broker, job) == "finished")
    assert run(broker, "logs", job).out == f"seen {document(broker, 'status')['cores']}\n"
    assert run(broker, "logs", job, "--err").out == "no\n"
    assert run(broker, "logs", "--follow", job).out.startswith("seen ")


def test_bytes_that_are_not_utf8(broker, tmp_path):
    """Words, variables and the folder reach a program byte for byte; tables and JSON show them escaped."""
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/f\xff"))
    folder.mkdir()
    script = "import os, sys; here, name = os.getcwdb(), os.environb[b'NAME\\xff']\n"
    script += "sys.stdout.buffer.write(here + os.fsencode(sys.argv[1]) + name)"
    done = subprocess.run(
        [sys.executable, "-m", "malleable", "submit", "--wait", "--", sys.executable, "-c", script, b"w\xe9"],
        env={**broker.environment, "NAME\udcff": "v\udcff"},
        cwd=folder,
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == os.fsencode(folder) + b"w\xe9v\xff"
    last = document(broker, "status", "--ended", "1")["jobs"][-1]
    assert (last["folder"], last["command"][-1]) == (str(folder), "w\udce9")
    assert "w\\udce9" in run(broker, "status", last["id"]).out
    for refused in (
        ("submit", "--class", "c\udcff", "--", "true"),
        ("status", "j\udcff"),
        ("logs", "j\udcff"),
    ):
        assert_one_line(run(broker, *refused))


def test_a_reader_that_goes_away_ends_the_program(broker):
    """`submit --wait -- yes | head -1` ends like `yes | head -1`: at once, without a traceback."""
    command = [sys.executable, "-m", "malleable", "submit", "--wait", "--", "yes"]
    with subprocess.Popen(
        command, env=broker.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8"
    ) as process:
        assert process.stdout.readline() == "y\n"
        process.stdout.close()
        assert process.wait(PATIENCE) == 128 + signal.SIGPIPE
        job = process.stderr.read().split()[-1]
    assert state(broker, job) == "cancelled"


def submit_with(broker, stdin, *command, options=("--wait",)):
    """Start `submit` with a file as standard input."""
    return subprocess.Popen(
        [sys.executable, "-m", "malleable", "submit", *options, "--", *command],
        env=broker.environment, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
    )  # fmt: skip


def test_waiting_passes_standard_input_on(broker):
    """`submit --wait` reads what the command would: a pipe that goes on while it runs, to its end."""
    with submit_with(broker, subprocess.PIPE, "sh", "-c", "read first; echo $first; cat") as process:
        process.stdin.write("one\n")
        process.stdin.flush()
        assert process.stdout.readline() == "one\n"
        process.stdin.write("two\n")
        assert process.communicate(timeout=PATIENCE) == ("two\n", "")


def test_a_file_is_read_from_where_it_stands(broker, tmp_path):
    """What was read of a file before is not read again, and a program that reads nothing takes nothing."""
    (tmp_path / "list").write_text("one\ntwo\nthree\n")
    with (tmp_path / "list").open() as file:
        os.lseek(file.fileno(), 4, os.SEEK_SET)
        for command, out in ((["true"], ""), (["cat"], "two\nthree\n")):
            with submit_with(broker, file, *command) as process:
                assert process.communicate(timeout=PATIENCE) == (out, "")


def test_a_socket_is_passed_on(broker):
    """Where standard input cannot be opened a second time, it is copied."""
    ours, theirs = socket.socketpair()
    with ours, submit_with(broker, theirs, "cat") as process:
        theirs.close()
        ours.sendall(b"x" * 200_000)
        ours.shutdown(socket.SHUT_WR)
        assert process.communicate(timeout=PATIENCE) == ("x" * 200_000, "")


def test_ctrl_c_while_the_program_reads(broker):
    """A program that waits for standard input is cancelled by Ctrl-C, like any other."""
    with submit_with(broker, subprocess.PIPE, "sh", "-c", "echo go; cat") as process:
        assert process.stdout.readline() == "go\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 130
        assert process.stderr.readline().startswith("cancelling job")


def test_standard_input_that_is_gone(broker):
    """A program whose input has gone before it started does not run with an empty one: one line says why."""
    assert run(broker, "set", "--cores", "0").status == 0
    with submit_with(broker, subprocess.PIPE, "cat") as process:
        with BrokerClient(broker.path) as client:
            (job,) = wait_until(lambda: [job["id"] for job in client.jobs(0) if job["command"] == ["cat"]])
        process.kill()
    assert run(broker, "set", "--cores", "1").status == 0
    wait_until(lambda: state(broker, job) == "failed")
    assert "its standard input cannot be read" in run(broker, "logs", "--err", job).out


def test_detached_one_line_says_that_input_is_not_passed_on(broker, tmp_path):
    """Without `--wait` a line on stderr says what is dropped; nothing is said where nothing is."""
    (tmp_path / "some").write_text("x\n")
    for name, said in (("some", True), ("/dev/null", False)):
        with (tmp_path / name).open() as file, submit_with(broker, file, "true", options=()) as process:
            out, err = process.communicate(timeout=PATIENCE)
        assert out.strip().isdecimal()
        line = f"job {out.strip()} does not read standard input: --wait passes it on\n"
        assert err == (line if said else "")


def test_jobs_are_shown_changed_and_cancelled(broker):
    """A program that runs is in the table with its cores, can be made heavier, and ends when asked."""
    known = ("--class", "long", "--size", "3600", "--max-cores", "1")
    job = document(broker, "submit", *known, "--", "sleep", "600")["id"]
    wait_until(lambda: state(broker, job) == "running")
    shown = run(broker, "status").out
    assert {job, "long", "running", "sleep"} <= set(shown.split())
    found = document(broker, "status", job)
    assert (found["class"], found["max_cores"], found["target"]) == ("long", 1, 1)
    shown = run(broker, "status", job).out
    assert "sleep 600" in shown
    for word in ("waited", "elapsed", "CPU time"):
        assert re.search(rf"{word} +[\d.]+ s", shown), shown
    assert not {"job_class", "cancel_asked", "in_use", "target", "kind", "None"} & set(shown.split())
    assert not re.search(r"\d{9}", shown), "a time in seconds since 1970"
    assert document(broker, "set", job, "--weight", "4")["weight"] == 4.0
    assert run(broker, "set", job, "--class", "other").out == f"job {job}: class other, weight 4\n"
    assert run(broker, "cancel", job).out == f"cancelling {job}\n"
    wait_until(lambda: state(broker, job) == "cancelled")
    assert_one_line(run(broker, "cancel", job), job)
    assert_one_line(run(broker, "status", "none"), "none")
    assert_one_line(run(broker, "logs", "none"), "none")
    ended = document(broker, "status", "--ended", "50")["jobs"]
    assert (job, "cancelled") in [(each["id"], each["state"]) for each in ended]


def test_a_job_is_put_on_hold_and_resumed(broker):
    """On hold a job that runs has no cores until it is resumed; its table says so, and jobs that end too."""
    job = document(broker, "submit", "--", "sleep", "600")["id"]
    wait_until(lambda: state(broker, job) == "running")
    assert run(broker, "hold", job).out == f"on hold: {job}\n"
    wait_until(lambda: state(broker, job) == "paused")
    found = document(broker, "status", job)
    assert (found["on_hold"], found["target"]) == (True, 0)
    assert "on hold" in run(broker, "status").out
    (resumed,) = document(broker, "resume", job)
    assert resumed["on_hold"] is False
    wait_until(lambda: state(broker, job) == "running")
    assert document(broker, "status", job)["promised_share"] == 0.5
    assert "times the work of an equal share; 0.5 and" in run(broker, "status", job).out
    done = run(broker, "hold", "none", job)
    assert (done.status, done.out) == (1, f"on hold: {job}\n")
    assert "'none'" in done.err
    run(broker, "cancel", job)
    wait_until(lambda: state(broker, job) == "cancelled")
    assert_one_line(run(broker, "hold", job), job)


def test_cancelling_goes_on_after_a_job_that_cannot_be(broker):
    """`cancel ENDED NONE RUNNING` says what is wrong with the first two, and cancels the third."""
    ended = document(broker, "submit", "--wait", "--", "true")["id"]
    jobs = [document(broker, "submit", "--", "sleep", "600")["id"] for _ in range(2)]
    done = run(broker, "cancel", ended, "none", jobs[0])
    assert (done.status, done.out) == (1, f"cancelling {jobs[0]}\n")
    wrong = [line for line in done.err.splitlines() if line.startswith("error: ")]
    assert [name in line for name, line in zip((f"'{ended}'", "'none'"), wrong, strict=True)] == [True, True]
    wait_until(lambda: state(broker, jobs[0]) == "cancelled")
    done = run(broker, "cancel", "--json", ended, jobs[1])
    first, second = json.loads(done.out)
    assert (done.status, first["id"], second) == (1, ended, {"id": jobs[1]})
    assert {"error", "hint"} < first.keys()
    wait_until(lambda: state(broker, jobs[1]) == "cancelled")


def test_an_ended_job_is_told_in_a_persons_units(broker):
    """How it ended with the signal's name, how long it took, its CPU time; who finished has done all."""
    burn = (
        "import os, time\nopen(os.environ['MALLEABLE_PROGRESS'], 'w').write('3 10')\n"
        "while time.process_time() < 0.3: pass"
    )
    job = document(broker, "submit", "--wait", "--", sys.executable, "-c", burn)["id"]
    shown = run(broker, "status", job).out
    assert re.search(r"progress +100 % *\n", shown), shown
    assert float(re.search(r"CPU time +([\d.]+) s", shown)[1]) >= 0.3
    killed = json.loads(run(broker, "submit", "--wait", "--json", "--", "sh", "-c", "kill -9 $$").out)["id"]
    assert re.search(r"exit code +-9 \(SIGKILL\)", run(broker, "status", killed).out)


def test_a_remaining_time_not_told_is_an_estimate(broker):
    """What is left of a program is what is usual in its class unless it said its size: it says so."""
    guessed = document(broker, "submit", "--", "sleep", "600")["id"]
    declared = document(broker, "submit", "--size", "3600", "--", "sleep", "600")["id"]
    try:
        assert "an estimate" in run(broker, "status", guessed).out
        assert document(broker, "status", guessed)["remaining_estimated"] is True
        assert "an estimate" not in run(broker, "status", declared).out
    finally:
        run(broker, "cancel", guessed)
        run(broker, "cancel", declared)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.04, "0.0 s"), (59.94, "59.9 s"), (61, "1 min 1 s"), (7325, "2 h 2 min"), (90_000, "1 d 1 h")],
)
def test_durations(seconds, text):
    """A time is shown in its two largest units."""
    assert duration(seconds) == text


def test_every_json_key_is_documented(broker):
    """docs/reference/json.md has every key that the verbs of the broker write."""
    job = document(broker, "submit", "--wait", "--size", "3", "--memory", "1M", "--", "true")["id"]
    text = REFERENCE.read_text("utf-8")
    (section,) = [part for part in text.split("\n## ") if part.startswith("malleable status ")]
    for found in (document(broker, "status"), {"jobs": [document(broker, "status", job)]}):
        for key in keys(found):
            assert any(f"{before}{key}`" in section for before in "`."), key
    for verb in ("submit", "cancel", "set", "drain"):
        assert f"\n## malleable {verb} --json" in text


def test_the_machine_is_changed(broker):
    """`set` without a job changes the machine; what makes no sense is one line."""
    assert run(broker, "set", "--cores", "1", "--policy", "equi").out == "1 cores, equi\n"
    assert document(broker, "status")["cores"] == 1
    assert_one_line(run(broker, "set"), "nothing to change")
    assert_one_line(run(broker, "set", "1", "--cores", "1"), "set JOB")
    assert_one_line(run(broker, "set", "--policy", "none"), "none")
    assert document(broker, "set", "--policy", "wham") == {"cores": 1, "policy": "wham", "draining": False}


def test_ctrl_c_cancels_what_is_waited_for(broker):
    """Ctrl-C on `submit --wait` ends the program, and the status is that of an interrupted command."""
    command = [sys.executable, "-m", "malleable", "submit", "--wait", "--", "sh", "-c", "echo go; sleep 600"]
    with subprocess.Popen(
        command, env=broker.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8"
    ) as process:
        assert process.stdout.readline() == "go\n"
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=PATIENCE)
    job = err.split()[2]
    assert (process.returncode, err.splitlines()[0]) == (130, f"cancelling job {job}")
    assert state(broker, job) == "cancelled"


def test_a_closed_terminal_lets_the_program_go_on(broker):
    """SIGHUP ends the wait, not the program."""
    command = [sys.executable, "-m", "malleable", "submit", "--wait", "--", "sh", "-c", "echo $$; sleep 600"]
    with subprocess.Popen(
        command, env=broker.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8"
    ) as process:
        pid = int(process.stdout.readline())
        process.send_signal(signal.SIGHUP)
        process.communicate(timeout=PATIENCE)
    assert process.returncode == 129
    os.kill(pid, 0)
    with BrokerClient(broker.path) as client:
        (job,) = [job["id"] for job in client.jobs(0) if job["kind"] == "program"]
        client.cancel(job)
        wait_until(lambda: client.job(job)["state"] == "cancelled")


def test_watch_needs_a_terminal_and_ends_with_ctrl_c(broker):
    """Without a terminal it is one line; on one it shows the machine until Ctrl-C, which is no error."""
    assert_one_line(run(broker, "watch"), "terminal", "malleable status")

    def start(terminal):
        environment = {**broker.environment, "TERM": "xterm", "COLUMNS": "100"}
        command = [sys.executable, "-m", "malleable", "watch"]
        process = subprocess.Popen(command, stdin=terminal, stdout=terminal, env=environment)
        with BrokerClient(broker.path) as client:
            wait_until(lambda: client._ask("GET", "/v1/status"))
            wait_until(lambda: _listens(process.pid), "the stream")
        process.send_signal(signal.SIGINT)
        return process

    assert "cores granted" in shown_on_terminal(start)


def _listens(pid):
    """Whether a process has had time to draw: it has written to its terminal."""
    counts = Path(f"/proc/{pid}/io").read_text(encoding="ascii")
    return int(counts.split("wchar: ")[1].split()[0]) > 400


def test_programs_outlive_the_broker_and_waiting_goes_on():
    """SIGTERM for the broker is a clean end; the program goes on, and so does `--wait` at the next broker."""
    with serve_process("--no-bind", "--cores", "2") as broker:
        folder = broker.state.parent
        script = "echo begun; while [ ! -e go ]; do sleep 0.05; done; echo done; exit 3"
        command = [sys.executable, "-m", "malleable", "submit", "--wait", "--", "sh", "-c", script]
        with subprocess.Popen(
            command, env=broker.environment, stdout=subprocess.PIPE, encoding="utf-8", cwd=folder
        ) as process:
            assert process.stdout.readline() == "begun\n"
            assert broker.end() == 0
            assert not broker.path.exists()
            assert process.poll() is None
            (folder / "go").touch()
            broker.start()
            assert process.stdout.read() == "done\n"
        assert process.returncode == 3


def test_a_program_that_waits_for_another_one_does_not_wait_for_ever():
    """On one core, served in order, a program submits others and waits: they run on its core, to the end."""
    malleable_ = f"{shlex.quote(sys.executable)} -m malleable"
    makefile = "all:\n\t@echo $(filter -j%,$(MAKEFLAGS)) $$MALLEABLE_CORES\n"
    inner = f"{malleable_} submit --wait --json -- sh -c 'exit 3' > inner.json"
    steps = (
        f"cat | {malleable_} submit --wait -- sh -c 'read word; echo in $word; exit 5'; echo out $?",
        f"{malleable_} submit --wait -- sh -c {shlex.quote(inner)}; echo inner $?",
        f"{malleable_} submit --wait -- make; {malleable_} submit --wait -- no-such-command; echo none $?",
        f"{malleable_} submit -- echo later",
    )
    with serve_process("--no-bind", "--cores", "1", "--policy", "fcfs") as broker:
        folder = broker.state.parent
        (folder / "Makefile").write_text(makefile)
        done = broker.run("submit", "--wait", "--", "sh", "-c", f"echo a word | ({'; '.join(steps)})")
        *lines, later = done.stdout.splitlines()
        assert lines == ["in a word", "out 5", "inner 3", "-j1 1", "none 1"]
        assert done.stderr.count("this is a part of job 1") == 5
        assert "cannot run 'no-such-command'" in done.stderr
        known = {"id": None, "inside": "1", "command": ["sh", "-c", "exit 3"]}
        assert json.loads((folder / "inner.json").read_text()) == {
            **known, "state": "failed", "exit_code": 3,
        }  # fmt: skip
        wait_until(lambda: state(broker, later) == "finished", "the end of what was not waited for")
        assert broker.run("submit", "--wait", "--", "echo", "outside").stdout == "outside\n"


def test_drain_waits_for_programs_that_no_list_shows(monkeypatch):
    """With 150 jobs on cores the lists of the broker end before its program: `drain --wait` waits for it."""
    with broker_thread(cores=200) as broker, ThreadPoolExecutor(1) as thread:
        (broker.path.parent / "broker.sock").symlink_to(broker.path)
        monkeypatch.setenv("MALLEABLE_HOME", str(broker.path.parent))
        for number in range(150):
            broker.broker.join(Registered(f"job-{number}", "class-1"), lambda _order: None)
        broker.service.submit({"command": ["true"], "folder": "/"})
        broker.programs.present = 1
        found = thread.submit(malleable, "drain", "--wait")
        try:
            wait_until(lambda: broker.changes.listeners == 1 or found.done(), "the stream")
            time.sleep(1.0)  # the first status documents come
            assert not found.done()
        finally:
            broker.programs.present = 0
            broker.changes.touch()
        assert found.result().out == "drained: no program runs\n"


def test_drain_lets_running_programs_end():
    """After `drain` no program is accepted; `--wait` returns when the last one has ended."""
    with serve_process("--no-bind", "--cores", "2") as broker:
        folder = broker.state.parent
        script = "echo begun; while [ ! -e go ]; do sleep 0.05; done"
        job = run(broker, "submit", "--", "sh", "-c", script).out.strip()
        wait_until(lambda: state(broker, job) == "running")
        assert run(broker, "drain").out.startswith("draining")
        assert_one_line(run(broker, "submit", "--", "true"), "accepts no programs")
        (folder / "go").touch()
        assert run(broker, "drain", "--wait").out.startswith("drained")
        assert state(broker, job) == "finished"
        assert document(broker, "drain")["draining"] is True
