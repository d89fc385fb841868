"""Run a broker until it is told to stop (SIGTERM, Ctrl-C). Programs go on, and the next one adopts them."""

from __future__ import annotations

import asyncio
import math
import signal
import threading
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from malleable.catalog.spec import whole_number
from malleable.errors import ParameterError
from malleable.live.broker import Broker
from malleable.live.cpus import CpuSets
from malleable.live.operator_log import LOGGER, entry, log_event, logging_to
from malleable.live.program_jobs import ProgramJobs
from malleable.live.retention import KEEP, Keep
from malleable.live.scheduler import Scheduler
from malleable.live.server.access import Access, read_or_make_token
from malleable.live.server.app import make_app
from malleable.live.server.client_record import ClientRecord
from malleable.live.server.listening import Server, alone, loopback_listener, unix_listener
from malleable.live.server.paths import SOCKET, private, runtime_folder, state_folder
from malleable.live.server.service import Service
from malleable.live.server.session import Sessions
from malleable.live.server.streams import Changes
from malleable.live.state import Store
from malleable.model import read_workload

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from malleable.live.events import Event

MANY_JOBS = 64
"""Jobs beyond which decisions are worth machine code."""
PAUSED_PER_CORE = 4
"""Started jobs without cores, per core, beyond which no other job is started."""


@dataclass(frozen=True)
class Settings:
    """What a broker divides, and how; see `malleable serve --help`."""

    cores: int | None = None
    policy: str = "wham"
    workload: str | None = None
    memory: float | None = None
    port: int | None = None
    bind: bool = True
    paused_at_most: int | None = None
    """Started jobs without cores beyond which no other is started; by default four per core."""
    grace: float = 2.0
    """Seconds in which the cores of clients of an earlier broker are kept for them."""
    keep: Keep = KEEP
    """How long what ended programs have left is kept."""
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
    home, state = private(runtime_folder()), private(state_folder())
    with ExitStack() as stack:
        stack.enter_context(logging_to(settings.log_file, settings.log_level))
        stack.enter_context(alone(home))
        if state != home:
            stack.enter_context(alone(state))
        token = read_or_make_token(home)
        store = stack.enter_context(closing(Store(state)))
        listeners: list[socket.socket] = []
        port = None
        if settings.port is not None:
            listeners.append(stack.enter_context(loopback_listener(settings.port)))
            port = int(listeners[0].getsockname()[1])
        news = _News()
        scheduler, cpus = _scheduler(settings)
        record = ClientRecord(home)
        made = Broker(scheduler, cpus, before_orders=record.note, on_change=news)
        broker = stack.enter_context(closing(made))
        record.expect(broker)
        programs = ProgramJobs(broker, store, state, home / SOCKET, keep=settings.keep)
        stack.callback(programs.close)
        programs.recover()
        listeners.append(stack.enter_context(unix_listener(home / SOCKET)))
        place = Place(home / SOCKET, scheduler.ledger.cores, settings.policy, port, home / "token")
        service = Service(broker, store, programs)
        sessions = Sessions(broker, programs, record, settings.grace)
        LOGGER.info(
            entry("serving", cores=place.cores, policy=place.policy, port=port, present=programs.present)
        )
        asyncio.run(_answer(service, sessions, news, token, listeners, lambda: on_ready(place)))
        LOGGER.info(entry("stopped", present=programs.present))


def _scheduler(settings: Settings) -> tuple[Scheduler, CpuSets | None]:
    """The scheduler of these settings, and the CPUs that its cores are; None if they are only numbers."""
    cpus = CpuSets() if settings.bind else None
    cores = (cpus or CpuSets()).total if settings.cores is None else settings.cores
    workload = None if settings.workload is None else read_workload(settings.workload)
    memory = _machine_memory() if settings.memory is None else settings.memory
    paused = settings.paused_at_most
    most_paused = PAUSED_PER_CORE * cores if paused is None else whole_number("paused-at-most", paused, 0)
    return Scheduler(workload, cores, settings.policy, memory=memory, most_paused=most_paused), cpus


def _machine_memory() -> float:
    """Bytes that the machine has; no limit where that cannot be told."""
    try:
        import psutil  # noqa: PLC0415 - an extra

        return float(psutil.virtual_memory().total)
    except (ImportError, OSError):
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
    await server.serve(listeners)
    watching.cancel()
    with suppress(asyncio.CancelledError):
        await watching
