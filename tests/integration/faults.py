"""A proxy between Assay and a real API server that spoils chosen answers, and passes everything else on as it is.

What is not spoiled is the server's own: the continue tokens, the resource versions and the refusals that the tests see
through it are real ones.
"""

from __future__ import annotations

import base64
import json
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import urllib3

from scanner.model.json import JsonObject
from tests.integration.apiserver import ApiServer

PASSED_ON = ("accept", "accept-encoding", "authorization", "content-type", "impersonate-user", "user-agent")


@dataclass(frozen=True)
class Reply:
    """An answer on its way to Assay. `sent` is the share of the body that is sent before the connection ends."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    sent: float = 1.0
    orderly: bool = False
    drip: float = 0.0


Spoil = Callable[[Reply, "ProxiedRequest"], Reply]


@dataclass(frozen=True)
class ProxiedRequest:
    """One request: what it was for, and its number among those for the same path, from 1."""

    method: str
    path: str
    query: Mapping[str, str]
    number: int


@dataclass
class Proxy:
    """The answers that the proxy spoils, and the requests that it received."""

    server: ApiServer
    url: str = ""
    spoils: list[tuple[str, Callable[[int], bool], Spoil]] = field(default_factory=list)
    tokens: dict[str, str] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    requests: list[ProxiedRequest] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    over: threading.Event = field(default_factory=threading.Event)

    def spoil(self, path: str, when: int | Callable[[int], bool], how: Spoil) -> None:
        """Spoil the answer to the request of that number for a path, or to all for whose number `when` is true."""
        chosen = when if callable(when) else lambda number: number == when
        self.spoils.append((path, chosen, how))

    def kubeconfig(self, folder: Path, token: str = "") -> Path:
        """A kubeconfig that leads through the proxy, by default with the administrator's token."""
        path = folder / "through-the-proxy"
        user = {"name": "me", "user": {"token": token or self.server.token}}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {"name": "test", "cluster": {"server": self.url, "certificate-authority": str(self.server.ca)}}
            ],
            "users": [user],
            "contexts": [{"name": "me", "context": {"cluster": "test", "user": "me"}}],
            "current-context": "me",
        }
        path.write_text(json.dumps(config))
        return path

    def numbered(self, method: str, target: str) -> ProxiedRequest:
        """Take note of a request."""
        url = urlsplit(target)
        query = {key: values[0] for key, values in parse_qs(url.query).items()}
        with self.lock:
            number = 1 + sum(request.path == url.path for request in self.requests)
            request = ProxiedRequest(method, url.path, query, number)
            self.requests.append(request)
        return request

    def spoiled(self, reply: Reply, request: ProxiedRequest) -> Reply:
        """The answer after every fault that is chosen for its request."""
        for path, chosen, how in self.spoils:
            if path == request.path and chosen(request.number):
                reply = how(reply, request)
        return reply

    def requests_for(self, path: str) -> list[ProxiedRequest]:
        """The requests for one path."""
        return [request for request in self.requests if request.path == path]


@contextmanager
def spoiling(server: ApiServer, *, tls: bool = False) -> Iterator[Proxy]:
    """Run a proxy in front of a server for as long as the block lasts, if wanted with the server's own certificate."""
    proxy = Proxy(server)
    upstream = urllib3.PoolManager(ca_certs=str(server.ca), retries=False, timeout=30.0, maxsize=8)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # the body would wait 40 ms for the acknowledgement of the headers

        def do_GET(self) -> None:
            self._pass_on()

        def do_POST(self) -> None:
            self._pass_on()

        def _pass_on(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            request = proxy.numbered(self.command, self.path)
            headers = {name: value for name, value in self.headers.items() if name.lower() in PASSED_ON}
            token = headers.get("Authorization", "").removeprefix("Bearer ")
            headers |= {"Authorization": f"Bearer {proxy.tokens.get(token, token)}", **proxy.headers}
            answer = upstream.request(
                self.command, f"{server.url}{self.path}", body=body or None, headers=headers, decode_content=False
            )
            kept = {
                name: answer.headers[name] for name in ("Content-Type", "Content-Encoding") if name in answer.headers
            }
            self._send(proxy.spoiled(Reply(answer.status, answer.data, kept), request))

        def _send(self, reply: Reply) -> None:
            self.send_response(reply.status)
            for name, value in {"Content-Length": str(len(reply.body)), **reply.headers}.items():
                if value:
                    self.send_header(name, value)
            self.end_headers()
            with suppress(OSError):
                self._send_body(reply)

        def _send_body(self, reply: Reply) -> None:
            part = reply.body[: int(len(reply.body) * reply.sent)]
            step = 64 if reply.drip else max(len(part), 1)
            for start in range(0, len(part), step):
                self.wfile.write(part[start : start + step])
                self.wfile.flush()
                if reply.drip and proxy.over.wait(reply.drip):
                    break
            if reply.sent < 1:
                self.close_connection = True
                if not reply.orderly:
                    self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it so
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        listening.daemon_threads = True
        proxy.url = f"{'https' if tls else 'http'}://127.0.0.1:{listening.server_port}"
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(server.ca, server.ca.with_suffix(".key"))
            listening.socket = context.wrap_socket(listening.socket, server_side=True)
        thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield proxy
        finally:
            proxy.over.set()
            listening.shutdown()
            thread.join()
            upstream.clear()


# Ways to spoil an answer


def refused(status: int, message: str = "spoiled", *, retry_after: str = "", **metadata: object) -> Spoil:
    """Another answer instead: a refusal as an API server writes it."""
    body = {"kind": "Status", "apiVersion": "v1", "metadata": metadata, "message": message, "code": status}
    headers = {"Content-Type": "application/json", **({"Retry-After": retry_after} if retry_after else {})}
    return lambda _reply, _request: Reply(status, json.dumps(body).encode(), headers)


def reset(reply: Reply, _request: ProxiedRequest) -> Reply:
    """The connection is torn down in the middle of the body."""
    return replace(reply, sent=0.5)


def truncated(reply: Reply, _request: ProxiedRequest) -> Reply:
    """The body ends in the middle, and no header states its length."""
    headers = {**reply.headers, "Content-Length": "", "Connection": "close"}
    return replace(reply, headers=headers, sent=0.5, orderly=True)


def unfinished(reply: Reply, _request: ProxiedRequest) -> Reply:
    """The body ends in the middle, although its length was announced."""
    return replace(reply, sent=0.5, orderly=True)


def dripping(seconds: float) -> Spoil:
    """A few bytes at a time, with pauses."""
    return lambda reply, _request: replace(reply, drip=seconds)


def instead(body: bytes) -> Spoil:
    """Another body."""
    return lambda reply, _request: replace(reply, body=body, headers={"Content-Type": "application/json"})


def expired(reply: Reply, request: ProxiedRequest) -> Reply:
    """410 Gone in the server's words, with the token that continues from the same place at a later moment.

    That token is the old one with the resource version -1 (k8s.io/apiserver/pkg/storage, EncodeContinue).
    """
    token = json.loads(base64.urlsafe_b64decode(request.query["continue"] + "=="))
    fresh = base64.urlsafe_b64encode(json.dumps({**token, "rv": -1}).encode()).decode().rstrip("=")
    return refused(410, "The provided continue parameter is too old", **{"continue": fresh})(reply, request)


def remembered() -> tuple[Spoil, Spoil]:
    """A spoil that keeps an answer without changing it, and one that gives it again in the place of another."""
    kept: list[Reply] = []

    def keep(reply: Reply, _request: ProxiedRequest) -> Reply:
        kept.append(reply)
        return reply

    return keep, lambda _reply, _request: kept[-1]


def after(happening: Callable[[], None]) -> Spoil:
    """Let something happen once this answer has come from the server; the answer itself stays."""

    def spoil(reply: Reply, _request: ProxiedRequest) -> Reply:
        happening()
        return reply

    return spoil


def wait_until(condition: Callable[[], bool], seconds: float = 30.0) -> None:
    """Return when something has become true on the server."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the server did not change in time"
        time.sleep(0.05)


def status_of(answer: JsonObject) -> str:
    """The state of a report's scan."""
    provenance = answer["provenance"]
    assert isinstance(provenance, dict)
    return str(provenance["state"])
