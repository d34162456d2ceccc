"""Who may read: every client on loopback, and elsewhere only clients with credentials that are valid."""

from __future__ import annotations

import pytest

from scanner.model.json import as_object
from scanner.web.access.settings import AssertionSettings
from tests.web.access.conftest import EXPIRED, TOKEN, UNKNOWN
from tests.web.access.running import Running, access, running

HTML = "text/html,*/*"


def test_loopback_needs_no_authentication(unauthenticated: Running) -> None:
    """The application gets an empty name."""
    answer = unauthenticated.get("/clusters")
    assert (200, {"user": "", "session": False, "path": "/clusters"}) == (answer.status_code, answer.json())


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:8080", "LOCALHOST", "[::1]:80", "127.3.2.1"])
def test_loopback_has_several_names(unauthenticated: Running, host: str) -> None:
    """Users write what they like, and port forwarding changes the port."""
    assert 200 == unauthenticated.get("/", host=host).status_code


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80", "10.0.0.1", "a@b", "[::1", ""]
)
def test_a_page_whose_name_resolves_to_loopback_reads_nothing(unauthenticated: Running, host: str) -> None:
    """DNS rebinding: the browser sends the name of the other site."""
    answer = unauthenticated.send(f"GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
    assert b"HTTP/1.1 421 " == answer[:13]
    assert b'"user"' not in answer
    assert "unknown host" == unauthenticated.log[-1]["refused"]


def test_a_request_without_a_host_reads_nothing(unauthenticated: Running) -> None:
    """HTTP/1.0 allows it."""
    assert b" 421 " in unauthenticated.send(b"GET / HTTP/1.0\r\n\r\n")[:13]


def test_two_hosts_are_no_request(unauthenticated: Running) -> None:
    """One of them could be checked, and the other one used."""
    assert b" 400 " in unauthenticated.send(b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n")[:13]


def test_a_public_url_has_one_name() -> None:
    """Besides those of loopback."""
    settings = access(public_url="https://assay.example.com", hosts=frozenset({"assay.example.com"}))
    with running(settings) as server:
        codes = [server.get("/", host=host).status_code for host in ("assay.example.com", "127.0.0.1", "example.com")]
    assert [200, 200, 421] == codes


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND"])
@pytest.mark.parametrize("path", ["/", "/api/v1/scans", "/healthz"])
def test_the_server_can_only_be_read(unauthenticated: Running, method: str, path: str) -> None:
    """On every path."""
    answer = unauthenticated.ask(method, path)
    assert (405, "GET, HEAD") == (answer.status_code, answer.headers["allow"])


def test_a_token_reads(with_tokens: Running) -> None:
    """Its name is the user's."""
    answer = with_tokens.get("/x", authorization=f"Bearer {TOKEN}")
    assert "grafana" == as_object(answer.json())["user"]


def test_a_token_reads_by_any_name_of_the_server(with_tokens: Running) -> None:
    """A program calls the Service, and no page of another site can send a token that it does not know."""
    assert 200 == with_tokens.get("/", authorization=f"bearer {TOKEN}", host="assay.assay.svc:8080").status_code


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("", "no credentials"),
        (f"Bearer {UNKNOWN}", "unknown token"),
        (f"Bearer {EXPIRED}", "the token old has expired"),
        (f"Bearer {TOKEN[:-1]}", "unknown token"),
        (f"Bearer {TOKEN}x", "unknown token"),
        ("Bearer", "unknown token"),
        (f"Basic {TOKEN}", "no credentials"),
    ],
)
def test_other_tokens_read_nothing(with_tokens: Running, value: str, reason: str) -> None:
    """The client does not learn why; the log has the reason."""
    answer = with_tokens.get("/", **({"authorization": value} if value else {}))
    assert (401, "Bearer") == (answer.status_code, answer.headers["www-authenticate"])
    assert "expired" not in answer.text
    assert reason == with_tokens.log[-1]["refused"]


def test_two_tokens_are_refused(with_tokens: Running) -> None:
    """Also if one of them is valid."""
    head = f"GET / HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\nAuthorization: Bearer x\r\nConnection: close\r\n\r\n"
    assert b" 401 " in with_tokens.send(head.encode())[:13]


@pytest.mark.parametrize(
    "name",
    [
        "X-Forwarded-User",
        "X_Forwarded_User",
        "X-Auth-Request-User",
        "X-Remote-User",
        "Remote-User",
        "X-Forwarded-Email",
        "X-Forwarded-Host",
    ],
)
def test_a_plain_header_never_names_a_user(with_tokens: Running, name: str) -> None:
    """Every client that reaches the server could send it."""
    assert 401 == with_tokens.ask("GET", "/", {name: "admin"}).status_code


@pytest.mark.parametrize(
    "path",
    [
        "//",
        "/healthz/../x",
        "/healthz/",
        "/HEALTHZ",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/healthz%2f..%2fx",
        "/healthz;x",
        "/login/../x",
        "/readyz%00",
    ],
)
def test_no_spelling_of_a_path_leads_around_the_guard(with_tokens: Running, path: str) -> None:
    """Only the exact paths of probes are open."""
    answer = with_tokens.send(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
    assert b" 401 " in answer[:13]


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_probes_need_no_credentials(with_tokens: Running, path: str) -> None:
    """The kubelet has none, and calls the address of the pod."""
    assert 200 == with_tokens.get(path, host="10.1.2.3:8080").status_code


def test_metrics_need_a_token(with_tokens: Running) -> None:
    """Prometheus sends it."""
    assert 401 == with_tokens.get("/metrics").status_code
    assert 200 == with_tokens.get("/metrics", authorization=f"Bearer {TOKEN}").status_code


def test_an_address_for_metrics_has_nothing_else() -> None:
    """It needs no token, and the first address still does."""
    settings = AssertionSettings("X-Signed", "https://keys.example/", "proxy", "assay")
    with running(access(assertion=settings), metrics=True) as server:
        assert 401 == server.get("/metrics").status_code
        codes = [
            server.ask("GET", f"{server.metrics}{path}").status_code for path in ("/metrics", "/healthz", "/", "/login")
        ]
    assert [200, 200, 404, 404] == codes


def test_a_browser_is_sent_to_sign_in(with_tokens: Running) -> None:
    """With the address that it asked for; a program gets a status."""
    answer = with_tokens.get("/clusters/a?owner=team%20b", accept=HTML)
    assert (303, "/login?next=%2Fclusters%2Fa%3Fowner%3Dteam%2520b") == (answer.status_code, answer.headers["location"])
    assert 401 == with_tokens.get("/api/v1/scans", accept="application/json").status_code
