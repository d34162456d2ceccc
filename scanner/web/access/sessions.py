"""Sessions of browsers: cookies that this server signs, so that it keeps nothing but the ends of sessions.

A session begins at sign-in, always with a new id, and ends after a fixed time, at sign-out, or when what allowed it changes: the key,
the provider or its groups, the token. Signing in that has begun has a cookie of its own, of which a session never comes.
Cookies follow https://datatracker.ietf.org/doc/html/draft-ietf-httpbis-rfc6265bis: `__Host-` (below a path
`__Secure-`), Secure, HttpOnly, SameSite=Lax.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from secrets import token_urlsafe
from time import time
from typing import Final, Literal, TypeAlias

from itsdangerous import BadData, URLSafeTimedSerializer
from starlette.requests import Request
from starlette.responses import Response

PENDING_SECONDS: Final = 600
"""The seconds that a user has to sign in with the provider."""
MOST_PENDING: Final = 8
"""How many sign-ins a browser may have begun, as in several tabs, before all of them are forgotten."""
_SUFFIX: Final = 16
_LONGEST: Final = 4_096

SignedInBy: TypeAlias = Literal["oidc", "token"]


@dataclass(frozen=True, slots=True)
class BrowserSession:
    """A user who has signed in. `proof` is the digest of the token, if the user signed in with one; `end` seconds since 1970."""

    id: str
    user: str
    subject: str
    by: SignedInBy
    proof: str
    end: float


@dataclass(frozen=True, slots=True)
class Pending:
    """A sign-in that has begun: what the provider's answer must fit, and the address to show afterwards."""

    state: str
    nonce: str
    verifier: str
    target: str


class Sessions:
    """Makes and reads the cookies of sessions."""

    def __init__(
        self,
        key: bytes,
        *,
        seconds: int,
        secure: bool,
        prefix: str = "",
        binding: str = "",
        clock: Callable[[], float] = time,
    ) -> None:
        """Sign with `key`. `seconds` is the length of a session; sessions of another `binding` are invalid.

        `secure` is whether browsers send the cookies over TLS alone. Below a `prefix`, they send them to no other path of the host.
        """
        # A name with __Host- is for all paths of a host, by definition.
        self._prefix = ("__Secure-assay" if prefix else "__Host-assay") if secure else "assay"
        self._path = prefix or "/"
        self._secure = secure
        self._seconds = seconds
        self._clock = clock
        salt = sha256(binding.encode()).hexdigest()
        self._sessions = _serializer(key, f"session {salt}")
        self._pending = _serializer(key, f"sign-in {salt}")
        self._ended: dict[str, float] = {}
        """The ends of sessions by id, in this process alone: other processes accept a copy of the cookie until its end."""

    def begin(self, response: Response, user: str, subject: str, by: SignedInBy, proof: str = "") -> None:
        """Give the browser a new session."""
        end = self._clock() + self._seconds
        value = self._sessions.dumps([token_urlsafe(16), user, subject, by, proof, end])
        self._set(response, self._prefix, _text(value), self._seconds)

    def find(self, request: Request) -> BrowserSession | None:
        """The session of a request; None without a valid one."""
        try:
            session = BrowserSession(*self._sessions.loads(request.cookies.get(self._prefix, "")[:_LONGEST]))
        except (BadData, TypeError, ValueError):
            return None
        return session if session.end > self._clock() and session.id not in self._ended else None

    def end(self, response: Response, session: BrowserSession) -> None:
        """End a session, also for copies of its cookie."""
        now = self._clock()
        self._ended = {number: end for number, end in self._ended.items() if end > now} | {session.id: session.end}
        self._delete(response, self._prefix)

    def remember(self, request: Request, response: Response, pending: Pending) -> None:
        """Keep a sign-in that has begun in the browser."""
        others = [name for name in request.cookies if name.startswith(f"{self._prefix}-sign-in-")]
        if len(others) >= MOST_PENDING:
            for name in others:
                self._delete(response, name)
        value = self._pending.dumps([pending.state, pending.nonce, pending.verifier, pending.target])
        self._set(response, self._name(pending.state), _text(value), PENDING_SECONDS)

    def find_pending(self, request: Request, state: str) -> Pending | None:
        """The sign-in that this browser has begun with a state; None if it has not, or too long ago."""
        try:
            value = request.cookies.get(self._name(state), "")[:_LONGEST]
            pending = Pending(*self._pending.loads(value, max_age=PENDING_SECONDS))
        except (BadData, TypeError, ValueError):
            return None
        return pending if pending.state == state else None

    def forget(self, response: Response, pending: Pending) -> None:
        """Remove a sign-in from the browser."""
        self._delete(response, self._name(pending.state))

    def _name(self, state: str) -> str:
        """The name of the cookie of a state; several tabs can sign in at once."""
        return f"{self._prefix}-sign-in-{sha256(state.encode()).hexdigest()[:_SUFFIX]}"

    def _set(self, response: Response, name: str, value: str, seconds: int) -> None:
        response.set_cookie(
            name, value, max_age=seconds, path=self._path, secure=self._secure, httponly=True, samesite="lax"
        )

    def _delete(self, response: Response, name: str) -> None:
        response.delete_cookie(name, path=self._path, secure=self._secure, httponly=True, samesite="lax")


def _serializer(key: bytes, salt: str) -> URLSafeTimedSerializer:
    return URLSafeTimedSerializer(key, salt=salt, signer_kwargs={"key_derivation": "hmac", "digest_method": sha256})


def _text(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode()
