"""Run a broker until it is told to stop (SIGTERM, Ctrl-C). Programs go on, and the next one adopts them."""

from __future__ import annotations

import asyncio
import math
import os
import signal
import threading
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from malleable.catalog.spec import whole_number
from malleable.errors import MalleableError, ParameterError
from malleable.live.broker.broker import Broker
from malleable.live.broker.broker_lock import alone
from malleable.live.broker.learned_memory import LearnedMemory
from malleable.live.broker.operator_log import LOGGER, entry, log_event, logging_to
from malleable.live.broker.server.access import Access
from malleable.live.broker.server.app import make_app
from malleable.live.broker.server.client_record import ClientRecord
from malleable.live.broker.server.home import Home
from malleable.live.broker.server.listening import Server, loopback_listener
from malleable.live.broker.server.paths import private, runtime_folder, state_folder
from malleable.live.broker.server.service import Service
from malleable.live.broker.server.session import Sessions
from malleable.live.broker.server.streams import Changes
from malleable.live.broker.state import Store
from malleable.live.core.events import CoresChanged
from malleable.live.core.fair_share import Guarantee
from malleable.live.core.scheduler import Scheduler
from malleable.live.programs.program_jobs import ProgramJobs
from malleable.live.programs.retention import KEEP, Keep
from malleable.live.programs.turns import note_machine
from malleable.live.system.cpus import CpuSets
from malleable.live.system.open_files import raise_limit
from malleable.model import read_workload

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from malleable.live.core.events import Event

MANY_JOBS = 64
"""Jobs beyond which decisions are worth machine code."""
LOOK_SECONDS = 2.0
"""Seconds between two looks whether the files are there by which the broker is found."""
PAUSED_PER_CORE = 4
"""Started jobs without cores, per core, beyond which no other job is started."""


@dataclass(frozen=True)
class Settings:
    """What a broker divides, and how; see `malleable serve --help`."""

    cores: int | None = None
    policy: str = "clearing"
    workload: str | None = None
    memory: float | None = None
    port: int | None = None
    bind: bool = True
    paused_at_most: int | None = None
    """Started jobs without cores beyond which no other is started; by default four per core."""
    grace: float = 2.0
    """Seconds in which the cores of clients of an earlier broker are kept for them."""
    guarantee: float = 2.0
    """κ: every job does at least 1/κ of the work that it would do with its weighted equal share."""
    longest_pause: float = 60.0
    """Seconds after which a job that has no cores gets some for a moment."""
    keep: Keep = KEEP
    """How long what ended programs have left is kept."""
    most_output: float = 2.0**30
    """Bytes of each stream of a program that are kept, the beginning and the end; infinite for all."""
    log_file: str | None = None
    """Where the log goes; standard error without one."""
    log_level: str = "info"

    def __post_init__(self) -> None:
        if not 0.0 <= self.grace < math.inf:
            raise ParameterError(
                f"grace must be at least 0 seconds and finite, got {self.grace:g}", "for example --grace 2"
            )


@dataclass(frozen=True)
class Place:
    """Where a broker listens."""

    socket: Path
    cores: int
    policy: str
    port: int | None
    token: Path


def serve(settings: Settings, on_ready: Callable[[Place], None]) -> None:
    """Run a broker; returns when it was told to stop. `on_ready` is called when it listens."""
    raise_limit()
    state = private(state_folder())
    with ExitStack() as stack:
        stack.enter_context(logging_to(settings.log_file, settings.log_level))
        if state != runtime_folder():
            stack.enter_context(alone(state))
        home = stack.enter_context(Home(runtime_folder()))
        store = stack.enter_context(closing(Store(state)))
        listeners: list[socket.socket] = []
        port = None
        if settings.port is not None:
            listeners.append(stack.enter_context(loopback_listener(settings.port)))
            port = int(listeners[0].getsockname()[1])
        news = _News()
        scheduler, cpus = _scheduler(settings)
        record, memory = ClientRecord(home.path), LearnedMemory(state)
        memory.recall(scheduler)
        free = [] if cpus is None else sorted(cpus.free)
        note_machine(state, scheduler.ledger.cores, free)
        changed = partial(_changed, news, memory, state, free)
        made = Broker(scheduler, cpus, before_orders=record.note, on_change=changed)
        broker = stack.enter_context(closing(made))
        memory.keep(broker)
        stack.callback(memory.write)
        record.expect(broker)
        most = None if math.isinf(settings.most_output) else int(settings.most_output)
        programs = ProgramJobs(broker, store, state, home.address, keep=settings.keep, most_output=most)
        stack.callback(programs.close)
        programs.recover()
        listeners.append(home.listen())
        place = Place(home.address, scheduler.ledger.cores, settings.policy, port, home.token_file)
        service = Service(broker, store, programs)
        sessions = Sessions(broker, programs, record, settings.grace)
        LOGGER.info(
            entry("serving", cores=place.cores, policy=place.policy, port=port, present=programs.present)
        )
        restore = partial(_restore, home, record)
        asyncio.run(_answer(service, sessions, news, home.token, listeners, lambda: on_ready(place), restore))
        LOGGER.info(entry("stopped", present=programs.present))


def _changed(
    news: Callable[[Event], None], memory: LearnedMemory, state: Path, cpus: list[int], event: Event
) -> None:
    """Tell of an event; what the broker divides is written down, as that outlives it."""
    if isinstance(event, CoresChanged):
        note_machine(state, event.cores, cpus)
    memory.note(event)
    news(event)


def _scheduler(settings: Settings) -> tuple[Scheduler, CpuSets | None]:
    """The scheduler of these settings, and the CPUs that its cores are; None if they are only numbers."""
    cpus = CpuSets() if settings.bind else None
    cores = (cpus or CpuSets()).total if settings.cores is None else settings.cores
    workload = None if settings.workload is None else read_workload(settings.workload)
    memory = _machine_memory() if settings.memory is None else settings.memory
    paused = settings.paused_at_most
    most_paused = PAUSED_PER_CORE * cores if paused is None else whole_number("paused-at-most", paused, 0)
    guarantee = Guarantee(settings.guarantee, longest_pause=settings.longest_pause)
    scheduler = Scheduler(
        workload, cores, settings.policy, memory=memory, most_paused=most_paused, guarantee=guarantee
    )
    return scheduler, cpus


def _machine_memory() -> float:
    """Bytes that the machine has; no limit where that cannot be told."""
    try:
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (OSError, ValueError):
        return math.inf


class _News:
    """Told of every event: logs it, tells streams, and has machine code made once there are many jobs."""

    def __init__(self) -> None:
        self.listener: Callable[[], None] | None = None
        self.scheduler: Scheduler | None = None
        self._compiling = False

    def __call__(self, event: Event) -> None:
        log_event(event)
        if self.listener is not None:
            self.listener()
        scheduler = self.scheduler
        if scheduler is not None and not self._compiling and len(scheduler.table) > MANY_JOBS:
            # It takes a second, or twenty the first time: not while all clients wait, and not for few jobs,
            # as it takes a hundred megabytes, too.
            self._compiling = True
            threading.Thread(
                target=scheduler.load_machine_code, name="malleable-compile", daemon=True
            ).start()


async def _answer(
    service: Service,
    sessions: Sessions,
    news: _News,
    token: str,
    listeners: list[socket.socket],
    on_ready: Callable[[], Any],
    restore: Callable[[], socket.socket | None],
) -> None:
    """Answer requests until a signal says that it is enough."""
    changes = Changes(service.record)
    sessions.open()
    news.listener, news.scheduler = changes.touch, service.broker.scheduler
    server = Server(Access(make_app(service, sessions, changes), token), on_ready)

    def stop() -> None:
        sessions.close()
        changes.close()
        server.stop()

    loop = asyncio.get_running_loop()
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(signum) is not signal.SIG_IGN:  # as nohup has it
            loop.add_signal_handler(signum, stop)
    watching = asyncio.create_task(changes.watch())
    staying = asyncio.create_task(_stay_found(restore, server))
    staying.add_done_callback(lambda _: stop())
    await server.serve(listeners)
    for task in (watching, staying):
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _stay_found(restore: Callable[[], socket.socket | None], server: Server) -> None:
    """See to it that the broker can be found, until cancelled; where that cannot be, raise an error."""
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        try:
            made = await asyncio.to_thread(restore)
        except MalleableError as error:
            LOGGER.error(entry("ending", reason=error.sentence))
            raise
        if made is not None:
            await server.listen(made)


def _restore(home: Home, record: ClientRecord) -> socket.socket | None:
    """Make the files anew by which the broker is found, if they were removed; a new socket to listen at."""
    made = home.restore()
    if made is not None:
        record.write_again()
        LOGGER.warning(entry("listening-anew", socket=home.address))
    return made
