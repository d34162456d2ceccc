"""One request and its response: one deadline covers all of it, for any delay of server or proxy."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from scanner.cluster.requests.exchange import resolve_addresses
from scanner.cluster.requests.limits import Deadline
from scanner.cluster.requests.session import AnswerTooLarge, ApiSession, NoResponse
from scanner.model.json import Json
from tests.cluster.server import FakeApi, Reply

LATE = "did not respond in time"
SOON = 0.4
LONG = 8.0


@contextmanager
def listening(answer: Callable[[socket.socket], None]) -> Iterator[str]:
    """A server that treats each connection in one way, as `host:port`; its response may never end."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def accept() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    threading.Thread(target=treat, args=(connection,), daemon=True).start()

        def treat(connection: socket.socket) -> None:
            with connection, suppress(OSError):
                answer(connection)

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)
        thread.join()


def silent(connection: socket.socket) -> None:
    """Send nothing until the client closes the connection."""
    while connection.recv(1 << 16):
        pass


def dripping(start: bytes, drop: bytes = b"x") -> Callable[[socket.socket], None]:
    """Send some bytes, and then one byte at a time."""

    def answer(connection: socket.socket) -> None:
        connection.recv(1 << 16)
        connection.sendall(start)
        for _ in range(400):
            connection.sendall(drop)
            time.sleep(0.05)

    return answer


DRIPS = {
    "status line": dripping(b"HTTP/1.1 20"),
    "header": dripping(b"HTTP/1.1 200 OK\r\nX: "),
    "headers": dripping(b"HTTP/1.1 200 OK\r\n", b"X: y\r\n"),
    "interim answers": dripping(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "body": dripping(b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n"),
    "size of a chunk": dripping(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"0"),
    "chunks": dripping(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
    "nothing": silent,
}


def session(api: FakeApi, folder: Path, server: str, **cluster: Json) -> ApiSession:
    """A client with a very short deadline."""
    config = api.kubeconfig(folder, None, server=server, **cluster)
    return ApiSession(kubeconfig=config, request_timeout=SOON, sleep=lambda _: None)


def seconds_until_given_up(client: ApiSession) -> float:
    """The seconds until a request without a response fails."""
    started = time.monotonic()
    with pytest.raises(NoResponse, match=LATE):
        client.get("/version", attempts=1)
    return time.monotonic() - started


@pytest.mark.parametrize("drip", DRIPS.values(), ids=DRIPS)
def test_no_part_of_an_answer_outlasts_the_deadline(
    api: FakeApi, tmp_path: Path, drip: Callable[[socket.socket], None]
) -> None:
    """Each byte is in time for the timeout of the socket."""
    with listening(drip) as host:
        assert SOON <= seconds_until_given_up(session(api, tmp_path, f"http://{host}")) < LONG


@pytest.mark.parametrize("drip", [silent, dripping(b"\x16\x03\x03\x00\xff")], ids=["silent", "dripping"])
def test_no_handshake_outlasts_the_deadline(
    api: FakeApi, tmp_path: Path, drip: Callable[[socket.socket], None]
) -> None:
    """The TLS handshake is part of the request."""
    with listening(drip) as host:
        assert SOON <= seconds_until_given_up(session(api, tmp_path, f"https://{host}")) < LONG


@pytest.mark.parametrize("drip", [silent, DRIPS["header"], DRIPS["headers"]], ids=["silent", "header", "headers"])
def test_no_proxy_outlasts_the_deadline(api: FakeApi, tmp_path: Path, drip: Callable[[socket.socket], None]) -> None:
    """The response to CONNECT has no deadline of its own."""
    with listening(drip) as host:
        client = session(api, tmp_path, "https://cluster.example", **{"proxy-url": f"http://{host}"})
        assert SOON <= seconds_until_given_up(client) < LONG


def test_a_server_behind_a_proxy_has_what_the_proxy_left(api: FakeApi, tmp_path: Path) -> None:
    """The proxy connects at once, and the TLS handshake never begins."""

    def tunnel(connection: socket.socket) -> None:
        connection.recv(1 << 16)
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        silent(connection)

    with listening(tunnel) as host:
        client = session(api, tmp_path, "https://cluster.example", **{"proxy-url": f"http://{host}"})
        assert SOON <= seconds_until_given_up(client) < LONG


def test_a_connection_that_is_used_again_has_all_its_time(api: FakeApi, tmp_path: Path) -> None:
    """The deadline of an earlier request does not affect a later one."""
    client = ApiSession(kubeconfig=api.kubeconfig(tmp_path), request_timeout=5)
    api.says("/version", Reply({"n": 1}, hang=0.5), Reply({"n": 2}, hang=0.5))
    assert [1, 2] == [client.get("/version").body()["n"] for _ in range(2)]


@pytest.mark.parametrize("size", [64 << 20, (64 << 20) + 1])
def test_an_answer_has_64_mib_at_most(api: FakeApi, tmp_path: Path, size: int) -> None:
    """A larger response fails, and is not requested again in the same size."""
    client = ApiSession(kubeconfig=api.kubeconfig(tmp_path), sleep=lambda _: None)
    api.says("/large", Reply(b" " * size))
    if size <= 64 << 20:
        assert size == len(client.get("/large").data)
        return
    with pytest.raises(AnswerTooLarge, match="is larger than 64 MiB"):
        client.get("/large")
    assert 1 == len(api.requests)


def test_a_look_up_ends_with_the_deadline() -> None:
    """The resolver continues, and the request does not wait for it."""
    over = threading.Event()

    def slow(_host: str, _port: int) -> Iterable[str]:
        over.wait(20)
        return ()

    with pytest.raises(TimeoutError, match=r"looking up cluster\.example timed out"):
        resolve_addresses("cluster.example", 443, Deadline(0.1), slow)
    over.set()


def test_a_failed_look_up_has_the_resolvers_error() -> None:
    """The error has the resolver's text."""

    def failing(_host: str, _port: int) -> Iterable[str]:
        raise socket.gaierror(socket.EAI_NONAME, "no such name")

    with pytest.raises(OSError, match="no such name"):
        resolve_addresses("cluster.example", 443, Deadline(5), failing)
