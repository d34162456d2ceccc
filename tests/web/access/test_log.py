"""The access log names who read what, and has no secret; an internal error is an id in the answer and a description in the log."""

from __future__ import annotations

import io
import logging
from collections.abc import Mapping
from urllib.parse import urlencode

import pytest
from starlette.responses import PlainTextResponse

from scanner.web.requests.listen import ListenAddress
from scanner.web.server.log import mask_events, mask_query, report_logs
from scanner.web.server.server import ServerOutput, ServerSettings, protect
from tests.web.access.apart import run_apart
from tests.web.access.conftest import TOKEN
from tests.web.access.provider import Provider
from tests.web.access.running import CANARY, Running, access, running
from tests.web.access.test_oidc import browser, settings
from tests.web.access.test_sessions import cookie, sign_in


def test_a_line_says_who_read_what(with_tokens: Running) -> None:
    """And how long the answer took."""
    with_tokens.get("/clusters/a?owner=team&q=a+b", authorization=f"Bearer {TOKEN}")
    line = with_tokens.log[-1]
    expected = {
        "level": "info",
        "client": "127.0.0.1",
        "method": "GET",
        "path": "/clusters/a",
        "query": "owner=team&q=a+b",
        "status": 200,
        "user": "grafana",
        "by": "token",
    }
    assert expected == {name: line[name] for name in expected}
    assert {"time", "id", "ms", "bytes"} == line.keys() - expected.keys()


@pytest.mark.parametrize(
    ("query", "logged"),
    [
        ("", ""),
        ("owner=a&at=2026-03-31", "owner=a&at=2026-03-31"),
        (f"code={CANARY}&state={CANARY}", "code=[redacted]&state=[redacted]"),
        (f"access_token={CANARY}", "access_token=[redacted]"),
        (f"id_token={CANARY}", "id_token=[redacted]"),
        (f"password={CANARY}&API_KEY={CANARY}", "password=[redacted]&API_KEY=[redacted]"),
        (f"q=token%3D{CANARY}", "q=token%3D[redacted]"),
        (f"q=https://jane:{CANARY}@host/", "q=https://jane:[redacted]%40host/"),
        (f"{'a&' * 200}x={CANARY}", "[redacted]"),
    ],
)
def test_a_query_is_logged_without_secrets(query: str, logged: str) -> None:
    """Those of signing in, and those that a user has put there by mistake."""
    assert logged == mask_query(query)


def test_no_line_has_a_secret(with_tokens: Running, provider: Provider) -> None:
    """Neither a token, a cookie, a code, a state nor the secret of the client; each of them was used."""
    session = cookie(sign_in(with_tokens))
    with_tokens.get("/", cookie=session, authorization=f"Bearer {CANARY}", referer=f"https://x/?token={CANARY}")
    with_tokens.get(f"/?token={CANARY}", cookie=session)
    with running(settings(provider)) as server, browser(server) as client:
        client.get("/clusters")
        cookies = [morsel.value for morsel in client.cookies.jar]
        secrets = [str(provider.asked[0]["state"]), provider.asked[0]["nonce"], provider.tokens[0]["code"], *cookies]
        lines = server.stream.getvalue() + with_tokens.stream.getvalue()
    known = [
        CANARY,
        TOKEN,
        session.partition("=")[2],
        "access-canary",
        provider.secret,
        provider.tokens[0]["code_verifier"],
    ]
    assert [] == [secret for secret in (*known, *secrets) if secret and secret in lines]
    assert ["/clusters", "/login", "/callback", "/clusters"] == [line["path"] for line in server.log]


@pytest.mark.parametrize(
    "target",
    [
        f"/?q={TOKEN}",
        f"/clusters/{TOKEN}/findings",
        f"/?{TOKEN}=1",
        f"/?next=%2F%3Fx%3D{TOKEN}",
        f"/?q={TOKEN.replace('_', '%5F')}",
        f"/?q={TOKEN.replace('_', '%255f')}",
        f"/?q={''.join(f'%25{ord(letter):x}' for letter in TOKEN)}",
        f"/login?next=/?key={TOKEN}",
        f"/clusters/{TOKEN.upper()}",
        f"/?q={TOKEN[:30]}",
    ],
)
def test_no_line_has_a_token_that_a_user_put_into_an_address(with_tokens: Running, target: str) -> None:
    """In the path or in the query, whole or cut, as it is or escaped."""
    with_tokens.get(target, authorization=f"Bearer {TOKEN}")
    line = with_tokens.stream.getvalue().splitlines()[-1]
    assert ("[redacted]" in line, "t" * 16 in line.lower(), "%74%74" in line, "%2574%2574" in line) == (
        True,
        False,
        False,
        False,
    )


def test_no_event_has_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    """The traceback of an internal error may quote the request, and what the event loop logs may quote it as well."""
    monkeypatch.setenv("ASSAY_DEBUG", "1")
    events: list[str] = []

    def event(level: str, message: str, fields: Mapping[str, str | int]) -> None:
        events.append(f"{level} {message} {dict(fields)}")

    async def fail(*_: object) -> None:
        raise RuntimeError(f"Authorization: Bearer {TOKEN}, GET /?key={TOKEN}")

    async def send(_: object) -> None:
        """Take the answer."""

    settings_of_server = ServerSettings(ListenAddress("127.0.0.1", 0), access())
    app = protect(fail, settings_of_server, ServerOutput(io.StringIO(), event, lambda *_: None))
    scope = {"type": "http", "method": "GET", "path": "/", "query_string": b"", "headers": [(b"host", b"localhost")]}
    run_apart(app(scope, None, send))  # type: ignore[arg-type]
    with report_logs(mask_events(event)):
        logging.getLogger("asyncio").error("Exception in callback %s", TOKEN)
    assert 2 == len(events)
    assert (
        "RuntimeError: Authorization: Bearer [redacted], GET /?key=[redacted]" in events[0],
        TOKEN in str(events),
    ) == (
        True,
        False,
    )


def test_control_characters_do_not_make_a_line(with_tokens: Running) -> None:
    """A path with a line end stays in its line."""
    before = len(with_tokens.log)
    with_tokens.send(b"GET /a%0a%7b%22user%22:%22root%22%7d HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    assert before + 1 == len(with_tokens.log)
    assert '/a\n{"user":"root"}' == with_tokens.log[-1]["path"]


@pytest.mark.parametrize("accept", ["text/html", "application/json", "*/*"])
def test_an_internal_error_is_an_id(unauthenticated: Running, accept: str) -> None:
    """The answer has neither a traceback nor the message; stderr has the place, under the same id."""
    answer = unauthenticated.get("/fail", accept=accept)
    number = str(unauthenticated.log[-1]["id"])
    assert (500, True) == (answer.status_code, number in answer.text)
    assert not [word for word in ("Traceback", "RuntimeError", ".py", CANARY) if word in answer.text]
    level, message = unauthenticated.events.pop()
    assert ("error", True, False) == (level, "internal error: RuntimeError in " in message, CANARY in message)


def test_an_answer_that_fails_midway_is_not_complete(unauthenticated: Running) -> None:
    """The client must not take a part for the whole."""
    answer = unauthenticated.send(b"GET /midway HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    assert b"first part" in answer
    assert not answer.endswith(b"0\r\n\r\n")
    assert 1 == len(unauthenticated.events)
    unauthenticated.events.clear()


def test_answers_have_the_headers_that_protect_browsers(with_tokens: Running) -> None:
    """Pages, refusals, redirects and probes."""
    answers = [with_tokens.get(path, accept="text/html") for path in ("/", "/login", "/healthz", "/?" + "a" * 5_000)]
    answers.append(with_tokens.get("/", authorization=f"Bearer {TOKEN}"))
    for answer in answers:
        headers = answer.headers
        assert ("nosniff", "same-origin", "no-store") == tuple(
            headers[name] for name in ("x-content-type-options", "referrer-policy", "cache-control")
        )
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert "server" not in headers


def test_a_form_may_only_be_sent_to_this_server(with_tokens: Running) -> None:
    """And the style sheet of the page is the only one that is applied."""
    policy = with_tokens.get("/login", accept="text/html").headers["content-security-policy"]
    assert "form-action 'self'" in policy
    assert "script-src" not in policy
    assert "style-src 'sha256-" in policy


def test_the_page_of_signing_in_is_escaped(with_tokens: Running) -> None:
    """An address stays text."""
    query = urlencode({"next": '/"><script>alert(1)</script>'})
    assert "<script" not in with_tokens.get(f"/login?{query}", accept="text/html").text


class Broken(io.StringIO):
    """A stream whose reader has gone."""

    def write(self, _: str) -> int:
        raise BrokenPipeError


def test_a_log_that_cannot_be_written_ends_with_a_message() -> None:
    """Requests are answered all the same; the log does not end in silence."""
    events: list[str] = []

    def event(level: str, message: str, fields: Mapping[str, str | int]) -> None:
        events.append(message)

    output = ServerOutput(Broken(), event, lambda *_: None)
    app = protect(PlainTextResponse("page"), ServerSettings(ListenAddress("127.0.0.1", 0), access()), output)
    statuses: list[int] = []

    async def ask() -> None:
        async def send(message: object) -> None:
            if isinstance(message, dict) and "status" in message:
                statuses.append(message["status"])

        scope = {
            "type": "http",
            "method": "GET",
            "path": "/",
            "query_string": b"",
            "headers": [(b"host", b"localhost")],
        }
        for _ in range(2):
            await app(dict(scope), None, send)  # type: ignore[arg-type]

    run_apart(ask())
    assert [200, 200] == statuses
    assert 1 == len(events)
    assert "the access log ends" in events[0]


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics"])
def test_probes_and_scrapes_are_logged_at_debug(path: str) -> None:
    """They come every few seconds, and would be most of the log: without --log-probes, only those that fail are logged."""
    with running(access()) as quiet, running(access(), verbose=True) as verbose:
        for server in (quiet, verbose):
            server.get(path)
            server.get("/clusters")
    assert [("info", "/clusters")] == [(line["level"], line["path"]) for line in quiet.log]
    assert [("debug", path), ("info", "/clusters")] == [(line["level"], line["path"]) for line in verbose.log]


def test_a_scrape_that_is_refused_is_logged(with_tokens: Running) -> None:
    """Prometheus then has no metrics, and the log has the reason."""
    with_tokens.get("/metrics")
    assert ("info", 401) == (with_tokens.log[-1]["level"], with_tokens.log[-1]["status"])


def test_an_internal_error_is_logged_as_an_error(unauthenticated: Running) -> None:
    """By which people who watch the log find it."""
    unauthenticated.get("/fail")
    assert "error" == unauthenticated.log[-1]["level"]
