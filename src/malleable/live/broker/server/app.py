"""The HTTP interface of the broker. Routes are thin: `Service` answers, `Access` stands before them.

Every error is a sentence and a hint, `{"error": …, "hint": …}`, with a status below 500 unless the machine
itself is at fault (507: the disk).
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Depends, FastAPI, Query, Request, WebSocket
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response, StreamingResponse
from starlette.exceptions import HTTPException

from malleable import __version__
from malleable.catalog.spec import sentence_of
from malleable.errors import MalleableError
from malleable.live.broker.operator_log import LOGGER, entry
from malleable.live.broker.page import FILES
from malleable.live.broker.server import documents as D  # noqa: N812 - D.Submission reads like what it is
from malleable.live.broker.server.access import TRUSTED, for_strangers
from malleable.live.broker.server.service import MOST_LISTED, RemovedError, Service, Stream, UnknownJobError
from malleable.live.broker.server.streams import Changes, file_stream
from malleable.live.broker.state.schema import StoreError
from malleable.live.core.orders import RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from malleable.live.broker.page import PageFile
    from malleable.live.broker.server.session import Sessions

MOST_LISTENERS = 100
"""Streams of events at once."""
MOST_LOG = 1 << 53
STATUS: dict[type[Exception], int] = {
    UnknownJobError: 404, RefusedError: 409, RemovedError: 410, StoreError: 507,
}  # fmt: skip
"""What an error of ours is in HTTP; others are 422: the request makes no sense."""
PROBLEMS: dict[int | str, dict[str, Any]] = {
    code: {"model": D.Problem, "description": meaning}
    for code, meaning in {
        400: "The request is no HTTP, or no JSON.",
        401: "The token is missing or wrong (on loopback only).",
        403: "The request comes from somewhere else.",
        404: "There is no such job.",
        409: "It makes no sense now: the job has ended, the queue is full, the machine has no such cores.",
        410: "It was removed, as it is kept no longer.",
        413: "The request is too long.",
        422: "A value is not allowed.",
        429: "Too many listen.",
        507: "The disk is full or cannot be written.",
    }.items()
}


def _is_trusted(request: Request) -> bool:
    return bool(request.scope.get("state", {}).get(TRUSTED))


Trusted = Annotated[bool, Depends(_is_trusted)]
"""Whether it is the user who asks."""


def _jobs(documents: list[dict[str, Any]], trusted: bool) -> list[dict[str, Any]]:
    return documents if trusted else [for_strangers(job) for job in documents]


def make_app(service: Service, sessions: Sessions, changes: Changes) -> FastAPI:
    """The application: what can be asked, the sessions of jobs, and the page."""
    app = FastAPI(
        title="malleable",
        version=__version__,
        summary="The broker of a machine: who has how many cores, programs that wait and run.",
        docs_url=None,
        redoc_url=None,
        openapi_url="/v1/openapi.json",
        default_response_class=Answer,
    )
    _handle_errors(app)
    _add_readings(app, service, changes)
    _add_jobs(app, service, changes)
    _add_machine(app, service)

    @app.websocket("/v1/session")
    async def session(websocket: WebSocket) -> None:
        await sessions.serve(websocket)

    for path, file in FILES.items():
        app.add_api_route(path, _sender(file), include_in_schema=False)
    return app


def _sender(file: PageFile) -> Callable[[], Response]:
    return lambda: Response(file.text(), media_type=file.media_type)


def _add_readings(app: FastAPI, service: Service, changes: Changes) -> None:
    @app.get("/v1/status", responses={200: {"model": D.StatusDocument}, **_problems(422)}, tags=["state"])
    def status(
        trusted: Trusted,
        most: Annotated[int | None, Query(ge=0, description="Jobs to list, those with cores first.")] = None,
    ) -> Answer:
        """What the broker does right now: cores, price, and the jobs that are there."""
        found = service.status(most)
        return Answer({**found, "jobs": _jobs(found["jobs"], trusted)})

    @app.get("/v1/alive", tags=["state"])
    async def alive() -> D.Alive:
        """That the broker answers, at once: nothing is looked up."""
        return D.Alive(process=os.getpid())

    @app.get("/v1/history", responses=_problems(), tags=["state"])
    def history() -> Answer:
        """Widths over time, coarser the longer ago."""
        return Answer(service.history())

    @app.get("/v1/past-jobs", responses=_problems(), tags=["state"])
    def log() -> Answer:
        """The jobs that came and went, as columns: the last 100,000, times in seconds since 1970."""
        return Answer(service.log())

    @app.get(
        "/v1/events", response_class=EventStream, responses=_problems_of_stream(422, 429), tags=["state"]
    )
    async def events(
        trusted: Trusted,
        most: Annotated[
            int, Query(ge=0, le=MOST_LISTED, description="Jobs to list, those with cores first.")
        ] = 100,
    ) -> Response:
        """Server-sent events named `status`, each a status document, at most five per second."""
        if changes.listeners >= MOST_LISTENERS:
            return _problem(429, f"{MOST_LISTENERS} listen already", "close a page")
        return EventStream(changes.stream(most, trusted=trusted))


def _add_jobs(app: FastAPI, service: Service, changes: Changes) -> None:
    @app.post(
        "/v1/jobs", status_code=201, responses=_problems(400, 401, 403, 409, 413, 422, 507), tags=["jobs"]
    )
    def submit(submission: D.Submission) -> D.Submitted:
        """Submit a program. When the answer comes, it is on the disk and outlives the broker."""
        given = submission.model_dump(exclude_none=True)
        return D.Submitted(id=service.submit(given))

    @app.get("/v1/jobs", responses={200: {"model": D.Jobs}, **_problems(422)}, tags=["jobs"])
    def jobs(
        trusted: Trusted,
        ended: Annotated[int, Query(ge=0, le=10_000, description="Ended programs.")] = 20,
        present: Annotated[bool, Query(description="Also the jobs that are there.")] = True,
    ) -> Answer:
        """The jobs that are there, and the last programs that have ended."""
        found = service.jobs(ended) if present else service.ended_programs(ended)
        return Answer({"jobs": _jobs(found, trusted)})

    @app.get(
        "/v1/jobs/{job}", responses={200: {"model": D.JobDocument}, **_problems(404, 422)}, tags=["jobs"]
    )
    def job(job: str, trusted: Trusted) -> Answer:
        """One job: a client that is there, or any program that was submitted."""
        found = service.job(job)
        return Answer(found if trusted else for_strangers(found))

    @app.get(
        "/v1/jobs/{job}/explain",
        responses={200: {"model": D.Explained}, **_problems(404, 409, 422)},
        tags=["jobs"],
    )
    def explain(job: str) -> Answer:
        """Why a job that is there has its cores, and who is next: as decisions were made now."""
        return Answer(service.explain(job))

    @app.patch(
        "/v1/jobs/{job}",
        responses={200: {"model": D.JobDocument}, **_problems(400, 401, 403, 404, 409, 413, 422, 507)},
        tags=["jobs"],
    )
    def change_job(job: str, change: D.JobChange) -> Answer:
        """Let a job matter more or less, be of another class, or have no cores until it may go on."""
        return Answer(service.change_job(job, change.weight, change.job_class, change.on_hold))

    @app.delete(
        "/v1/jobs/{job}", status_code=202, responses=_problems(401, 403, 404, 409, 422, 507), tags=["jobs"]
    )
    def cancel(job: str) -> D.Asked:
        """Ask a job to end, and all that it started with it."""
        service.cancel(job)
        return D.Asked(id=job)

    @app.get(
        "/v1/jobs/{job}/log",
        response_class=LogStream,
        responses=_problems_of_stream(401, 403, 404, 410, 422),
        tags=["jobs"],
    )
    def log(
        job: str,
        stream: Stream = "out",
        offset: Annotated[int, Query(ge=0, le=MOST_LOG, description="Bytes to leave out.")] = 0,
        follow: Annotated[bool, Query(description="Go on until the program has ended.")] = False,
    ) -> Response:
        """What a program has printed."""
        service.output(job, stream)
        going_on = (lambda: service.is_present(job) and not changes.closing) if follow else None
        return LogStream(file_stream(lambda: service.output(job, stream), offset, going_on))


def _add_machine(app: FastAPI, service: Service) -> None:
    @app.patch("/v1/machine", responses=_problems(400, 401, 403, 409, 413, 422), tags=["machine"])
    def change_machine(change: D.MachineChange) -> D.Machine:
        """Change the number of cores, or the policy that divides them."""
        return D.Machine(**service.change_machine(change.cores, change.policy))

    @app.post("/v1/drain", responses=_problems(401, 403, 507), tags=["machine"])
    def drain() -> D.Machine:
        """Accept and start no program from now on; what runs goes on to its end."""
        return D.Machine(**service.drain())


class Answer(JSONResponse):
    """JSON in ASCII: commands and folders may hold bytes that are not UTF-8."""

    def render(self, content: Any) -> bytes:
        """The bytes to send."""
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")


class EventStream(StreamingResponse):
    """Server-sent events."""

    media_type = "text/event-stream"


class LogStream(StreamingResponse):
    """Bytes that a program has printed, most likely text."""

    media_type = "text/plain"


def _problems(*codes: int) -> dict[int | str, dict[str, Any]]:
    return {code: PROBLEMS[code] for code in codes}


def _problems_of_stream(*codes: int) -> dict[int | str, dict[str, Any]]:
    """The same, of a route whose answers are no JSON otherwise."""
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {code: {"description": PROBLEMS[code]["description"], "content": content} for code in codes}


def _problem(status: int, error: str, hint: str = "") -> Answer:
    return Answer({"error": error, "hint": hint}, status)


def _handle_errors(app: FastAPI) -> None:
    @app.exception_handler(MalleableError)
    def ours(request: Request, error: MalleableError) -> Answer:
        status = next((code for kind, code in STATUS.items() if isinstance(error, kind)), 422)
        if status >= 500:
            LOGGER.error(entry("refused", status=status, request=request.url.path, error=error.sentence))
        return _problem(status, error.sentence, error.hint)

    @app.exception_handler(RequestValidationError)
    def invalid(_request: Request, error: RequestValidationError) -> Answer:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"][1:])
        text = sentence_of(first)
        return _problem(422, f"{place}: {text}" if place else f"the request {text}", "see /v1/openapi.json")

    @app.exception_handler(HTTPException)
    def http(_request: Request, error: HTTPException) -> Answer:
        response = _problem(error.status_code, str(error.detail), "see /v1/openapi.json")
        response.headers.update(error.headers or {})
        return response
