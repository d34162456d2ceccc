"""Sign-in with a provider: a user of the groups reads, and an answer that is forged, old or for another client does not count."""

from __future__ import annotations

import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import httpx2
import pytest

from scanner.model.json import Json, JsonObject
from scanner.web.access.settings import AccessSettings, OidcSettings
from tests.web.access.provider import (
    CLIENT,
    SECRET,
    Provider,
    provided,
    signed,
    signed_by_nothing,
    signed_by_other_key,
    signed_with_public_key,
)
from tests.web.access.running import SECONDS, Running, access, running


def settings(provider: Provider, groups: tuple[str, ...] = ("auditors",), **others: object) -> AccessSettings:
    """Access by OIDC."""
    return access(oidc=OidcSettings(provider.issuer, CLIENT, provider.secret, groups, **others))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def kept() -> Iterator[tuple[Provider, Running]]:
    """A provider and a server for all tests that change neither the keys nor the addresses of the provider."""
    with provided() as provider, running(settings(provider)) as server:
        yield provider, server


@pytest.fixture
def shared(kept: tuple[Provider, Running]) -> tuple[Provider, Running]:
    """The same pair, as at the beginning."""
    kept[0].reset()
    return kept


def browser(server: Running) -> httpx2.Client:
    """A browser: it follows redirects, and keeps cookies."""
    return httpx2.Client(
        base_url=server.url, follow_redirects=True, headers={"Accept": "text/html"}, timeout=SECONDS, trust_env=False
    )


def begin(client: httpx2.Client, path: str = "/") -> str:
    """Ask for a page, agree at the provider, and return the address to which it sends the browser back."""
    at_provider = str(client.get(path, follow_redirects=False).headers["location"])
    to_provider = client.get(at_provider, follow_redirects=False).headers["location"]
    return str(client.get(to_provider, follow_redirects=False).headers["location"])


def refused(server: Running) -> str:
    """The reason of the last refusal in the log."""
    return str(server.log[-1].get("refused"))


def test_a_user_of_a_group_signs_in(shared: tuple[Provider, Running]) -> None:
    """With a code, PKCE, state and nonce; the session names the user, and the page is the one that was asked for."""
    provider, server = shared
    with browser(server) as client:
        answer = client.get("/clusters/a?owner=b")
        assert {"user": "jane@example.com", "session": True, "path": "/clusters/a"} == answer.json()
        assert f"{server.url}/clusters/a?owner=b" == str(answer.url)
        assert ("jane@example.com", "u-1", "session") == tuple(
            server.log[-1][name] for name in ("user", "subject", "by")
        )
    [asked] = provider.asked
    assert ("code", CLIENT, "openid profile email", "S256") == (
        asked["response_type"],
        asked["client_id"],
        asked["scope"],
        asked["code_challenge_method"],
    )
    assert 32 <= min(len(asked["state"]), len(asked["nonce"]))


def test_a_public_client_has_no_secret(provider: Provider) -> None:
    """PKCE alone protects the code."""
    provider.secret = ""
    with running(settings(provider)) as server, browser(server) as client:
        assert 200 == client.get("/").status_code
    assert SECRET not in str(provider.tokens)


def test_groups_may_stand_in_the_user_info(shared: tuple[Provider, Running]) -> None:
    """As some providers do; it must be about the same user."""
    provider, server = shared
    provider.claims, provider.info = {"groups": None}, {"sub": "u-1", "groups": ["auditors"]}
    with browser(server) as client:
        assert 200 == client.get("/").status_code
    provider.info["sub"] = "u-2"
    with browser(server) as client:
        assert 403 == client.get("/").status_code
    assert "the user info is about another user" == refused(server)


@pytest.mark.parametrize(
    ("groups", "allowed", "status"),
    [
        (["auditors", "others"], ("auditors",), 200),
        ("auditors", ("auditors",), 200),
        (None, ("*",), 200),
        (["others"], ("auditors",), 403),
        (["Auditors", "auditors2"], ("auditors",), 403),
        ([], ("auditors",), 403),
        ({"auditors": True}, ("auditors",), 403),
        ([["auditors"]], ("auditors",), 403),
        (["*"], ("auditors",), 403),
    ],
)
def test_only_members_read(provider: Provider, groups: Json, allowed: tuple[str, ...], status: int) -> None:
    """The page says so to others, and they have no session."""
    provider.claims = {"groups": groups}
    with running(settings(provider, allowed)) as server, browser(server) as client:
        answer = client.get("/")
        assert status == answer.status_code
        if status == 403:
            assert "You are in none of the groups" in answer.text
            assert not client.cookies
            assert "jane@example.com is in none of the groups that may read" == refused(server)


@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        ({"iss": "https://evil.example"}, "iss"),
        ({"iss": None}, "iss"),
        ({"aud": "another-client"}, "aud"),
        ({"aud": None}, "aud"),
        ({"aud": ["assay", "another-client"]}, "the ID token is for another client"),
        ({"azp": "another-client"}, "the ID token is for another client"),
        ({"nonce": "of another sign-in"}, "the ID token has another nonce"),
        ({"nonce": None}, "the ID token has another nonce"),
        ({"exp": int(time.time()) - 120}, "exp"),
        ({"exp": None}, "exp"),
        ({"nbf": int(time.time()) + 86_400}, "nbf"),
        ({"iat": int(time.time()) + 86_400}, "iat"),
        ({"sub": None}, "sub"),
    ],
)
def test_an_id_token_for_another_purpose_is_refused(
    shared: tuple[Provider, Running], claims: dict[str, Json], reason: str
) -> None:
    """Issuer, audience, nonce and times are checked."""
    provider, server = shared
    provider.claims = claims
    with browser(server) as client:
        assert 403 == client.get("/").status_code
        assert reason in refused(server)
        assert 401 == server.get("/").status_code


@pytest.mark.parametrize(
    "sign", [signed_by_nothing, signed_with_public_key, signed_by_other_key], ids=lambda each: each.__name__
)
def test_an_id_token_without_the_right_signature_is_refused(
    shared: tuple[Provider, Running], sign: Callable[[JsonObject], str]
) -> None:
    """Also by an algorithm that the provider itself offers."""
    provider, server = shared
    provider.sign = sign
    with browser(server) as client:
        assert 403 == client.get("/").status_code
        assert "the token is not valid" in refused(server)


def test_an_id_token_does_not_bring_its_own_key(provider: Provider) -> None:
    """Neither as a key nor as an address of keys (CVE-2026-27962)."""
    provider.sign = lambda claims: signed(claims, "stolen", jku=f"{provider.issuer}/jwks")
    with running(settings(provider)) as server, browser(server) as client:
        assert 403 == client.get("/").status_code
        assert "the token is signed by an unknown key" == refused(server)


def test_a_state_of_another_browser_is_refused(shared: tuple[Provider, Running]) -> None:
    """An attacker who sends a user the address with the attacker's code signs no user in."""
    _, server = shared
    with browser(server) as attacker, browser(server) as victim:
        address = begin(attacker)
        begin(victim)
        answer = victim.get(address)
        assert (400, False) == (answer.status_code, any(name == "assay" for name in victim.cookies))
        assert "no sign-in with this state has begun in this browser" == refused(server)


@pytest.mark.parametrize("query", ["", "?code=x", "?state=", "?code=x&state=guessed", "?error=access_denied&state=y"])
def test_an_answer_that_nobody_asked_for_is_refused(shared: tuple[Provider, Running], query: str) -> None:
    """No request goes to the provider."""
    provider, server = shared
    assert 400 == server.get(f"/callback{query}", accept="text/html").status_code
    assert [] == provider.tokens


def test_a_code_counts_once(shared: tuple[Provider, Running]) -> None:
    """The browser forgets what it has begun, after success and after failure."""
    _, server = shared
    with browser(server) as client:
        address = begin(client)
        assert 200 == client.get(address).status_code
        client.cookies.delete("assay")
        assert 400 == client.get(address).status_code


def test_an_answer_of_another_provider_is_refused(shared: tuple[Provider, Running]) -> None:
    """Providers name themselves in their answers (RFC 9207)."""
    _, server = shared
    with browser(server) as client:
        assert 403 == client.get(f"{begin(client)}&iss=https%3A%2F%2Fevil.example").status_code
        assert "the answer comes from another provider" == refused(server)


def test_a_cookie_of_before_signing_in_is_not_the_session(shared: tuple[Provider, Running]) -> None:
    """Session fixation: an attacker who has set a cookie in the browser cannot use it afterwards."""
    _, server = shared
    with browser(server) as attacker, browser(server) as victim:
        assert 200 == attacker.get("/").status_code
        planted = attacker.cookies["assay"]
        attacker.post("/logout")
        victim.cookies.set("assay", planted, domain="127.0.0.1")
        victim.get(begin(victim))
        assert planted != victim.cookies["assay"]
        assert 401 == server.get("/", cookie=f"assay={planted}").status_code


def test_a_user_who_does_not_agree_is_not_sent_in_circles(shared: tuple[Provider, Running]) -> None:
    """The page has a link to begin again."""
    provider, server = shared
    provider.error = "access_denied"
    with browser(server) as client:
        answer = client.get("/")
        assert (403, True) == (answer.status_code, 'href="/login"' in answer.text)
        assert "access_denied" in refused(server)


@pytest.mark.parametrize("claim", ["email", "sub"])
def test_the_secret_of_the_client_does_not_come_back(shared: tuple[Provider, Running], claim: str) -> None:
    """Neither as the name of a user, nor as an error: the log, the events and the pages do not have it."""
    provider, server = shared
    provider.claims = {claim: f"jane {b64encode(f'x:{provider.secret}'.encode()).decode()} {provider.secret}"}
    with browser(server) as client:
        pages = client.get("/").text
        provider.error = f"no {provider.secret}"
        client.cookies.clear()
        pages += client.get("/").text
    told = f"{pages} {server.stream.getvalue()} {server.events}"
    assert ("jane [redacted] [redacted]" in told, "an unknown error" in refused(server), provider.secret in told) == (
        True,
        True,
        False,
    )


def test_a_provider_that_does_not_answer_is_named_in_the_log() -> None:
    """The user learns that sign-in does not work, and the next request tries again."""
    with running(settings(Provider("http://127.0.0.1:9"))) as server:
        answer = server.get("/login", accept="text/html")
        assert (503, "30") == (answer.status_code, answer.headers["retry-after"])
        assert "http://127.0.0.1:9/.well-known/openid-configuration" in refused(server)


@pytest.mark.parametrize(
    ("metadata", "reason"),
    [
        ({"issuer": "https://evil.example"}, "names itself 'https://evil.example': set --oidc-issuer"),
        ({"token_endpoint": None}, "names no token_endpoint"),
        ({"jwks_uri": "ftp://127.0.0.1/"}, "names no jwks_uri"),
    ],
)
def test_a_provider_must_be_the_one_of_the_configuration(
    provider: Provider, metadata: dict[str, Json], reason: str
) -> None:
    """Its document names the issuer, and endpoints that are protected like it."""
    provider.metadata = metadata
    with running(settings(provider)) as server:
        assert 503 == server.get("/login").status_code
        assert reason in refused(server)


def test_two_tabs_sign_in_at_once(shared: tuple[Provider, Running]) -> None:
    """Each has a state of its own."""
    _, server = shared
    with browser(server) as client:
        first, second = begin(client, "/one"), begin(client, "/two")
        assert ["/one", "/two"] == [urlsplit(str(client.get(address).url)).path for address in (first, second)]


def test_a_key_of_the_provider_may_change(provider: Provider) -> None:
    """The keys are read again when a token names an unknown one, but not for every such token."""
    with running(settings(provider)) as server:
        provider.kids, provider.sign = ("second",), lambda claims: signed(claims, "second")
        with browser(server) as client:
            assert 200 == client.get("/").status_code


def test_the_provider_learns_nothing_but_the_redirect(shared: tuple[Provider, Running]) -> None:
    """The address that the user asked for stays in the cookie."""
    provider, server = shared
    with browser(server) as client:
        client.get("/clusters/secret-name")
    assert "secret-name" not in str(provider.asked)
    assert [f"{server.url}/callback"] == [each["redirect_uri"] for each in provider.asked]
    assert "secret-name" not in str(provider.tokens)
