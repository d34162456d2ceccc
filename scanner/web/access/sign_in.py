"""The pages with which a browser signs in and out: at the provider, or without one with a token."""

from __future__ import annotations

import asyncio
import re
from typing import Final, assert_never
from urllib.parse import parse_qs, unquote

from starlette.datastructures import QueryParams
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response

from scanner.web.access.hosts import comes_from_own_page
from scanner.web.access.provider import Provider
from scanner.web.access.refused import NotAllowed, ProviderUnavailable, Refused, describe_code
from scanner.web.access.sessions import BrowserSession, Sessions
from scanner.web.access.settings import AccessSettings
from scanner.web.access.tokens import Tokens
from scanner.web.requests.limits import Limits
from scanner.web.requests.notice import AnswerForm, ShortAnswer, response
from scanner.web.requests.prefix import path_below, prefix_of

LOGIN: Final = "/login"
CALLBACK: Final = "/callback"
LOGOUT: Final = "/logout"
PATHS: Final = frozenset({LOGIN, CALLBACK, LOGOUT})
_READS: Final = frozenset({"GET", "HEAD"})
_NO_STORE: Final = {"Cache-Control": "no-store"}
_TARGET: Final = re.compile(r"/(?![/\\])[\x21-\x5b\x5d-\x7e]*")
"""A path of this server, with a query: no other address, and nothing that a browser turns into one."""
_LONGEST_TARGET: Final = 1_200
"""Longer addresses fit neither into a query, encoded, nor into a cookie."""
_LIMITS: Final = Limits()
_MOST_FIELDS: Final = 8


class SignIn:
    """Answers the paths of signing in and out."""

    def __init__(self, settings: AccessSettings, sessions: Sessions, tokens: Tokens) -> None:
        self._sessions = sessions
        self._tokens = tokens
        self._provider = Provider(settings.oidc, settings.public_url + CALLBACK) if settings.oidc else None

    def session(self, request: Request) -> BrowserSession | None:
        """The session of a request; one that a token began ends with the token."""
        session = self._sessions.find(request)
        if session is None:
            return None
        match session.by:
            case "token":
                return session if self._tokens.has(session.proof) else None
            case "oidc":
                return session if self._provider else None
            case _ as never:
                assert_never(never)

    async def answer(self, request: Request) -> Response:
        """Answer one of the paths."""
        method, path = request.method, path_below(request.scope)
        if method not in _READS and method != "POST":
            return response(request.scope, _allow_only("GET, HEAD, POST"))
        if method == "POST":
            return await self._post(request, path)
        if path == LOGIN:
            return await self._login(request)
        return await self._callback(request) if path == CALLBACK else self._account(request)

    async def _post(self, request: Request, path: str) -> Response:
        if not comes_from_own_page(request):
            request.scope["state"]["refused"] = "the form of another site"
            return response(request.scope, OTHER_SITE)
        if path == LOGOUT:
            return self._logout(request)
        if path == LOGIN and self._provider is None:
            return await self._login_with_token(request)
        return response(request.scope, _allow_only("GET, HEAD"))

    async def _login(self, request: Request) -> Response:
        target = target_of(request.query_params.get("next", ""), prefix_of(request.scope))
        if self._provider is None:
            return response(request.scope, token_form(target))
        try:
            url, pending = await self._provider.begin(target)
        except ProviderUnavailable as error:
            return _refuse(request, error, UNAVAILABLE)
        answer = RedirectResponse(url, 303, _NO_STORE)
        self._sessions.remember(request, answer, pending)
        return answer

    async def _callback(self, request: Request) -> Response:
        """The answer to a user whom the provider sends back. The session is always a new one, also if the browser has one."""
        query = request.query_params
        pending = self._sessions.find_pending(request, query.get("state", "")) if self._provider else None
        if self._provider is None or pending is None:
            return _refuse(request, Refused("no sign-in with this state has begun in this browser"), NOT_BEGUN)
        try:
            user, subject = await self._provider.finish(_code(query), query.get("iss", ""), pending)
        except NotAllowed as error:
            answer = _refuse(request, error, NOT_A_MEMBER)
        except Refused as error:
            answer = _refuse(request, error, FAILED)
        except ProviderUnavailable as error:
            answer = _refuse(request, error, UNAVAILABLE)
        else:
            answer = RedirectResponse(pending.target, 303, _NO_STORE)
            self._sessions.begin(answer, user, subject, "oidc")
            request.scope["state"].update(user=user, subject=subject, by="session")
        self._sessions.forget(answer, pending)
        return answer

    async def _login_with_token(self, request: Request) -> Response:
        form = await _form(request)
        target = target_of(form.get("next", ""), prefix_of(request.scope))
        try:
            token = self._tokens.check_token(form.get("token", "").strip())
        except Refused as error:
            return _refuse(
                request, error, token_form(target, "The token is not valid. Ask those who run this server.", 401)
            )
        answer = RedirectResponse(target, 303, _NO_STORE)
        self._sessions.begin(answer, token.name, "", "token", token.digest)
        request.scope["state"].update(user=token.name, by="session")
        return answer

    def _account(self, request: Request) -> Response:
        """The page of the session: who has signed in, and the button to sign out."""
        session = self.session(request)
        if session is None:
            return response(request.scope, SIGNED_OUT)
        request.scope["state"].update(user=session.user, subject=session.subject, by="session")
        text = f"You are signed in as {session.user}."
        return response(
            request.scope,
            ShortAnswer(200, "Account", (text,), link=("/", "All clusters"), form=AnswerForm(LOGOUT, "Sign out")),
        )

    def _logout(self, request: Request) -> Response:
        answer = RedirectResponse(prefix_of(request.scope) + LOGOUT, 303, {**_NO_STORE, "Clear-Site-Data": '"cache"'})
        session = self._sessions.find(request)
        if session is not None:
            request.scope["state"].update(user=session.user, subject=session.subject, by="session")
            self._sessions.end(answer, session)
        return answer


def _code(query: QueryParams) -> str:
    """The code with which the provider sends a user back. Raises Refused if the provider reports an error instead."""
    if "code" not in query:
        raise Refused(f"the provider answers {describe_code(query['error']) if 'error' in query else 'without a code'}")
    return query["code"]


def target_of(text: str, prefix: str = "") -> str:
    """The address to show after signing in: a path of this server, which is below the prefix, else the first page."""
    first = f"{prefix}/"
    path = text.partition("?")[0]
    fits = len(text) <= _LONGEST_TARGET and _TARGET.fullmatch(text) and path.startswith(first)
    return text if fits and path.removeprefix(prefix) not in PATHS and not _leads_out(path) else first


def _leads_out(path: str) -> bool:
    """Return whether a browser may go up from a part of a path, also from one that is escaped."""
    return ".." in unquote(path).replace("\\", "/").split("/")


def token_form(target: str, text: str = "Paste a token of this server.", status: int = 200) -> ShortAnswer:
    """The page that asks for a token."""
    return ShortAnswer(
        status, "Sign in", (text,), form=AnswerForm(LOGIN, "Sign in", "Token", "token", {"next": target})
    )


async def _form(request: Request) -> dict[str, str]:
    """The fields of a form; none if it does not arrive in time. Its length was checked before."""
    try:
        async with asyncio.timeout(_LIMITS.body_seconds):
            body = await request.body()
        fields = parse_qs(body.decode(errors="replace"), max_num_fields=_MOST_FIELDS)
    except (TimeoutError, ClientDisconnect, ValueError):
        return {}
    return {name: values[0] for name, values in fields.items()}


def _refuse(request: Request, error: Exception, notice: ShortAnswer) -> Response:
    request.scope["state"]["refused"] = str(error)
    return response(request.scope, notice)


def _allow_only(methods: str) -> ShortAnswer:
    return ShortAnswer(405, "This address cannot be used so", (f"Use {methods}.",), {"Allow": methods})


_AGAIN: Final = (LOGIN, "Sign in again")
SIGNED_OUT: Final = ShortAnswer(
    200, "You are signed out", ("Your session with the provider, if you have one, continues.",), link=(LOGIN, "Sign in")
)
OTHER_SITE: Final = ShortAnswer(403, "The form comes from another site", ("Use the pages of this server.",))
NOT_BEGUN: Final = ShortAnswer(
    400,
    "This sign-in has not begun here, or too long ago",
    ("Sign in within ten minutes, in the browser in which you began, and accept its cookies.",),
    link=_AGAIN,
)
FAILED: Final = ShortAnswer(403, "You could not be signed in", ("The log of this server has the reason.",), link=_AGAIN)
NOT_A_MEMBER: Final = ShortAnswer(
    403,
    "You may not read these pages",
    (
        "You are in none of the groups that may read them.",
        "Those who run this server name the groups with --oidc-group.",
    ),
)
UNAVAILABLE: Final = ShortAnswer(
    503,
    "Sign-in does not work now",
    ("The provider does not answer as it must. The log has the reason.",),
    {"Retry-After": "30"},
    _AGAIN,
)
