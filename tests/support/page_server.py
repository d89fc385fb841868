"""A server that stands in for the broker's: the page's files, given documents, and a stream of them."""

from __future__ import annotations

import json
import queue
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from malleable.live.broker.page import FILES, HEADERS

TOKEN = "open sesame"


class Handler(BaseHTTPRequestHandler):
    """Answers requests; `outer` is the server that it belongs to."""

    protocol_version = "HTTP/1.1"
    outer = None

    def log_message(self, *_):
        pass

    def do_GET(self):
        if self.path in FILES:
            file = FILES[self.path]
            self.answer(200, file.text().encode(), file.media_type, HEADERS)
        elif self.path in {"/v1/status", "/v1/history"}:
            document = self.outer.status if self.path.endswith("status") else self.outer.history
            self.answer(200, json.dumps(document).encode())
        elif self.path == "/v1/jobs?ended=20&present=false":
            self.answer(200, json.dumps({"jobs": self.outer.ended}).encode())
        elif "/log?stream=" in self.path:
            allowed = self.headers.get("Authorization") == f"Bearer {TOKEN}"
            text = self.outer.logs.get(self.path.split("/")[3], {}).get(self.path.partition("stream=")[2], "")
            self.answer(200 if allowed else 401, text.encode() if allowed else b"{}", "text/plain")
        elif self.path.startswith("/v1/events?most="):
            self.stream()
        else:
            self.answer(404, b"{}")

    def do_PATCH(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            self.answer(401, b'{"detail": "no"}')
            return
        self.outer.changes.append((self.command, self.path, json.loads(body or b"null")))
        self.answer(200, b"{}")

    def do_DELETE(self):
        self.do_PATCH()

    def stream(self):
        waiting = queue.Queue()
        self.outer.streams.append(waiting)
        self.close_connection = True
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(b": hello\n\n")
        try:
            while (text := waiting.get()) is not None:
                self.wfile.write(text)
        except OSError:
            pass
        finally:
            self.outer.streams.remove(waiting)

    def answer(self, code, body, media_type="application/json", headers=()):
        self.send_response(code)
        for name, value in dict(headers).items():
            self.send_header(name, value)
        self.send_header("Content-Type", media_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class PageServer:
    """Serves on loopback until it is closed; `send` is what the broker would say next."""

    def __init__(self, status, history):
        self.status, self.history = status, history
        self.changes, self.streams, self.ended, self.logs = [], [], [], {}
        self.start(0)

    def start(self, port):
        self.server = ThreadingHTTPServer(("127.0.0.1", port), type("Handler", (Handler,), {"outer": self}))
        self.server.daemon_threads = True
        self.port = self.server.server_port
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)
        self.thread.start()

    @property
    def address(self):
        return f"http://127.0.0.1:{self.port}/"

    def send(self, status):
        """The broker's state has changed: all that listen are told."""
        self.status = status
        for stream in list(self.streams):
            stream.put(f"event: status\ndata: {json.dumps(status)}\n\n".encode())

    def close(self):
        """As when the broker dies: connections end, and nobody answers."""
        self.server.shutdown()
        for stream in list(self.streams):
            stream.put(None)
        self.thread.join()
        self.server.server_close()
