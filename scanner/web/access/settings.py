"""The settings of access in the configuration. Nothing here needs the packages of the extra `serve`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final
from urllib.parse import urlsplit

from scanner.model.access_token import AccessToken
from scanner.model.urls import remove_password

EVERYONE: Final = "*"
"""As a group: every user whom the provider authenticates."""
SESSION_SECONDS: Final = 8 * 3600


@dataclass(frozen=True, slots=True)
class OidcSettings:
    """A provider of OpenID Connect, and who of its users may read: the members of `groups`, which `groups_claim` lists.

    `client_secret` is empty for a public client.
    """

    issuer: str
    client_id: str
    client_secret: str = field(default="", repr=False)
    groups: tuple[str, ...] = (EVERYONE,)
    groups_claim: str = "groups"
    scopes: tuple[str, ...] = ("openid", "profile", "email")


@dataclass(frozen=True, slots=True)
class AssertionSettings:
    """A proxy that signs who its users are: the header with the assertion, and what the assertion must state.

    `keys` is the URL or the path of the proxy's JSON Web Key Set.
    """

    header: str
    keys: str
    issuer: str
    audience: str


@dataclass(frozen=True, slots=True)
class AccessSettings:
    """The readers, and the names of this server.

    `public_url` is the address that users see, without a final slash; its path is the prefix of all addresses. `hosts` are the names that a Host header may
    have; None for any. `session_key` signs the cookies of sessions, which last `session_seconds`.
    """

    public_url: str
    session_key: bytes = field(repr=False)
    hosts: frozenset[str] | None = None
    tokens: tuple[AccessToken, ...] = ()
    oidc: OidcSettings | None = None
    assertion: AssertionSettings | None = None
    session_seconds: int = SESSION_SECONDS

    @property
    def authenticates(self) -> bool:
        """Return whether readers must be authenticated."""
        return bool(self.tokens or self.oidc or self.assertion)

    @property
    def signs_in(self) -> bool:
        """Return whether a browser can begin a session."""
        return bool(self.tokens or self.oidc)

    @property
    def prefix(self) -> str:
        """The path of the public URL: empty, or with a slash at its beginning and without one at its end."""
        return urlsplit(self.public_url).path

    @property
    def secure(self) -> bool:
        """Return whether browsers reach this server by TLS; without a public URL they must."""
        return not self.public_url.startswith("http://")

    @property
    def binding(self) -> str:
        """A text that changes with who may begin a session at the provider."""
        parts: list[str] = []
        if self.oidc:
            parts = [self.oidc.issuer, self.oidc.client_id, self.oidc.groups_claim, *sorted(self.oidc.groups)]
        return sha256("\0".join(parts).encode()).hexdigest()

    def methods(self) -> Iterator[str]:
        """The ways to be authenticated, in words."""
        if self.oidc:
            yield f"OIDC of {remove_password(self.oidc.issuer)}"
        if self.tokens:
            yield f"{len(self.tokens)} token{'' if len(self.tokens) == 1 else 's'}"
        if self.assertion:
            yield f"assertions of {remove_password(self.assertion.issuer)} in {self.assertion.header}"
