"""Clients that ask for too much, or take too long, are refused, and others are answered meanwhile."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import suppress

import httpx2
import pytest

from scanner.web.requests.limits import Limits
from tests.web.access.running import SECONDS, Running, access, running

HASTY = Limits(head_seconds=0.3, send_seconds=2, requests=1, connections=20)


@pytest.fixture(scope="module")
def hasty() -> Iterator[Running]:
    """A server whose clients have a third of a second for a head and two seconds for an answer, one at a time."""
    with running(access(), limits=HASTY) as server:
        yield server


def wait_until_ended(connection: socket.socket) -> None:
    """Wait until the server ends a connection; raise TimeoutError if it does not."""
    connection.settimeout(SECONDS)
    with suppress(ConnectionResetError):
        while connection.recv(65_536):
            pass


def wait_for(server: Running, status: int) -> httpx2.Response:
    """The first answer with a status, of which there must be one soon."""
    deadline = time.monotonic() + SECONDS
    while (answer := server.get("/")).status_code != status:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return answer


@pytest.mark.parametrize("path", ["/" + "a" * 5_000, "/?q=" + "a" * 5_000])
def test_a_long_address_is_refused(unauthenticated: Running, path: str) -> None:
    """A filter has some hundred characters."""
    assert 414 == unauthenticated.get(path).status_code


def test_a_large_head_is_refused(unauthenticated: Running) -> None:
    """Before it is complete."""
    answer = unauthenticated.send(b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Large: " + b"a" * 40_000)
    assert b" 400 " in answer[:13]


@pytest.mark.parametrize(
    "head",
    [
        "GET / HTTP/1.1\r\nContent-Length: 1",
        "POST /login HTTP/1.1\r\nContent-Length: 9000",
        "GET / HTTP/1.1\r\nTransfer-Encoding: chunked",
    ],
)
def test_a_body_that_nobody_needs_is_refused(unauthenticated: Running, head: str) -> None:
    """The answer comes before the body, and ends the connection."""
    answer = unauthenticated.send(f"{head}\r\nHost: localhost\r\n\r\n".encode())
    assert b" 413 " in answer[:13]
    assert b"connection: close" in answer.lower()


@pytest.mark.parametrize("beginning", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: "])
def test_a_slow_head_ends_the_connection(hasty: Running, beginning: bytes) -> None:
    """Also if the client sends a byte now and then."""
    with socket.create_connection(hasty.place) as connection:
        connection.sendall(beginning)
        time.sleep(0.15)
        if beginning:
            connection.sendall(b"a")
        wait_until_ended(connection)


def test_a_second_head_may_be_slow_no_longer(hasty: Running) -> None:
    """The limit counts for each request of a connection."""
    with socket.create_connection(hasty.place) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b" 200 " in connection.recv(65_536)[:13]
        connection.sendall(b"GET / HT")
        wait_until_ended(connection)


def test_a_client_that_receives_nothing_loses_its_connection(hasty: Running) -> None:
    """It would keep what the answer needs; others are answered afterwards."""
    with socket.create_connection(hasty.place) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        connection.sendall(b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert "2" == wait_for(hasty, 503).headers["retry-after"]
        wait_for(hasty, 200)


def test_probes_are_answered_by_a_busy_server(hasty: Running) -> None:
    """A server that has much to do must not be restarted."""
    with socket.create_connection(hasty.place) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        connection.sendall(b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n")
        wait_for(hasty, 503)
        assert 200 == hasty.get("/healthz").status_code
    wait_for(hasty, 200)


@pytest.mark.parametrize("data", [b"\x16\x03\x01\x02\x00", b"GET\r\n\r\n", b"\x00" * 100 + b"\r\n\r\n"])
def test_what_is_no_http_ends_the_connection(unauthenticated: Running, data: bytes) -> None:
    """Without an event: anybody can send it."""
    assert b" 400 " in unauthenticated.send(data)[:13]
    assert [] == unauthenticated.events
