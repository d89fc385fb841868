"""Whatever is asked of the HTTP interface, by its own description: never an error of the server's."""

from __future__ import annotations

import pytest
import schemathesis
from hypothesis import HealthCheck, given, seed, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import response_schema_conformance, status_code_conformance

from malleable.live.broker.server.access import TRUSTED
from support.broker_server import broker_thread

ENDLESS = "/v1/events"
"""It answers as long as one listens."""
CHECKS = [not_a_server_error, response_schema_conformance, status_code_conformance]


@pytest.fixture(scope="module")
def broker():
    with broker_thread() as made:
        made.service.submit({"command": ["true"], "folder": "/"})
        yield made


@pytest.fixture
def schema(broker):
    """The interface in this process, as one sees it who is trusted; nothing that is submitted ever starts."""

    async def trusted(scope, receive, send):
        await broker.app({**scope, "state": {TRUSTED: True}}, receive, send)

    return schemathesis.openapi.from_asgi("/v1/openapi.json", trusted).exclude(path=ENDLESS)


def ask_everything(schema, examples):
    """Requests of every operation: those that it describes, and those that it rules out."""
    for found in schema.get_all_operations():
        operation = found.ok()
        for mode in GenerationMode:

            @given(case=operation.as_strategy(generation_mode=mode))
            @settings(max_examples=examples, suppress_health_check=list(HealthCheck))
            @seed(1)
            def ask(case):
                if case.path == "/v1/jobs/{job}/log" and isinstance(case.query, dict):
                    case.query["follow"] = "false"  # nothing ends, so it would be followed for ever
                if case.path_parameters and len(case.path_parameters["job"]) % 2:
                    case.path_parameters["job"] = "1"  # a job that is there
                case.call_and_validate(checks=CHECKS)

            try:
                ask()
            except Unsatisfiable:
                assert mode is GenerationMode.NEGATIVE  # without parameters there is nothing to get wrong


def test_no_request_breaks_the_server(schema):
    """A few requests of every kind, sound and unsound: answers are as described, and none is a 500."""
    ask_everything(schema, 4)


@pytest.mark.slow
def test_no_request_of_many_breaks_the_server(schema):
    """Hundreds of requests of every kind."""
    ask_everything(schema, 300)
