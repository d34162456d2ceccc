"""Decides for each request whether it may be answered, and answers `/login`, `/callback` and `/logout` itself.

The order: probes pass; other methods than GET and HEAD are refused; then a token, an assertion and a session count, in this order, and
credentials that are presented and wrong are refused, also beside right ones. The application finds the name of the user in
`scope["state"]["user"]`, empty if readers need no authentication, in `scope["state"]["session"]` whether there is a session to end, and in
`scope["state"]["signs_in"]` whether there are sessions at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from scanner.model.access_token import AccessToken
from scanner.web.access.assertions import name_of, subject_of, verify
from scanner.web.access.hosts import is_known
from scanner.web.access.keys import Keys, keys_at
from scanner.web.access.refused import ProviderUnavailable, Refused
from scanner.web.access.sessions import Sessions
from scanner.web.access.settings import AccessSettings
from scanner.web.access.sign_in import LOGIN, PATHS, SignIn
from scanner.web.access.tokens import PREFIX, Tokens
from scanner.web.requests.limits import OPEN_PATHS
from scanner.web.requests.notice import ShortAnswer, response
from scanner.web.requests.prefix import path_below, prefix_of

_READS: Final = frozenset({"GET", "HEAD"})
_AUTHORIZATION: Final = "authorization"
_BEARER: Final = "bearer"
By: TypeAlias = Literal["session", "token", "assertion"]


@dataclass(frozen=True, slots=True)
class User:
    """The user of a request, and the way of the sign-in."""

    name: str
    subject: str
    by: By


def guard_app(app: ASGIApp, settings: AccessSettings) -> ASGIApp:
    """The application for those who may read."""
    return Guard(app, settings)


class Guard:
    """An application in front of another one."""

    def __init__(self, app: ASGIApp, settings: AccessSettings) -> None:
        self._app = app
        self._settings = settings
        self._tokens = Tokens(settings.tokens)
        self._keys: Keys | None = keys_at(settings.assertion.keys) if settings.assertion else None
        self._sessions = Sessions(
            settings.session_key,
            seconds=settings.session_seconds,
            secure=settings.secure,
            prefix=settings.prefix,
            binding=settings.binding,
        )
        self._sign_in = SignIn(settings, self._sessions, self._tokens) if settings.signs_in else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or let the application do so."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            raise ValueError(f"{scope['type']} is no HTTP")
        scope.setdefault("state", {}).update(user="", session=False, signs_in=self._settings.signs_in)
        answer = await self._answer(Request(scope, receive))
        await (answer or self._app)(scope, receive, send)

    async def _answer(self, request: Request) -> Response | None:
        """The answer of the guard; None if the application answers."""
        path = path_below(request.scope)
        if self._sign_in is not None and path in PATHS:
            return self._refuse_stranger(request) or await self._sign_in.answer(request)
        if request.method not in _READS:
            return response(request.scope, NOT_ALLOWED)
        if path in OPEN_PATHS:
            return None
        try:
            user = await self._user(request)
        except Refused as error:
            request.scope["state"]["refused"] = str(error)
            return response(request.scope, REFUSED)
        except ProviderUnavailable as error:
            request.scope["state"]["refused"] = str(error)
            return response(request.scope, KEYS_UNAVAILABLE)
        if user is None or user.by == "session":
            return self._refuse_stranger(request) or self._admit_browser(request, user)
        _admit(request, user)
        return None

    async def _user(self, request: Request) -> User | None:
        """The user of a request; None without credentials. Raises Refused and ProviderUnavailable."""
        if token := self._token(request):
            return User(token.name, "", "token")
        if (claims := await self._assertion(request)) is not None:
            return claims
        session = self._sign_in.session(request) if self._sign_in else None
        return User(session.user, session.subject, "session") if session else None

    def _token(self, request: Request) -> AccessToken | None:
        """The token of a request; None without one. Raises Refused for an unknown or expired one."""
        headers = request.headers.getlist(_AUTHORIZATION)
        if not self._tokens or not headers:
            return None
        if len(headers) > 1:
            raise Refused("the request has two Authorization headers")
        scheme, _, text = headers[0].partition(" ")
        text = text.strip()
        if scheme.lower() != _BEARER or (self._assertion_header == _AUTHORIZATION and not text.startswith(PREFIX)):
            return None
        return self._tokens.check_token(text)

    @property
    def _assertion_header(self) -> str:
        return self._settings.assertion.header.lower() if self._settings.assertion else ""

    async def _assertion(self, request: Request) -> User | None:
        settings = self._settings.assertion
        headers = request.headers.getlist(settings.header) if settings else []
        if settings is None or self._keys is None or not headers:
            return None
        if len(headers) > 1:
            raise Refused(f"the request has two headers {settings.header}")
        scheme, _, rest = headers[0].partition(" ")
        text = rest.strip() if scheme.lower() == _BEARER else headers[0].strip()
        claims = await verify(text, self._keys, issuer=settings.issuer, audience=settings.audience)
        return User(name_of(claims), subject_of(claims), "assertion")

    def _refuse_stranger(self, request: Request) -> Response | None:
        """The refusal of a request that names another server; requests with a token or an assertion may do so."""
        if is_known(request, self._settings.hosts):
            return None
        request.scope["state"]["refused"] = "unknown host"
        return response(request.scope, UNKNOWN_HOST)

    def _admit_browser(self, request: Request, user: User | None) -> Response | None:
        if user is not None:
            request.scope["state"]["session"] = True
            _admit(request, user)
            return None
        return self._refuse_or_redirect(request) if self._settings.authenticates else None

    def _refuse_or_redirect(self, request: Request) -> Response:
        """Send a browser to sign in, and refuse others."""
        request.scope["state"]["refused"] = "no credentials"
        if self._sign_in is None:
            return response(request.scope, REFUSED_WITHOUT_PROXY)
        if "text/html" not in request.headers.get("accept", ""):
            return response(request.scope, REFUSED)
        target = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        return RedirectResponse(
            f"{prefix_of(request.scope)}{LOGIN}?next={quote(target, safe='')}", 303, {"Cache-Control": "no-store"}
        )


def _admit(request: Request, user: User) -> None:
    request.scope["state"].update(user=user.name, subject=user.subject, by=user.by)


NOT_ALLOWED: Final = ShortAnswer(405, "This server can only be read", ("Use GET or HEAD.",), {"Allow": "GET, HEAD"})
UNKNOWN_HOST: Final = ShortAnswer(
    421,
    "This server has another name",
    ("The address in your request is none of this server.", "Those who run it set its address with --public-url."),
)
REFUSED: Final = ShortAnswer(
    401,
    "You are not signed in",
    ("Send a valid token in the header `Authorization: Bearer`.",),
    {"WWW-Authenticate": "Bearer"},
)
REFUSED_WITHOUT_PROXY: Final = ShortAnswer(
    401,
    "You are not signed in",
    ("This server accepts requests that its proxy has signed, and no others. Use the address of the proxy.",),
    {"WWW-Authenticate": "Bearer"},
)
KEYS_UNAVAILABLE: Final = ShortAnswer(
    503,
    "Sign-in does not work now",
    ("The keys of the proxy cannot be read. The log has the reason.",),
    {"Retry-After": "30"},
)
