"""`assay serve`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from scanner.cli.flags.access import (
    AssertionAudienceOption,
    AssertionHeaderOption,
    AssertionIssuerOption,
    AssertionKeysOption,
    OidcClientIdOption,
    OidcClientSecretFileOption,
    OidcGroupOption,
    OidcGroupsClaimOption,
    OidcIssuerOption,
    OidcScopeOption,
    assertion_of,
    expired,
    hosts_of,
    oidc_of,
    public_url_of,
    reject_open,
    reject_unusable_sign_in,
    session_key_of,
)
from scanner.cli.flags.connection import FleetOption
from scanner.cli.flags.database import DbOption
from scanner.cli.flags.report_formats import ControlsOption
from scanner.cli.terminal.stderr import LogFormat, LogFormatOption, log, use
from scanner.config.current import get_access_tokens, get_database_address, get_expectations, get_settings
from scanner.errors import AssayError

if TYPE_CHECKING:
    from scanner.web.access.settings import AccessSettings
    from scanner.web.server.server import ServerOutput, ServerSettings

EPILOG: Final = (
    "The configuration lists tokens under `tokens`: see `assay token create`. "
    "Exit codes: 0 ended by SIGINT or SIGTERM · 2 usage or configuration · 4 could not run."
)
LISTEN: Final = "127.0.0.1:8080"
_EXTRA: Final = ("anyio", "authlib", "cachetools", "httpx2", "itsdangerous", "joserfc", "starlette", "uvicorn")
"""The packages of the extra `serve`."""
_ACCESS: Final = "Access"


ListenOption = Annotated[
    str,
    typer.Option("--listen", metavar="HOST:PORT", help="Address to listen on; port 0 chooses a free one."),
]
PublicUrlOption = Annotated[
    str,
    typer.Option(
        "--public-url",
        metavar="URL",
        help="Address that browsers use, such as https://assay.example.com. Requests by other names are refused.",
        show_default=False,
    ),
]
MetricsListenOption = Annotated[
    str,
    typer.Option(
        "--metrics-listen",
        metavar="HOST:PORT",
        help="Another address, at which /metrics needs no authentication.",
        show_default=False,
    ),
]
TlsCertOption = Annotated[
    Path | None,
    typer.Option("--tls-cert", metavar="PATH", help="Certificate chain (PEM) for TLS.", show_default=False),
]
TlsKeyOption = Annotated[
    Path | None,
    typer.Option(
        "--tls-key",
        metavar="PATH",
        help="Private key (PEM) of the certificate, if it is not in its file.",
        show_default=False,
    ),
]
InsecureNoAuthOption = Annotated[
    bool,
    typer.Option(
        "--insecure-no-auth",
        help="Listen on any address without authentication: everyone who reaches it reads everything.",
        rich_help_panel=_ACCESS,
    ),
]
SessionKeyFileOption = Annotated[
    Path | None,
    typer.Option(
        "--session-key-file",
        metavar="PATH",
        help="File with the key that signs sessions, for several processes. Default: a new key, which ends with the process.",
        rich_help_panel=_ACCESS,
        show_default=False,
    ),
]
SessionTimeOption = Annotated[
    str,
    typer.Option(
        "--session-time",
        metavar="DURATION",
        help="Time after which a user must sign in again.",
        rich_help_panel=_ACCESS,
    ),
]


def command(
    listen: ListenOption = LISTEN,
    public_url: PublicUrlOption = "",
    metrics_listen: MetricsListenOption = "",
    tls_cert: TlsCertOption = None,
    tls_key: TlsKeyOption = None,
    fleet: FleetOption = None,
    controls: ControlsOption = None,
    db: DbOption = "",
    log_format: LogFormatOption = LogFormat.TEXT,
    *,
    insecure_no_auth: InsecureNoAuthOption = False,
    session_key_file: SessionKeyFileOption = None,
    session_time: SessionTimeOption = "8h",
    oidc_issuer: OidcIssuerOption = "",
    oidc_client_id: OidcClientIdOption = "",
    oidc_client_secret_file: OidcClientSecretFileOption = None,
    oidc_group: OidcGroupOption = None,
    oidc_groups_claim: OidcGroupsClaimOption = "groups",
    oidc_scope: OidcScopeOption = None,
    assertion_header: AssertionHeaderOption = "",
    assertion_keys: AssertionKeysOption = "",
    assertion_issuer: AssertionIssuerOption = "",
    assertion_audience: AssertionAudienceOption = "",
) -> None:
    """Serve the stored scans as pages that can only be read.

    Standard output has the access log, a JSON object for each request.
    """
    _reject_missing_packages()
    from scanner.web.access.settings import AccessSettings
    from scanner.web.requests.listen import address_of
    from scanner.web.server.server import ServerContent, ServerSettings, serve

    use(log_format)
    place = address_of(listen, "--listen")
    named = public_url_of(public_url)
    access = AccessSettings(
        public_url=named,
        session_key=session_key_of(session_key_file),
        hosts=hosts_of(named, place),
        tokens=get_access_tokens(),
        oidc=oidc_of(
            oidc_issuer, oidc_client_id, oidc_client_secret_file, oidc_group or [], oidc_groups_claim, oidc_scope
        ),
        assertion=assertion_of(assertion_header, assertion_keys, assertion_issuer, assertion_audience),
        session_seconds=_session_seconds(session_time),
    )
    reject_open(access, place, insecure=insecure_no_auth)
    reject_unusable_sign_in(access, place)
    server = ServerSettings(
        place, access, address_of(metrics_listen, "--metrics-listen") if metrics_listen else None, tls_cert, tls_key
    )
    content = ServerContent(get_database_address(db), get_settings(controls or ()), get_expectations(fleet))
    serve(content, server, _output(server, content.url))


def _reject_missing_packages() -> None:
    """Raise AssayError without the packages of the extra. Some are imported only when the server starts, so each is looked up."""
    from importlib.util import find_spec

    missing = next((package for package in _EXTRA if find_spec(package) is None), "")
    if missing:
        raise AssayError(
            f"assay serve needs packages that are not installed, such as {missing}. "
            "Install them with: pip install 'kube-assay[serve]'"
        )


def _session_seconds(text: str) -> int:
    from scanner.config.values import parse_seconds
    from scanner.errors import UsageError

    time = parse_seconds(text, "--session-time")
    if time is None or time < 1:
        raise UsageError(f"--session-time {text}: a session needs an end: write a time such as 8h")
    return int(time)


def _output(server: ServerSettings, db: str) -> ServerOutput:
    """Events on stderr, and the access log on standard output."""
    from scanner.store.database.address import address_of
    from scanner.web.server.server import ServerOutput

    def events(level: str, message: str, fields: Mapping[str, str | int]) -> None:
        shown = "".join(f" ({name} {value})" for name, value in fields.items())
        log(sys.stderr, f"assay: {message}{'' if log_is_json() else shown}", fields, level=level)

    def started(pages: str, metrics: str) -> None:
        for warning in _warnings(server):
            log(sys.stderr, f"assay: {warning}", {}, level="warning")
        shown = address_of(db).text
        log(sys.stderr, f"Serving {shown} at {pages}, {_reading(server.access)}", {"address": pages})
        if metrics:
            log(sys.stderr, f"Serving metrics at {metrics}/metrics, without authentication", {"address": metrics})

    return ServerOutput(sys.stdout, events, started)


def log_is_json() -> bool:
    """Return whether the messages on stderr are JSON objects, which have fields of their own."""
    from scanner.cli.terminal.stderr import JsonLines

    return isinstance(sys.stderr, JsonLines)


def _reading(access: AccessSettings) -> str:
    """The readers, in words."""
    methods = list(access.methods())
    return f"with authentication by {', '.join(methods)}" if methods else "without authentication"


def _warnings(server: ServerSettings) -> list[str]:
    warnings = [
        f"the token {name} has expired (last valid on {day})" for name, day in expired(server.access.tokens).items()
    ]
    if not server.access.authenticates and not server.listen.is_loopback:
        warnings.append(
            f"--insecure-no-auth: everyone who reaches {server.listen} reads every report, without authentication"
        )
    return warnings
