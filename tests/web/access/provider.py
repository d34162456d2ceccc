"""A small provider of OpenID Connect on loopback: discovery, keys, authorization, tokens and user info. Its user always agrees."""

from __future__ import annotations

import hmac
import time
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from secrets import token_urlsafe
from threading import Thread
from urllib.parse import parse_qs, urlencode

import orjson
import uvicorn
from joserfc import jwt
from joserfc.jwk import ECKey, KeySet, RSAKey
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from scanner.model.json import Json, JsonObject
from scanner.web.requests.listen import ListenAddress, bind

CLIENT = "assay"
SECRET = "client-secret-canary"
KEYS: dict[str, RSAKey] = {}


def key(kid: str = "first") -> RSAKey:
    """An RSA key, made once for all tests: making one takes a while."""
    if kid not in KEYS:
        KEYS[kid] = RSAKey.generate_key(2048, {"kid": kid, "use": "sig"})
    return KEYS[kid]


def signed(claims: JsonObject, kid: str = "first", **header: str) -> str:
    """A token that a key signs with RS256."""
    return jwt.encode({"alg": "RS256", "kid": kid, **header}, dict(claims), key(kid))


def signed_by_nothing(claims: JsonObject) -> str:
    """A token of the algorithm `none`."""
    return ".".join(_segment(part) for part in (b'{"alg":"none","typ":"JWT"}', orjson.dumps(claims), b""))


def _segment(part: bytes) -> str:
    return urlsafe_b64encode(part).decode().rstrip("=")


def signed_with_public_key(claims: JsonObject) -> str:
    """A token whose secret is the public key, for servers that take the algorithm from the token."""
    signing_input = ".".join(_segment(part) for part in (b'{"alg":"HS256","kid":"first"}', orjson.dumps(claims)))
    signature = hmac.digest(key().as_pem(private=False), signing_input.encode(), "sha256")
    return f"{signing_input}.{_segment(signature)}"


def signed_by_other_key(claims: JsonObject) -> str:
    """A token of another key that calls itself by the name of the right one."""
    return jwt.encode({"alg": "RS256", "kid": "first"}, dict(claims), key("stolen-name"))


def key_set(*kids: str, others: tuple[ECKey, ...] = ()) -> Json:
    """The public keys as a set."""
    return KeySet([*(key(kid) for kid in kids or ("first",)), *others]).as_dict(private=False)  # type: ignore[return-value]


@dataclass(slots=True)
class Provider:
    """The provider. `claims` change the ID token (None removes one), `sign` signs it, `info` is the user info."""

    issuer: str = ""
    claims: dict[str, Json] = field(default_factory=dict)
    sign: Callable[[JsonObject], str] = signed
    info: dict[str, Json] = field(default_factory=dict)
    metadata: dict[str, Json] = field(default_factory=dict)
    kids: tuple[str, ...] = ("first",)
    error: str = ""
    secret: str = SECRET
    asked: list[dict[str, str]] = field(default_factory=list)
    tokens: list[dict[str, str]] = field(default_factory=list)
    _codes: dict[str, dict[str, str]] = field(default_factory=dict)

    def reset(self) -> None:
        """Behave as at the beginning, with the same keys at the same address."""
        self.claims, self.sign, self.info, self.error = {}, signed, {}, ""
        self.asked.clear()
        self.tokens.clear()

    @property
    def id_claims(self) -> dict[str, Json]:
        """The claims of an ID token without its nonce."""
        now = int(time.time())
        return {
            "iss": self.issuer,
            "aud": CLIENT,
            "sub": "u-1",
            "email": "jane@example.com",
            "groups": ["auditors"],
            "iat": now,
            "exp": now + 300,
        }

    def application(self) -> Starlette:
        """Its application."""
        return Starlette(
            routes=[
                Route("/.well-known/openid-configuration", self._discovery),
                Route("/jwks", self._jwks),
                Route("/authorize", self._authorize),
                Route("/token", self._token, methods=["POST"]),
                Route("/userinfo", self._userinfo),
            ]
        )

    async def _discovery(self, _: Request) -> Response:
        known: dict[str, Json] = {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/jwks",
            "userinfo_endpoint": f"{self.issuer}/userinfo",
            # A provider that offers weak algorithms must not make anyone accept them.
            "id_token_signing_alg_values_supported": ["RS256", "HS256", "none"],
        }
        return JSONResponse({**known, **self.metadata})

    async def _jwks(self, _: Request) -> Response:
        return JSONResponse(key_set(*self.kids))

    async def _authorize(self, request: Request) -> Response:
        asked = dict(request.query_params)
        self.asked.append(asked)
        code = token_urlsafe(8)
        self._codes[code] = asked
        answer = {"error": self.error} if self.error else {"code": code}
        return RedirectResponse(f"{asked['redirect_uri']}?{urlencode({**answer, 'state': asked['state']})}", 302)

    async def _token(self, request: Request) -> Response:
        form = {name: values[0] for name, values in parse_qs((await request.body()).decode()).items()}
        self.tokens.append(form)
        asked = self._codes.pop(form.get("code", ""), None)
        if asked is None or form.get("redirect_uri") != asked["redirect_uri"] or not self._authenticated(request, form):
            return JSONResponse({"error": "invalid_grant"}, 400)
        challenge = urlsafe_b64encode(sha256(form["code_verifier"].encode()).digest()).decode().rstrip("=")
        if (asked["code_challenge_method"], asked["code_challenge"]) != ("S256", challenge):
            return JSONResponse({"error": "invalid_grant"}, 400)
        claims = {**self.id_claims, "nonce": asked["nonce"], **self.claims}
        token = self.sign({name: value for name, value in claims.items() if value is not None})
        return JSONResponse(
            {"access_token": "access-canary", "token_type": "Bearer", "expires_in": 300, "id_token": token}
        )

    def _authenticated(self, request: Request, form: dict[str, str]) -> bool:
        if not self.secret:
            return form.get("client_id") == CLIENT
        scheme, _, text = request.headers.get("authorization", "").partition(" ")
        return scheme == "Basic" and b64decode(text).decode() == f"{CLIENT}:{self.secret}"

    async def _userinfo(self, request: Request) -> Response:
        if request.headers.get("authorization") != "Bearer access-canary":
            return JSONResponse({}, 401)
        return JSONResponse(self.info)


@contextmanager
def provided() -> Iterator[Provider]:
    """A block in which the provider answers."""
    provider = Provider()
    listener = bind(ListenAddress("127.0.0.1", 0), "--listen")
    provider.issuer = f"http://127.0.0.1:{listener.getsockname()[1]}"
    config = uvicorn.Config(
        provider.application(), log_config=None, log_level="critical", loop="asyncio", ws="none", lifespan="off"
    )
    server = uvicorn.Server(config)
    thread = Thread(target=server.run, args=([listener],))
    thread.start()
    try:
        while not server.started:
            time.sleep(0.005)
        yield provider
    finally:
        server.should_exit = True
        thread.join(10)
