"""A small API server on loopback that gives prepared responses and records the requests."""

from __future__ import annotations

import gzip
import json
import socket
import struct
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from scanner.model.json import Json


@dataclass(frozen=True)
class Reply:
    """One response.

    `cut` closes the connection after half of the body, `hang` is a pause in seconds before the response, `drip` a pause after
    every few bytes of the body, and `drip_headers` a pause after every byte of a header.
    """

    body: Json | bytes
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    cut: bool = False
    hang: float = 0.0
    drip: float = 0.0
    drip_headers: float = 0.0

    @property
    def data(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


@dataclass(frozen=True)
class ReceivedRequest:
    """One request as received; header names are in lower case."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: tuple[tuple[str, str], ...]
    body: bytes = b""

    def header(self, name: str) -> list[str]:
        return [value for key, value in self.headers if key == name]


Spoil = Callable[[Reply, ReceivedRequest], Reply]
"""A change of a response before it is sent."""


@dataclass
class FakeApi:
    """The responses by path: the replies in turn, the last one for all further requests. Other paths have 404.

    Without a prepared reply, `serve` responds if it is set. The spoils of the test change the responses of both.
    """

    url: str = ""
    replies: dict[str, list[Reply]] = field(default_factory=dict)
    serve: Callable[[ReceivedRequest], Reply | None] = lambda _: None
    spoils: list[tuple[str, Callable[[int], bool], Spoil]] = field(default_factory=list)
    requests: list[ReceivedRequest] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)

    def says(self, path: str, *replies: Reply) -> None:
        self.replies[path] = list(replies)

    def spoil(self, path: str, how: Spoil, when: Callable[[int], bool] = lambda _: True) -> None:
        """Spoil the responses for a path, by default all of them; `when` chooses by their number, from 1."""
        self.spoils.append((path, when, how))

    def reply_to(self, request: ReceivedRequest) -> Reply:
        """The response to a counted request."""
        reply = self._prepared(request)
        number = len(self.requests_for(request.path))
        for path, when, how in self.spoils:
            if path == request.path and when(number):
                reply = how(reply, request)
        return reply

    def _prepared(self, request: ReceivedRequest) -> Reply:
        prepared = self.replies.get(request.path, [])
        if not prepared:
            return self.serve(request) or refusal(404, "the server could not find the requested resource")
        return prepared.pop(0) if len(prepared) > 1 else prepared[0]

    def requests_for(self, path: str) -> list[ReceivedRequest]:
        return [request for request in self.requests if request.path == path]

    def kubeconfig(self, folder: Path, user: Mapping[str, Json] | None = None, **cluster: Json) -> str:
        """Write a kubeconfig for this server, by default with a token."""
        path = folder / "kubeconfig"
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "here",
            "contexts": [{"name": "here", "context": {"cluster": "shop", "user": "me"}}],
            "clusters": [{"name": "shop", "cluster": {"server": self.url, **cluster}}],
            "users": [{"name": "me", "user": {"token": "t0ken"} if user is None else dict(user)}],
        }
        path.write_text(json.dumps(config))
        return str(path)


def refusal(status: int, message: str, **metadata: Json) -> Reply:
    """The Status with which an API server refuses a request."""
    return Reply(
        {"kind": "Status", "apiVersion": "v1", "metadata": metadata, "message": message, "code": status}, status
    )


GROUPS = {"Deployment": "apps/v1"}
CLUSTER_SCOPED = ("Node", "Namespace")


def listing(kind: str, *names: str, version: str = "7", token: str = "", namespace: str = "default") -> Reply:
    """One page of a list."""
    metadata = {"resourceVersion": version, **({"continue": token} if token else {})}
    within = {} if kind in CLUSTER_SCOPED else {"namespace": namespace}
    items = [{"metadata": {"name": name, "uid": f"uid-of-{name}", **within}} for name in names]
    return Reply({"kind": f"{kind}List", "apiVersion": GROUPS.get(kind, "v1"), "metadata": metadata, "items": items})


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: object) -> None:
        """Print nothing about clients that ended during a response."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


@contextmanager
def serving() -> Iterator[FakeApi]:
    """Run a server on a free port while the block runs."""
    api = FakeApi()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # the body would wait 40 ms for the acknowledgement of the headers

        def do_GET(self) -> None:
            self._answer()

        def do_POST(self) -> None:
            self._answer(self.rfile.read(int(self.headers.get("Content-Length", 0))))

        do_PUT = do_POST  # noqa: N815 - the base class calls it by this name

        def _answer(self, body: bytes = b"") -> None:
            url = urlsplit(self.path)
            headers = tuple((name.lower(), value) for name, value in self.headers.items())
            request = ReceivedRequest(self.command, url.path, dict(parse_qsl(url.query)), headers, body)
            api.requests.append(request)
            reply = api.reply_to(request)
            api.released.wait(reply.hang)
            if reply.drip_headers:
                self._drip(b"HTTP/1.1 200 OK\r\nX-Slow: " + b"x" * 4000, reply.drip_headers, 1)
                self.close_connection = True
                return
            self._send(reply, gzipped="gzip" in self.headers.get("Accept-Encoding", ""))

        def _send(self, reply: Reply, *, gzipped: bool) -> None:
            data = gzip.compress(reply.data) if gzipped else reply.data
            encoding = {"Content-Encoding": "gzip"} if gzipped else {}
            fixed = {
                "Date": self.date_time_string(),
                "Content-Type": "application/json",
                "Content-Length": str(len(data)),
            }
            self.send_response_only(reply.status)
            for name, value in {**fixed, **encoding, **reply.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            if reply.drip:
                self._drip(data, reply.drip, 4)
                return
            with suppress(OSError):
                self.wfile.write(data[: len(data) // 2] if reply.cut else data)
            if reply.cut:
                self._reset()

        def _drip(self, data: bytes, pause: float, step: int) -> None:
            with suppress(OSError):
                for start in range(0, len(data), step):
                    self.wfile.write(data[start : start + step])
                    if api.released.wait(pause):
                        return

        def _reset(self) -> None:
            """Close the connection with a reset."""
            self.wfile.flush()
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.close_connection = True

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it so
            pass

    server = _Server(("127.0.0.1", 0), Handler)
    api.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield api
    finally:
        api.released.set()
        server.shutdown()
        server.server_close()
        thread.join()
