"""Answers of identity providers: of a limited size, within a limited time, of a limited depth."""

from __future__ import annotations

import asyncio
import gzip
import socket
import time
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from threading import Thread

import httpx2
import pytest
from joserfc import jws

from scanner.model.json import Json
from scanner.web.access.assertions import verify
from scanner.web.access.exchange import LimitedTransport, Shared, document_at
from scanner.web.access.keys import Keys
from scanner.web.access.refused import ProviderUnavailable, Refused, describe_code
from tests.http_server import serving_on_loopback
from tests.web.access.apart import run_apart
from tests.web.access.provider import key, key_set, signed

NESTED = b"[" * 200_000
MANY = 3_000


@contextmanager
def serving(pieces: list[bytes], *, pause: float = 0, encoding: str = "") -> Iterator[str]:
    """A server that answers every request with these pieces of a body, with a pause after each."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            if encoding:
                self.send_header("Content-Encoding", encoding)
            self.end_headers()
            try:
                for piece in pieces:
                    self.wfile.write(piece)
                    self.wfile.flush()
                    time.sleep(pause)
            except OSError:
                return

    with serving_on_loopback(Handler) as port:
        yield f"http://127.0.0.1:{port}"


@pytest.mark.parametrize(
    ("pieces", "encoding", "fault"),
    [
        pytest.param([b" " * 10_000] * MANY, "", "the answer has more than 1 MiB", id="spaces without end"),
        pytest.param([gzip.compress(b" " * 50_000_000)], "gzip", "the answer is compressed", id="a small bomb"),
        pytest.param([NESTED], "", "JSONDecodeError", id="nested without end"),
    ],
)
def test_an_answer_that_is_too_much_is_refused(pieces: list[bytes], encoding: str, fault: str) -> None:
    """Without reading the rest of it."""
    with serving(pieces, encoding=encoding) as url, pytest.raises(ProviderUnavailable, match=fault):
        run_apart(document_at(url))


def test_an_answer_that_drips_ends_in_time() -> None:
    """The limit is for the whole answer, not for each of its bytes."""

    async def ask(url: str) -> None:
        async with httpx2.AsyncClient(transport=LimitedTransport(0.3)) as client:
            await client.get(url)

    with serving([b" "] * 100, pause=0.05) as url, pytest.raises(httpx2.ReadTimeout, match=r"no whole answer in 0\.3"):
        run_apart(ask(url))


REPEATED = "hunter2canary"
REPEATING = {
    "a reason": f"HTTP/1.1 401 {REPEATED}\r\nContent-Length: 0\r\n\r\n",
    "no status": f"{REPEATED}\r\n\r\n",
    "a status that is none": f"HTTP/1.1 {REPEATED} OK\r\n\r\n",
    "a header that is none": f"HTTP/1.1 200 OK\r\nx {REPEATED}\r\n\r\n",
    "a length that is none": f"HTTP/1.1 200 OK\r\nContent-Length: {REPEATED}\r\n\r\n",
    "a chunk that is none": f"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{REPEATED}\r\n",
    "no JSON": f"HTTP/1.1 200 OK\r\nContent-Length: 14\r\n\r\n{{{REPEATED}",
    "an encoding": f"HTTP/1.1 200 OK\r\nContent-Encoding: {REPEATED}\r\nContent-Length: 0\r\n\r\n",
    "another address": f"HTTP/1.1 302 OK\r\nLocation: https://{REPEATED}\r\nContent-Length: 0\r\n\r\n",
}


@pytest.mark.parametrize("answer", REPEATING)
def test_no_fault_repeats_what_a_provider_sends(answer: str) -> None:
    """A provider or a proxy may repeat the token of the request: the fault has our own words, and the URL without its query."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65_536)
                connection.sendall(REPEATING[answer].encode())

        thread = Thread(target=serve)
        thread.start()
        place = f"127.0.0.1:{listener.getsockname()[1]}"
        with pytest.raises(ProviderUnavailable, match=f"^http://{place}/keys does not answer as it must: ") as refused:
            run_apart(document_at(f"http://bob:{REPEATED}@{place}/keys?x={REPEATED}", token=REPEATED))
        thread.join()
    assert REPEATED not in str(refused.value)


def test_only_known_codes_of_a_provider_are_shown() -> None:
    """Another text may repeat the secret of the client."""
    assert ("invalid_grant", "an unknown error") == (describe_code("invalid_grant"), describe_code(f"no {REPEATED}"))


@pytest.mark.parametrize("variable", ["http_proxy", "all_proxy"])
def test_a_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    """The provider is reached by it alone: no resolver knows its name."""
    with serving([b'{"issuer": "by the proxy"}']) as proxy:
        monkeypatch.setenv(variable, proxy)
        assert {"issuer": "by the proxy"} == run_apart(document_at("http://provider.invalid/"))


def test_who_asks_at_the_same_time_shares_one_answer() -> None:
    """A slow provider makes all wait as long as one; a later question is asked again."""
    asked: list[int] = []

    async def ask() -> int:
        asked.append(1)
        await asyncio.sleep(0.01)
        return len(asked)

    async def all_ask() -> tuple[list[int], int]:
        shared = Shared(ask)
        together = await asyncio.gather(*(shared.answer() for _ in range(50)))
        return together, await shared.answer()

    assert ([1] * 50, 2) == run_apart(all_ask())


def test_a_signed_token_that_is_nested_without_end_is_refused() -> None:
    """Anyone can send such a header, and an issuer such claims."""
    _, _, rest = signed({"sub": "u-1"}).partition(".")
    claims = jws.serialize_compact({"alg": "RS256", "kid": "first"}, NESTED[:50_000], key())

    async def keys() -> Json:
        return key_set()

    for token in (f"{urlsafe_b64encode(NESTED).decode().rstrip('=')}.{rest}", claims):
        with pytest.raises(Refused):
            run_apart(verify(token, Keys(keys), issuer="a", audience="b"))
