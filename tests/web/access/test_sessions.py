"""Sessions: a browser that signs in gets a new one, which ends, and which no other client can make or keep for it."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from http.cookies import SimpleCookie
from urllib.parse import urlencode

import httpx2
import pytest
from starlette.requests import Request
from starlette.responses import Response

from scanner.model.access_token import AccessToken
from scanner.web.access.sessions import Pending, Sessions
from scanner.web.access.sign_in import target_of
from scanner.web.access.tokens import digest_of
from tests.web.access.conftest import EXPIRED, TODAY, TOKEN, TOKENS
from tests.web.access.running import KEY, Running, access, running

HTML = "text/html"


def sign_in(server: Running, token: str = TOKEN, target: str = "/", **headers: str) -> httpx2.Response:
    """Send the form with a token."""
    form = urlencode({"token": token, "next": target}).encode()
    own = {name.replace("_", "-"): value for name, value in headers.items()}
    return server.ask(
        "POST", "/login", {"Content-Type": "application/x-www-form-urlencoded", "Accept": HTML, **own}, form
    )


def cookie(answer: httpx2.Response) -> str:
    """The cookies that an answer sets, as a browser sends them back."""
    parsed = SimpleCookie()
    for line in answer.headers.get_list("set-cookie"):
        parsed.load(line)
    return "; ".join(f"{name}={morsel.value}" for name, morsel in parsed.items() if morsel.value)


def request_with(cookies: str) -> Request:
    """A request with cookies."""
    return Request(
        {"type": "http", "method": "GET", "path": "/", "query_string": b"", "headers": [(b"cookie", cookies.encode())]}
    )


def test_a_browser_signs_in_with_a_token(with_tokens: Running) -> None:
    """Without OIDC: the form leads to the page that was asked for."""
    assert 'name="token"' in with_tokens.get("/login?next=/a%3Fb", accept=HTML).text
    answer = sign_in(with_tokens, target="/a?b")
    assert (303, "/a?b") == (answer.status_code, answer.headers["location"])
    page = with_tokens.get("/a?b", cookie=cookie(answer))
    assert {"user": "grafana", "session": True, "path": "/a"} == page.json()


@pytest.mark.parametrize("token", ["", EXPIRED, "assay_wrong"])
def test_a_wrong_token_begins_no_session(with_tokens: Running, token: str) -> None:
    """And the page does not repeat it."""
    answer = sign_in(with_tokens, token)
    assert (401, "") == (answer.status_code, cookie(answer))
    assert not token or token not in answer.text


@pytest.mark.parametrize(
    "headers",
    [
        {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "same-site"},
        {"origin": "https://evil.example"},
        {"origin": "null"},
    ],
)
def test_another_site_cannot_sign_a_user_in_or_out(with_tokens: Running, headers: dict[str, str]) -> None:
    """A form of another site is refused, before anything of it is read."""
    assert 403 == sign_in(with_tokens, **headers).status_code
    own = {name.replace("_", "-"): value for name, value in headers.items()}
    assert 403 == with_tokens.ask("POST", "/logout", own).status_code


def test_a_session_ends_at_sign_out(with_tokens: Running) -> None:
    """Also for those who copied its cookie."""
    session = cookie(sign_in(with_tokens))
    answer = with_tokens.ask("POST", "/logout", {"Cookie": session, "Origin": with_tokens.url})
    assert (303, "/logout") == (answer.status_code, answer.headers["location"])
    assert re.search(r"assay=\"\"; .*Max-Age=0", answer.headers["set-cookie"])
    assert 401 == with_tokens.get("/", cookie=session).status_code
    assert "You are signed out" in with_tokens.get("/logout", accept=HTML).text


def test_the_page_of_the_session_has_the_button_to_end_it(with_tokens: Running) -> None:
    """It names the user, which other pages, kept for all users, do not."""
    page = with_tokens.get("/logout", cookie=cookie(sign_in(with_tokens)), accept=HTML).text
    assert "You are signed in as grafana." in page
    assert '<form method="post" action="/logout">' in page


def test_each_sign_in_has_a_session_of_its_own(with_tokens: Running) -> None:
    """A cookie that an attacker gave the browser before never becomes a session (session fixation)."""
    planted = cookie(sign_in(with_tokens))
    answer = sign_in(with_tokens, cookie=planted)
    assert cookie(answer) not in {"", planted}
    with_tokens.ask("POST", "/logout", {"Cookie": planted})
    assert 200 == with_tokens.get("/", cookie=cookie(answer)).status_code
    assert 401 == with_tokens.get("/", cookie="assay=chosen-by-attacker").status_code


@pytest.mark.parametrize(
    ("public_url", "name", "secure"),
    [
        ("https://assay.example.com", "__Host-assay", True),
        ("", "assay", False),
        ("http://localhost:8080", "assay", False),
    ],
)
def test_a_cookie_is_for_this_server_alone(public_url: str, name: str, secure: bool) -> None:  # noqa: FBT001 - a case
    """Secure besides on loopback without TLS; no script reads it, no other site sends it."""
    with running(access(tokens=TOKENS, public_url=public_url)) as server:
        line = sign_in(server).headers["set-cookie"]
    attributes = {part.strip().lower() for part in line.split(";")[1:]}
    assert f"{name}=" == line[: len(name) + 1]
    assert {"httponly", "samesite=lax", "path=/", "max-age=28800"} <= attributes
    assert secure == ("secure" in attributes)
    assert "domain" not in line.lower()


def test_a_session_ends_after_its_time() -> None:
    """Also if the browser keeps the cookie."""
    now = [1_000.0]
    sessions = Sessions(KEY, seconds=60, secure=False, clock=lambda: now[0])
    answer = Response()
    sessions.begin(answer, "jane", "u-1", "oidc")
    own = request_with(answer.headers["set-cookie"].partition(";")[0])
    now[0] += 59
    assert sessions.find(own) is not None
    now[0] += 1
    assert sessions.find(own) is None


@pytest.mark.parametrize(
    "other",
    [Sessions(b"x" * 32, seconds=60, secure=False), Sessions(KEY, seconds=60, secure=False, binding="other groups")],
)
def test_a_session_ends_with_the_key_and_with_the_groups(other: Sessions) -> None:
    """A server that is started again with other groups does not accept the sessions of before."""
    answer = Response()
    other.begin(answer, "jane", "u-1", "oidc")
    own = request_with(answer.headers["set-cookie"].partition(";")[0])
    assert other.find(own) is not None
    assert Sessions(KEY, seconds=60, secure=False).find(own) is None


def test_a_sign_in_that_has_begun_is_no_session() -> None:
    """Neither cookie can stand for the other one."""
    sessions, answer = Sessions(KEY, seconds=60, secure=False), Response()
    sessions.remember(request_with(""), answer, Pending("state", "nonce", "verifier", "/"))
    value = answer.headers["set-cookie"].partition(";")[0].partition("=")[2]
    assert sessions.find(request_with(f"assay={value}")) is None
    begun = Response()
    sessions.begin(begun, "jane", "u-1", "oidc")
    name = answer.headers["set-cookie"].partition("=")[0]
    value = begun.headers["set-cookie"].partition(";")[0].partition("=")[2]
    assert sessions.find_pending(request_with(f"{name}={value}"), "state") is None


def test_many_begun_sign_ins_are_forgotten() -> None:
    """A site that opens the page of signing in again and again must not fill the browser's cookies."""
    sessions, answer = Sessions(KEY, seconds=60, secure=False), Response()
    cookies = []
    for number in range(8):
        each = Response()
        sessions.remember(request_with(""), each, Pending(str(number), "nonce", "verifier", "/"))
        cookies.append(each.headers["set-cookie"].partition(";")[0])
    sessions.remember(request_with("; ".join(cookies)), answer, Pending("new", "nonce", "verifier", "/"))
    lines = answer.headers.getlist("set-cookie")
    assert (9, 8) == (len(lines), sum("Max-Age=0" in line for line in lines))


def test_a_session_ends_with_its_token() -> None:
    """A token that is removed or has expired no longer reads, also where the key of sessions stays the same."""
    kept = access(tokens=TOKENS)
    with running(kept) as server:
        session = cookie(sign_in(server))
    removed = replace(kept, tokens=(AccessToken("other", digest_of("x")),))
    ended = replace(kept, tokens=(replace(TOKENS[0], expires=TODAY - timedelta(days=1)),))
    codes = []
    for settings in (kept, removed, ended):
        with running(settings) as server:
            codes.append(server.get("/", cookie=session).status_code)
    assert [200, 401, 401] == codes


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("/clusters/a?x=1&y=%20", "/clusters/a?x=1&y=%20"),
        ("", "/"),
        ("clusters", "/"),
        ("https://evil.example/", "/"),
        ("//evil.example/", "/"),
        ("/\\evil.example/", "/"),
        ("/a\\b", "/"),
        ("/a\r\nSet-Cookie: x=1", "/"),
        ("/\t/evil.example", "/"),
        ("javascript:alert(1)", "/"),
        ("/login?next=/", "/"),
        ("/logout", "/"),
        ("/" + "a" * 1_200, "/"),
    ],
)
def test_signing_in_leads_to_a_page_of_this_server(text: str, target: str) -> None:
    """An address of another server, or one that a browser may take for such, is left out."""
    assert target == target_of(text)
