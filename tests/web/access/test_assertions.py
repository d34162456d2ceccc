"""Assertions of a proxy: the signature decides, never the header alone."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import orjson
import pytest
from joserfc import jwt
from joserfc.jwk import ECKey, OctKey

from scanner.model.json import Json, JsonObject
from scanner.web.access.settings import AssertionSettings
from tests.web.access.conftest import TOKEN, TOKENS
from tests.web.access.provider import (
    Provider,
    key_set,
    signed,
    signed_by_nothing,
    signed_by_other_key,
    signed_with_public_key,
)
from tests.web.access.running import Running, access, running

HEADER = "X-Signed-User"
EC = ECKey.generate_key("P-256", {"kid": "ec"})


def claims(**others: Json) -> dict[str, Json]:
    """The claims of an assertion."""
    now = int(time.time())
    known: dict[str, Json] = {
        "iss": "proxy",
        "aud": "assay",
        "sub": "u-9",
        "email": "kim@example.com",
        "iat": now,
        "exp": now + 60,
    }
    return {name: value for name, value in {**known, **others}.items() if value is not None}


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with the keys of the proxy, one of them of a kind that is not known and one that is secret."""
    path = tmp_path_factory.mktemp("keys") / "jwks.json"
    document = key_set("first", others=(EC,))
    others: list[Json] = [
        {"kty": "AKP", "kid": "new"},
        {"kty": "oct", "kid": "shared", "k": "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0"},
    ]
    path.write_bytes(orjson.dumps({"keys": [*document["keys"], *others]}))  # type: ignore[index,call-overload,misc]
    return path


@pytest.fixture(scope="module")
def behind_proxy(keys: Path) -> Iterator[Running]:
    """A server behind a proxy that signs."""
    settings = AssertionSettings(HEADER, str(keys), "proxy", "assay")
    with running(access(assertion=settings, tokens=TOKENS)) as server:
        yield server


def status(server: Running, *values: str, name: str = HEADER) -> int:
    """The status of an answer to a request with a header, as often as there are values."""
    lines = "".join(f"{name}: {value}\r\n" for value in values)
    answer = server.send(f"GET / HTTP/1.1\r\nHost: localhost\r\n{lines}Connection: close\r\n\r\n".encode())
    return int(answer.split()[1])


def test_a_signed_assertion_reads(behind_proxy: Running) -> None:
    """Its user is named in the log, with the identifier that never changes."""
    assert 200 == status(behind_proxy, signed(claims()))
    assert ("kim@example.com", "u-9", "assertion") == tuple(
        behind_proxy.log[-1][name] for name in ("user", "subject", "by")
    )


def test_other_asymmetric_algorithms_count(behind_proxy: Running) -> None:
    """Proxies of clouds use ES256."""
    assert 200 == status(behind_proxy, jwt.encode({"alg": "ES256", "kid": "ec"}, claims(), EC))


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"iss": "other"}, "iss"),
        ({"iss": None}, "iss"),
        ({"aud": "other"}, "aud"),
        ({"aud": None}, "aud"),
        ({"aud": []}, "aud"),
        ({"exp": int(time.time()) - 120}, "exp"),
        ({"exp": None}, "exp"),
        ({"exp": "tomorrow"}, "exp"),
        ({"nbf": int(time.time()) + 86_400}, "nbf"),
        ({"sub": None}, "sub"),
    ],
)
def test_an_assertion_for_another_purpose_is_refused(
    behind_proxy: Running, changed: dict[str, Json], reason: str
) -> None:
    """Issuer, audience and times are checked."""
    assert 401 == status(behind_proxy, signed(claims(**changed)))
    assert reason in str(behind_proxy.log[-1]["refused"])


@pytest.mark.parametrize(
    "sign", [signed_by_nothing, signed_with_public_key, signed_by_other_key], ids=lambda each: each.__name__
)
def test_an_assertion_without_the_right_signature_is_refused(
    behind_proxy: Running, sign: Callable[[JsonObject], str]
) -> None:
    """No algorithm `none`, no public key as a secret, no other key by the same name."""
    assert 401 == status(behind_proxy, sign(claims()))


@pytest.mark.parametrize(
    "text", ["admin", "a.b.c", "", "e30.e30.", "Bearer", "é", "eyJhbGciOiJSUzI1NiJ9..", "." * 2_000]
)
def test_a_header_that_is_no_assertion_is_refused(behind_proxy: Running, text: str) -> None:
    """And is no error of the server."""
    assert 401 == status(behind_proxy, text)
    assert [] == behind_proxy.events


def test_a_shared_secret_in_the_set_is_no_key(behind_proxy: Running) -> None:
    """Only asymmetric keys are read."""
    secret = OctKey.import_key({"kty": "oct", "k": "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0"})
    assert 401 == status(behind_proxy, jwt.encode({"alg": "HS256", "kid": "shared"}, claims(), secret, ["HS256"]))


def test_two_assertions_are_refused(behind_proxy: Running) -> None:
    """A proxy that appends to the header of its client sends both."""
    assert 401 == status(behind_proxy, signed(claims()), signed(claims(email="admin@example.com")))
    assert 401 == status(behind_proxy, "admin", signed(claims()))
    assert 401 == status(behind_proxy, f"{signed(claims())}, {signed(claims())}")


@pytest.mark.parametrize("name", ["X_Signed_User", "X-Signed_User", "X-Forwarded-User"])
def test_another_spelling_of_the_header_does_not_count(behind_proxy: Running, name: str) -> None:
    """Some servers take an underscore for a dash, and what a proxy strips is not what they read (CVE-2025-64484)."""
    assert 401 == status(behind_proxy, signed(claims()), name=name)
    assert 200 == status(behind_proxy, signed(claims()), name=HEADER.lower())


def test_a_token_counts_beside_assertions(behind_proxy: Running) -> None:
    """Programs that do not pass the proxy use one."""
    assert 200 == behind_proxy.get("/", authorization=f"Bearer {TOKEN}").status_code


def test_an_assertion_may_be_a_bearer_token(keys: Path) -> None:
    """As proxies send ID tokens; the tokens of this server are told apart by their beginning."""
    settings = AssertionSettings("Authorization", str(keys), "proxy", "assay")
    with running(access(assertion=settings, tokens=TOKENS)) as server:
        codes = [
            server.get("/", authorization=f"Bearer {text}").status_code
            for text in (signed(claims()), TOKEN, "assay_x", "x")
        ]
    assert [200, 200, 401, 401] == codes


def test_without_the_proxy_nothing_is_read(keys: Path) -> None:
    """There is no page to sign in, and the answer says where to go."""
    with running(access(assertion=AssertionSettings(HEADER, str(keys), "proxy", "assay"))) as server:
        answer = server.get("/", accept="text/html")
        assert (401, True) == (answer.status_code, "Use the address of the proxy" in answer.text)
        assert 401 == server.get("/login", accept="text/html").status_code


def test_keys_that_cannot_be_read_are_no_access() -> None:
    """The request is refused, and tried again later."""
    settings = AssertionSettings(HEADER, "http://127.0.0.1:9/jwks", "proxy", "assay")
    with running(access(assertion=settings)) as server:
        assert 503 == status(server, signed(claims()))
        assert "http://127.0.0.1:9/jwks does not answer" in str(server.log[-1]["refused"])


def test_keys_come_from_a_url(provider: Provider) -> None:
    """They are read when the first assertion comes."""
    settings = AssertionSettings(HEADER, f"{provider.issuer}/jwks", "proxy", "assay")
    with running(access(assertion=settings)) as server:
        assert 200 == status(server, signed(claims()))
