"""Addresses of Ray clusters that are not there: said at once, not after minutes."""

from __future__ import annotations

import importlib.util
import socket
import threading
import time

import pytest

from malleable.errors import ExecutionError
from malleable.execution import ray
from malleable.execution.ray import RayExecutor, _check

pytest.importorskip("ray")


@pytest.fixture
def mute():
    """The address of a server that accepts connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def closed():
    """An address at which no server listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.parametrize("prefix", ["", "ray://"])
def test_no_server(closed, prefix, monkeypatch):
    """A dead host:port is refused, before Ray is asked to connect."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: object())
    with pytest.raises(ExecutionError, match=f"{prefix}{closed}.*refused"):
        RayExecutor(f"{prefix}{closed}")


def test_a_silent_server(mute, monkeypatch):
    """A server that says nothing is given up after a while, less than 15 s in all."""
    assert 2 * ray.PATIENCE + 2.0 < 15.0
    monkeypatch.setattr(ray, "PATIENCE", 0.3)
    started = time.monotonic()
    with pytest.raises(ExecutionError, match="no answer"):
        RayExecutor(mute)
    assert time.monotonic() - started < 60.0


def test_another_server():
    """A web server is not taken for Ray."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            line, _ = server.accept()
            with line:
                line.recv(100)
                line.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        threading.Thread(target=answer, daemon=True).start()
        with pytest.raises(ExecutionError, match="not Ray"):
            RayExecutor(f"127.0.0.1:{server.getsockname()[1]}")


@pytest.mark.parametrize("address", ["nonsense", "host:port", "[::1", "ray://"])
def test_no_address(address, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: object())
    with pytest.raises(ExecutionError, match="cannot connect"):
        RayExecutor(address)


def test_client_that_is_not_installed(monkeypatch):
    """`ray://` needs ray[client], and says so when it is missing."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(ExecutionError, match=r"need ray\[client\]") as caught:
        RayExecutor("ray://127.0.0.1:10001")
    assert "malleable[ray]" in caught.value.hint


def test_address_from_the_environment(closed, monkeypatch):
    """`auto` looks where RAY_ADDRESS points; without it, and for `local`, there is nothing to ask."""
    monkeypatch.setenv("RAY_ADDRESS", closed)
    with pytest.raises(ExecutionError, match="refused"):
        _check("auto")
    monkeypatch.delenv("RAY_ADDRESS")
    _check("auto")
    _check("local")
