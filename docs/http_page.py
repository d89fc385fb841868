"""The reference page of the broker's HTTP interface, from its OpenAPI description; see `generate.py`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from malleable.live.broker.server.app import make_app

if TYPE_CHECKING:
    from collections.abc import Iterator

INTRO = """
The broker (`malleable serve`) answers HTTP on its Unix socket, and with `--port` on 127.0.0.1. `GET
/v1/openapi.json` is the machine's version of this page.

```python
import httpx

http = httpx.Client(transport=httpx.HTTPTransport(uds="broker.sock"), base_url="http://localhost")
```

On the Unix socket everything is allowed. On 127.0.0.1 reading is, except for logs; of jobs, `command` is null
then, and `folder`, `on_resize` and `reason` are left out. All else needs the header `Authorization: Bearer
TOKEN`, with the token from the file next to the socket. An error is a sentence and a hint, `{"error": …,
"hint": …}`.
"""
SESSION = """
## Sessions

A job of another process is a WebSocket at `/v1/session`, on the Unix socket only. Messages are JSON objects.
The client begins with `{"kind": "join", "request": {…}, "held": {…}}`: the request has `job` (a name that no
other job has), `job_class`, and what is known of `weight`, `units`, `size`, `memory`, `never_pause`; `held`
has `cores`, `cpus`, `age` and `units_done` of a job that was counted before. The broker answers
`{"kind": "joined", "job": …}` or `{"kind": "refused", "reason": …, "hint": …}`.

| from | message | meaning |
|---|---|---|
| broker | `{"kind": "order", "cores": k, "number": m, "cpus": […]}` | use the first k of these CPUs |
| broker | `{"kind": "cancel"}` | end, please |
| broker | `{"kind": "refused", "reason": …}` | what was said last makes no sense, or came too late |
| job | `{"kind": "confirmed", "job": …, "cores": k, "number": m}` | k cores are in use after order m |
| job | `{"kind": "progressed", "job": …, "units_done": u, "units": v}` | u units are done, of v |
| job | `{"kind": "finished", "job": …}`, or `failed`, `cancelled` | the job is over; the broker closes |
| job | `{"kind": "withdrawn", "job": …}` | it had no work, and counts as no job; the broker closes |

A connection that ends without an ending is a job that is lost: its cores are free at once. So is one that has
not answered a ping for 40 seconds (a frame of the WebSocket protocol, every 20 seconds). Numbers start anew
with each connection. `malleable.live.broker.remote` is a client.
"""


def http_parts() -> Iterator[str]:
    """The parts of the page."""
    nobody: Any = None  # routes are described, and not called
    described = make_app(nobody, nobody, nobody).openapi()
    yield INTRO
    for place, operations in described["paths"].items():
        for method, one in operations.items():
            yield _operation(method, place, one)
    yield "## Documents"
    for name, model in sorted(described["components"]["schemas"].items()):
        if "properties" in model:
            yield _model(name, model)
    yield SESSION


def _operation(method: str, place: str, one: dict[str, Any]) -> str:
    parts = [f"## {method.upper()} {place}", one["description"]]
    rows = [
        f"| `{p['name']}` | {p['in']} | {_line(p.get('description', ''))} | {_shown_default(p['schema'])} |"
        for p in one.get("parameters", ())
    ]
    if rows:
        parts.append("\n".join(["| parameter | in | meaning | default |", "|---|---|---|---|", *rows]))
    if "requestBody" in one:
        parts.append(f"Body: {_link(one['requestBody']['content']['application/json']['schema'])}.")
    answers = [
        f"| {code} | {_line(answer['description'])} | {_answer(answer)} |"
        for code, answer in sorted(one["responses"].items())
    ]
    parts.append("\n".join(["| status | meaning | document |", "|---|---|---|", *answers]))
    return "\n\n".join(parts)


def _answer(answer: dict[str, Any]) -> str:
    content = answer.get("content", {})
    if "application/json" in content:
        return _link(content["application/json"]["schema"])
    return ", ".join(f"`{kind}`" for kind in content)


def _link(schema: dict[str, Any]) -> str:
    name = schema.get("$ref", "").rpartition("/")[2]
    return f"[{name}](#{name.lower()})" if name else "a JSON object"


def _shown_default(schema: dict[str, Any]) -> str:
    return f"`{json.dumps(schema['default'])}`" if "default" in schema else ""


def _model(name: str, model: dict[str, Any]) -> str:
    rows = []
    for key, schema in model["properties"].items():
        needed = "yes" if key in model.get("required", ()) else _shown_default(schema)
        rows.append(f"| `{key}` | {_type(schema)} | {needed} | {_line(schema.get('description', ''))} |")
    table = ["| key | type | required, or default | meaning |", "|---|---|---|---|", *rows]
    return "\n\n".join([f"### {name}", model.get("description", ""), "\n".join(table)])


def _type(schema: dict[str, Any]) -> str:
    """The type of a value in words."""
    if "anyOf" in schema:
        return " or ".join(_type(each) for each in schema["anyOf"])
    if "enum" in schema:
        return ", ".join(f"`{each}`" for each in schema["enum"])
    if "$ref" in schema:
        return _link(schema)
    if schema.get("type") == "array":
        return f"list of {_type(schema['items'])}"
    return str(schema.get("type", "anything"))


def _line(text: str) -> str:
    return text.replace("\n", " ").replace("|", "\\|")
