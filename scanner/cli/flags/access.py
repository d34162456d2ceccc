"""The flags of `assay serve` about access, and the settings that they make. Every rule about them is checked before a socket is opened."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final
from urllib.parse import SplitResult, urlsplit

import typer

from scanner.cli.flags.flag_group import FlagGroup
from scanner.config.current import get_access_tokens
from scanner.config.values import parse_seconds
from scanner.errors import UsageError
from scanner.files import SECRET, read_text
from scanner.model.urls import remove_password

if TYPE_CHECKING:
    from scanner.model.access_token import AccessToken
    from scanner.web.access.settings import AccessSettings, AssertionSettings, OidcSettings
    from scanner.web.requests.listen import ListenAddress

_ACCESS: Final = "Access"
_OIDC: Final = "Sign-in with OIDC"
_ASSERTION: Final = "Assertions of a proxy"
_HEADER: Final = re.compile(r"[A-Za-z0-9-]+")
_KEY_BYTES: Final = 32
_PREFIX: Final = re.compile(r"(/(?!\.{1,2}(/|$))[\w.-]+)*", re.ASCII)
"""The path of a public URL, as browsers keep it."""


@dataclass(frozen=True, slots=True)
class OidcFlags(FlagGroup):
    """The provider of sign-ins."""

    oidc_issuer: Annotated[
        str,
        typer.Option(
            "--oidc-issuer",
            metavar="URL",
            help="Let users sign in with the provider of this issuer.",
            rich_help_panel=_OIDC,
            show_default=False,
        ),
    ] = ""
    oidc_client_id: Annotated[
        str,
        typer.Option(
            "--oidc-client-id",
            metavar="ID",
            help="Client id of Assay at the provider; its redirect URI is the public URL with /callback.",
            rich_help_panel=_OIDC,
            show_default=False,
        ),
    ] = ""
    oidc_client_secret_file: Annotated[
        Path | None,
        typer.Option(
            "--oidc-client-secret-file",
            metavar="PATH",
            help="File with the client secret. Leave it out for a public client.",
            rich_help_panel=_OIDC,
            show_default=False,
        ),
    ] = None
    oidc_group: Annotated[
        tuple[str, ...],
        typer.Option(
            "--oidc-group",
            metavar="GROUP",
            help="Group whose members may read everything (repeatable); '*' for every user of the issuer.",
            rich_help_panel=_OIDC,
            show_default=False,
        ),
    ] = ()
    oidc_groups_claim: Annotated[
        str,
        typer.Option(
            "--oidc-groups-claim",
            metavar="NAME",
            help="Claim of the ID token, or of the user info, that lists the groups of a user.",
            rich_help_panel=_OIDC,
        ),
    ] = "groups"
    oidc_scope: Annotated[
        list[str] | None,
        typer.Option(
            "--oidc-scope",
            metavar="SCOPE",
            help="Scope to ask for besides openid (repeatable). Default: profile and email.",
            rich_help_panel=_OIDC,
            show_default=False,
        ),
    ] = None
    """An empty list in the configuration leaves `openid` alone; None is the default."""

    def settings(self) -> OidcSettings | None:
        """The provider; None without an issuer. Raises UsageError."""
        from scanner.web.access.settings import OidcSettings

        if not self.oidc_issuer:
            return None
        reject_insecure(self.oidc_issuer, "--oidc-issuer")
        if not self.oidc_client_id:
            raise UsageError(
                "--oidc-issuer needs --oidc-client-id: register Assay with the provider, and name its client id"
            )
        if not self.oidc_group:
            raise UsageError(
                "--oidc-issuer needs --oidc-group: name the groups whose members may read everything; '*' stands for every user of the issuer"
            )
        path = self.oidc_client_secret_file
        secret = read_secret(path, "--oidc-client-secret-file") if path else ""
        further = ("profile", "email") if self.oidc_scope is None else self.oidc_scope
        scopes = tuple(dict.fromkeys(("openid", *further)))
        return OidcSettings(
            self.oidc_issuer, self.oidc_client_id, secret, self.oidc_group, self.oidc_groups_claim, scopes
        )


@dataclass(frozen=True, slots=True)
class AssertionFlags(FlagGroup):
    """The signed header of a proxy."""

    assertion_header: Annotated[
        str,
        typer.Option(
            "--assertion-header",
            metavar="NAME",
            help="Header in which a proxy sends a signed JWT about the user, such as Cf-Access-Jwt-Assertion.",
            rich_help_panel=_ASSERTION,
            show_default=False,
        ),
    ] = ""
    assertion_keys: Annotated[
        str,
        typer.Option(
            "--assertion-keys",
            metavar="URL|PATH",
            help="JSON Web Key Set with the public keys of the proxy.",
            rich_help_panel=_ASSERTION,
            show_default=False,
        ),
    ] = ""
    assertion_issuer: Annotated[
        str,
        typer.Option(
            "--assertion-issuer",
            metavar="TEXT",
            help="Issuer (iss) that the JWT must have.",
            rich_help_panel=_ASSERTION,
            show_default=False,
        ),
    ] = ""
    assertion_audience: Annotated[
        str,
        typer.Option(
            "--assertion-audience",
            metavar="TEXT",
            help="Audience (aud) that the JWT must have.",
            rich_help_panel=_ASSERTION,
            show_default=False,
        ),
    ] = ""

    def settings(self) -> AssertionSettings | None:
        """The proxy; None without a header. Raises UsageError."""
        from scanner.web.access.settings import AssertionSettings

        header, keys = self.assertion_header, self.assertion_keys
        if not header:
            return None
        if not _HEADER.fullmatch(header):
            raise UsageError(f"--assertion-header {header}: the name of a header has letters, digits and dashes")
        needed = {
            "--assertion-keys": keys,
            "--assertion-issuer": self.assertion_issuer,
            "--assertion-audience": self.assertion_audience,
        }
        missing = [flag for flag, value in needed.items() if not value]
        if missing:
            raise UsageError(
                f"--assertion-header needs {', '.join(missing)}: a header is accepted only with a signature for this server"
            )
        if "://" in keys:
            reject_insecure(keys, "--assertion-keys")
        else:
            _reject_unreadable_keys(Path(keys))
        return AssertionSettings(header, keys, self.assertion_issuer, self.assertion_audience)


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessFlags(FlagGroup):
    """The users that may read the pages, and their sessions."""

    insecure_no_auth: Annotated[
        bool,
        typer.Option(
            "--insecure-no-auth",
            help="Listen on any address without authentication: everyone who reaches it reads everything.",
            rich_help_panel=_ACCESS,
        ),
    ] = False
    session_key_file: Annotated[
        Path | None,
        typer.Option(
            "--session-key-file",
            metavar="PATH",
            help="File with the key that signs sessions, for several processes. Default: a new key, which ends with the process.",
            rich_help_panel=_ACCESS,
            show_default=False,
        ),
    ] = None
    session_time: Annotated[
        str,
        typer.Option(
            "--session-time",
            metavar="DURATION",
            help="Time after which a user must sign in again.",
            rich_help_panel=_ACCESS,
        ),
    ] = "8h"
    oidc: OidcFlags
    assertion: AssertionFlags

    def settings(self, public_url: str, listen: ListenAddress) -> AccessSettings:
        """The settings of a server. Raises UsageError, also for a server that everyone could read, or to which no user could sign in."""
        from scanner.web.access.settings import AccessSettings

        public = read_public_url(public_url)
        settings = AccessSettings(
            public_url=public,
            session_key=read_session_key(self.session_key_file),
            hosts=list_hosts(public, listen),
            tokens=get_access_tokens(),
            oidc=self.oidc.settings(),
            assertion=self.assertion.settings(),
            session_seconds=_read_session_time(self.session_time),
        )
        reject_open(settings, listen, insecure=self.insecure_no_auth)
        reject_unusable_sign_in(settings, listen)
        return settings


def _read_session_time(text: str) -> int:
    time = parse_seconds(text, "--session-time")
    if time is None or time < 1:
        raise UsageError(f"--session-time {text}: a session needs an end: write a time such as 8h")
    return int(time)


def _reject_unreadable_keys(path: Path) -> None:
    from scanner.web.access.keys import key_document, key_set_of
    from scanner.web.access.refused import ProviderUnavailable

    try:
        key_set_of(key_document(path))
    except ProviderUnavailable as error:
        raise UsageError(f"--assertion-keys {path}: {error}") from error


def read_public_url(text: str) -> str:
    """The public URL of the flag, without a final slash. Raises UsageError."""
    from scanner.web.requests.prefix import OWN_PATHS

    if not text:
        return ""
    parts = _split_url(text, "--public-url")
    path = parts.path.rstrip("/")
    if not _PREFIX.fullmatch(path) or parts.query or parts.fragment or parts.username is not None:
        raise UsageError(
            "--public-url: write scheme and host, and a path of letters, digits and . _ - if the server has one, such as "
            "https://assay.example.com or https://tools.example.com/assay"
        )
    if (first := path.split("/")[1:2]) and first[0] in OWN_PATHS:
        raise UsageError(
            f"--public-url: /{first[0]} is a path of the pages themselves; choose another one, such as /assay"
        )
    return f"{parts.scheme}://{parts.netloc.lower()}{path}"


def list_hosts(public_url: str, listen: ListenAddress) -> frozenset[str] | None:
    """The names that a Host header may have besides those of loopback; None for any name."""
    from scanner.web.requests.listen import host_of

    if public_url:
        return frozenset({host_of(urlsplit(public_url).netloc)})
    return frozenset() if listen.is_loopback else None


def reject_open(settings: AccessSettings, listen: ListenAddress, *, insecure: bool) -> None:
    """Raise UsageError for a server that would let everyone read who reaches it."""
    if settings.authenticates or listen.is_loopback or insecure:
        return
    raise UsageError(
        f"--listen {listen}: without authentication, everyone who reaches this address could read every report. "
        "Choose one: OIDC (--oidc-issuer), tokens (assay token create), a proxy's signed assertions (--assertion-header), "
        "or --listen 127.0.0.1:8080. --insecure-no-auth serves without authentication all the same."
    )


def reject_unusable_sign_in(settings: AccessSettings, listen: ListenAddress) -> None:
    """Raise UsageError if browsers could not keep a session, or the provider could not send them back."""
    if settings.oidc and not settings.public_url and not listen.is_loopback:
        raise UsageError(
            "--oidc-issuer needs --public-url: the provider sends users back to it. Write the address that browsers use, "
            "such as https://assay.example.com"
        )
    if settings.signs_in and settings.public_url:
        reject_insecure(settings.public_url, "--public-url")


def reject_insecure(url: str, flag: str) -> None:
    """Raise UsageError for a URL without TLS, unless it is one of this machine."""
    from scanner.web.requests.listen import ListenAddress

    parts = _split_url(url, flag)
    if parts.scheme == "http" and not ListenAddress(parts.hostname or "", 0).is_loopback:
        raise UsageError(
            f"{flag} {remove_password(url)}: write an address that begins with https://; others could read and change what is sent"
        )


def _split_url(url: str, flag: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        if parts.scheme in {"http", "https"} and parts.hostname and (parts.port is None or parts.port):
            return parts
    except ValueError:
        pass
    raise UsageError(f"{flag}: write a URL such as https://assay.example.com")


def read_session_key(path: Path | None) -> bytes:
    """The key in a file; without one, a random key that ends with the process. Raises UsageError."""
    from secrets import token_bytes

    if path is None:
        return token_bytes(_KEY_BYTES)
    key = read_secret(path, "--session-key-file")
    if len(key) < _KEY_BYTES:
        raise UsageError(
            f"--session-key-file {path}: the key has fewer than {_KEY_BYTES} characters. Make one with: openssl rand -hex 32"
        )
    return key.encode()


def read_secret(path: Path, flag: str) -> str:
    """The text of a file without the end of its line. Raises UsageError if it is empty or cannot be read."""
    try:
        text = read_text(path.expanduser(), SECRET).strip()
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{flag} {path}: the file cannot be read ({getattr(error, 'strerror', None) or error})"
        ) from error
    if not text:
        raise UsageError(f"{flag} {path}: the file is empty")
    return text


def list_expired(tokens: tuple[AccessToken, ...]) -> Mapping[str, str]:
    """The tokens that are no longer valid, with the last day of each."""
    from datetime import UTC, datetime

    today = datetime.now(UTC).date()
    return {token.name: str(token.expires) for token in tokens if not token.is_valid_on(today)}
