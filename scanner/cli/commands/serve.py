"""`assay serve`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from scanner.cli.flags.access import AccessFlags, list_expired, read_secret
from scanner.cli.flags.database import DbOption
from scanner.cli.flags.flag_group import FlagGroup, with_flag_groups
from scanner.cli.flags.fleet import FleetOption
from scanner.cli.flags.report_formats import ControlsOption
from scanner.cli.terminal.stderr import LogFormat, LogFormatOption, log, use
from scanner.config.current import get_database_address, get_expectations, get_settings
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


DbFileOption = Annotated[
    Path | None,
    typer.Option(
        "--db-file",
        metavar="PATH",
        help="File with the address of the database, in place of --db. It is read again whenever the database is opened.",
        show_default=False,
    ),
]


@dataclass(frozen=True, slots=True)
class ListenFlags(FlagGroup):
    """The addresses of the server, and its certificate."""

    listen: Annotated[
        str,
        typer.Option("--listen", metavar="HOST:PORT", help="Address to listen on; port 0 chooses a free one."),
    ] = LISTEN
    public_url: Annotated[
        str,
        typer.Option(
            "--public-url",
            metavar="URL",
            help="Address that browsers use, such as https://assay.example.com or https://tools.example.com/assay. Requests by other names are refused.",
            show_default=False,
        ),
    ] = ""
    metrics_listen: Annotated[
        str,
        typer.Option(
            "--metrics-listen",
            metavar="HOST:PORT",
            help="Another address, at which /metrics needs no authentication.",
            show_default=False,
        ),
    ] = ""
    tls_cert: Annotated[
        Path | None,
        typer.Option("--tls-cert", metavar="PATH", help="Certificate chain (PEM) for TLS.", show_default=False),
    ] = None
    tls_key: Annotated[
        Path | None,
        typer.Option(
            "--tls-key",
            metavar="PATH",
            help="Private key (PEM) of the certificate, if it is not in its file.",
            show_default=False,
        ),
    ] = None

    def server(self, access: AccessFlags) -> ServerSettings:
        """The settings of the server. Raises UsageError."""
        from scanner.web.requests.listen import address_of
        from scanner.web.server.server import ServerSettings

        place = address_of(self.listen, "--listen")
        settings = access.settings(self.public_url, place)
        metrics = address_of(self.metrics_listen, "--metrics-listen") if self.metrics_listen else None
        return ServerSettings(place, settings, metrics, self.tls_cert, self.tls_key)


LogProbesOption = Annotated[
    bool,
    typer.Option("--log-probes", help="Also log the probes of a kubelet and the scrapes of Prometheus that succeed."),
]


@with_flag_groups
def command(
    *,
    listen: ListenFlags,
    fleet: FleetOption = None,
    controls: ControlsOption = (),
    db: DbOption = "",
    db_file: DbFileOption = None,
    log_format: LogFormatOption = LogFormat.TEXT,
    log_probes: LogProbesOption = False,
    access: AccessFlags,
) -> None:
    """Serve the stored scans as pages that can only be read.

    Standard output has the access log, a JSON object for each request.
    """
    _reject_missing_packages()
    from scanner.web.server.server import ServerContent, serve

    use(log_format)
    server = listen.server(access)
    read_url = (lambda: read_secret(db_file, "--db-file")) if db_file else None
    url = read_url() if read_url else get_database_address(db)
    content = ServerContent(url, get_settings(controls), get_expectations(fleet), read_url)
    serve(content, server, _make_output(server, content.url, verbose=log_probes))


def _reject_missing_packages() -> None:
    """Raise AssayError without the packages of the extra. Some are imported only when the server starts, so each is looked up."""
    from importlib.util import find_spec

    missing = next((package for package in _EXTRA if find_spec(package) is None), "")
    if missing:
        raise AssayError(
            f"assay serve needs packages that are not installed, such as {missing}. "
            "Install Assay with its extra serve, such as, in the repository: pip install '.[serve]'"
        )


def _make_output(server: ServerSettings, db: str, *, verbose: bool) -> ServerOutput:
    """Events on stderr, and the access log on standard output."""
    from scanner.store.database.address import address_of
    from scanner.web.server.server import ServerOutput

    def events(level: str, message: str, fields: Mapping[str, str | int]) -> None:
        shown = "".join(f" ({name} {value})" for name, value in fields.items())
        log(sys.stderr, f"assay: {message}{'' if is_log_json() else shown}", fields, level=level)

    def started(pages: str, metrics: str) -> None:
        for warning in _list_warnings(server):
            log(sys.stderr, f"assay: {warning}", {}, level="warning")
        shown = address_of(db).text
        log(sys.stderr, f"Serving {shown} at {pages}, {_describe_access(server.access)}", {"address": pages})
        if metrics:
            log(sys.stderr, f"Serving metrics at {metrics}/metrics, without authentication", {"address": metrics})

    return ServerOutput(sys.stdout, events, started, verbose)


def is_log_json() -> bool:
    """Return whether the messages on stderr are JSON objects, which have fields of their own."""
    from scanner.cli.terminal.stderr import JsonLines

    return isinstance(sys.stderr, JsonLines)


def _describe_access(access: AccessSettings) -> str:
    """The readers, in words."""
    methods = list(access.methods())
    return f"with authentication by {', '.join(methods)}" if methods else "without authentication"


def _list_warnings(server: ServerSettings) -> list[str]:
    warnings = [
        f"the token {name} has expired (last valid on {day})"
        for name, day in list_expired(server.access.tokens).items()
    ]
    if not server.access.authenticates and not server.listen.is_loopback:
        warnings.append(
            f"--insecure-no-auth: everyone who reaches {server.listen} reads every report, without authentication"
        )
    return warnings
