"""Any request of a client: without valid credentials it reads nothing, and causes no internal error."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.types import ASGIApp, Message

from scanner.web.access.settings import AccessSettings, AssertionSettings, OidcSettings
from scanner.web.requests.listen import ListenAddress
from scanner.web.server.server import ServerOutput, ServerSettings, protect
from tests.web.access.apart import run_apart
from tests.web.access.conftest import TOKEN, TOKENS
from tests.web.access.provider import key_set, signed, signed_by_nothing
from tests.web.access.running import access, pages
from tests.web.access.test_assertions import HEADER, claims

OPEN = ("/healthz", "/readyz")
REFUSED = {303, 400, 401, 403, 405, 413, 414, 421, 503}
OWN = ("/login", "/callback", "/logout")
TEXTS = st.text(st.characters(min_codepoint=0x20, max_codepoint=0xFF), max_size=60)
PATHS = st.one_of(
    st.sampled_from(["/", "/clusters/a", "/metrics", "/api/v1/scans", *OWN]),
    st.text(max_size=40).map(lambda text: f"/{text}"),
    st.tuples(st.sampled_from([*OPEN, *OWN]), st.sampled_from(["/", "/..", "//", ";", "%", "\0", " ", "?"])).map(
        "".join
    ),
)
VALUES = st.one_of(
    TEXTS,
    st.sampled_from(
        ["Bearer", "Bearer x", f"Bearer {TOKEN[:-1]}", "Basic eDp4", "a.b.c", "e30.e30.", "Bearer e30.e30.e30"]
    ),
    TEXTS.map(lambda text: f"Bearer {text}"),
    TEXTS.map(lambda text: f"assay={text}; assay-sign-in-0={text}"),
)
NAMES = st.sampled_from(
    [
        "authorization",
        "cookie",
        HEADER.lower(),
        "x_signed_user",
        "x-forwarded-user",
        "host",
        "accept",
        "content-length",
        "origin",
    ]
)
METHODS = st.sampled_from(["GET", "HEAD", "POST", "OPTIONS", "DELETE", "X"])


async def answered(app: ASGIApp, scope: Mapping[str, object]) -> tuple[int, bytes]:
    """The status and the body of an answer."""
    received: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b"token=x", "more_body": False}

    async def send(message: Message) -> None:
        received.append(message)

    await app(dict(scope), receive, send)
    return received[0]["status"], b"".join(message.get("body", b"") for message in received)


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> AccessSettings:
    """All ways of access at once; the provider does not answer."""
    keys = tmp_path_factory.mktemp("keys") / "keys.json"
    keys.write_bytes(orjson.dumps(key_set("first")))
    return access(
        tokens=TOKENS,
        assertion=AssertionSettings(HEADER, str(keys), "proxy", "assay"),
        oidc=OidcSettings("http://127.0.0.1:9", "assay", "", ("auditors",)),
    )


@given(
    method=METHODS,
    path=PATHS.filter(lambda path: path not in OPEN),
    query=st.text(max_size=30),
    headers=st.lists(st.tuples(NAMES, VALUES), max_size=4),
)
def test_a_stranger_reads_nothing(
    settings: AccessSettings, method: str, path: str, query: str, headers: list[tuple[str, str]]
) -> None:
    """The answer is a page of signing in, or a refusal; nothing of the application is in it."""
    events: list[str] = []
    output = ServerOutput(io.StringIO(), lambda level, message, fields: events.append(message), lambda *_: None)
    app = protect(pages(), ServerSettings(ListenAddress("127.0.0.1", 0), settings), output)
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(errors="replace"),
        "query_string": query.encode(errors="replace"),
        "headers": [(b"host", b"localhost"), *((name.encode(), value.encode("latin-1")) for name, value in headers)],
        "client": ("127.0.0.1", 1),
    }
    status, body = run_apart(answered(app, scope))
    assert status in REFUSED or (path in OWN and status == 200)
    assert b'"user"' not in body
    assert [] == events


@pytest.mark.parametrize(
    ("name", "value", "status"),
    [
        ("authorization", lambda: f"Bearer {TOKEN}", 200),
        (HEADER, lambda: signed(claims()), 200),
        (HEADER, lambda: signed_by_nothing(claims()), 401),
    ],
    ids=["token", "assertion", "forged"],
)
def test_the_same_settings_admit_those_who_may(
    settings: AccessSettings, name: str, value: Callable[[], str], status: int
) -> None:
    """The test above would pass for a server that refuses everyone."""
    output = ServerOutput(io.StringIO(), lambda *_: None, lambda *_: None)
    app = protect(pages(), ServerSettings(ListenAddress("127.0.0.1", 0), settings), output)
    headers = [(b"host", b"localhost"), (name.lower().encode(), value().encode())]
    scope = {"type": "http", "method": "GET", "path": "/a", "query_string": b"", "headers": headers}
    assert status == run_apart(answered(app, scope))[0]
