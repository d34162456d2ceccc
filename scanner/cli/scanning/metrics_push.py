"""`--push-metrics`: sends the metrics of a scan to a Pushgateway when the run ends, also when it fails.

A push that fails is a warning on stderr, and never changes the exit code. A scan replaces the metrics of its cluster. Without a known
complete scan, and after a run without a scan, only those metrics are replaced that have a new value: the time of the last complete scan,
from which alerts are made, stays.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Annotated, Self

import typer

from scanner.cli.flags.flag_group import FlagGroup
from scanner.cli.scanning.interruption import EXIT_INTERRUPTED
from scanner.cli.terminal.exit_codes import COULD_NOT_RUN, find_exit_code
from scanner.config.current import get_schedule
from scanner.config.environment import PUSH_METRICS_TOKEN
from scanner.errors import AssayError, UsageError
from scanner.files import SECRET, read_text

if TYPE_CHECKING:
    from scanner.notify.pushgateway import Gateway
    from scanner.report.document.document import Document
    from scanner.report.formats.metric_families import Samples
    from scanner.store import SqlReader

_LAST_COMPLETE = "assay_last_complete_scan_timestamp_seconds"


@dataclass(frozen=True, slots=True)
class PushFlags(FlagGroup):
    """The Pushgateway, and the file with its token."""

    push_metrics: Annotated[
        str,
        typer.Option(
            "--push-metrics",
            metavar="URL",
            help="Send the metrics to this Pushgateway when the run ends. A failure is a warning and changes no exit code.",
            show_default=False,
        ),
    ] = ""
    push_metrics_token_file: Annotated[
        Path | None,
        typer.Option(
            "--push-metrics-token-file",
            metavar="FILE",
            help="With --push-metrics: file with a bearer token. Default: the variable ASSAY_PUSH_METRICS_TOKEN, or no token.",
            show_default=False,
        ),
    ] = None

    def gateway(self) -> Gateway | None:
        """The Pushgateway with its token; None without a URL. Raises UsageError."""
        from scanner.notify.pushgateway import gateway_of

        return gateway_of(self.push_metrics, _read_token(self.push_metrics_token_file)) if self.push_metrics else None


class MetricsPush:
    """A context around a run: at its end the metrics are sent, if there is a URL."""

    def __init__(self, flags: PushFlags, name: str) -> None:
        """Check URL and token. `name` is that of the run, until the cluster is known. Raises UsageError."""
        self._gateway = flags.gateway()
        self._name = name
        self._begun = datetime.now(UTC)
        self._samples: dict[str, Samples] = {}

    def __enter__(self) -> Self:
        """Send nothing yet."""
        return self

    def name(self, name: str) -> None:
        """Note the name of the cluster."""
        self._name = name

    def scanned(self, document: Document, store: SqlReader) -> None:
        """Take the metrics of a scan and of its database, which are sent at the end."""
        if self._gateway is None:
            return
        from scanner.report.formats.openmetrics import database_samples, document_samples

        self._name = document.provenance.cluster.name
        limit = database_samples(store.most_bytes(), document.triage.settings.database_limit)
        self._samples |= {**document_samples(document), **limit}

    def notified(self, notifications: Mapping[tuple[str, str], int]) -> None:
        """Take the numbers of notifications, by route and state."""
        if self._gateway is None:
            return
        from scanner.report.formats.openmetrics import notification_samples

        self._samples |= notification_samples(notifications)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Send the metrics, or those of a run without a scan."""
        if self._gateway is None:
            return
        trouble = self._sent(self._gateway, error)
        if trouble:
            from scanner.cli.terminal.stdout import visible
            from scanner.model.urls import origin_of

            sys.stderr.write(
                f"assay: {visible(f'the metrics were not sent to {origin_of(self._gateway.url)}: {trouble}')}\n"
            )

    def _sent(self, gateway: Gateway, error: BaseException | None) -> str:
        """The reason why the metrics were not sent, or an empty text."""
        from scanner.notify.pushgateway import push
        from scanner.report.formats.metric_families import printable
        from scanner.report.formats.openmetrics import RunEnd, families_of_run

        if not self._name:
            return "the name of the cluster is not known. Give it one with --cluster-name"
        try:
            now = datetime.now(UTC)
            run = RunEnd(now, _find_exit_code(error))
            metrics = families_of_run(run, self._expect(now), self._name, self._samples)
            return push(gateway, printable(self._name), metrics, replace=bool(self._samples.get(_LAST_COMPLETE)))
        except KeyboardInterrupt:
            return "interrupted"

    def _expect(self, now: datetime) -> dict[str, Samples]:
        """The samples about expected runs. Raises UsageError for an invalid schedule."""
        from scanner.posture.run_register import find_expected_run, find_following_run
        from scanner.report.formats.openmetrics import expected_samples

        schedule = get_schedule()
        if schedule is None:
            return {}
        return expected_samples(find_expected_run(schedule, now), find_following_run(schedule, self._begun))


def _find_exit_code(error: BaseException | None) -> int:
    """The exit code of a run that ends with an error, which may be that of its report."""
    match error:
        case None:
            return 0
        case typer.Exit():
            return error.exit_code
        case AssayError():
            return find_exit_code(error)
        case KeyboardInterrupt():
            return EXIT_INTERRUPTED
        case _:
            return COULD_NOT_RUN


def _read_token(path: Path | None) -> str:
    """The token in the file, else that of the environment, else none. Raises UsageError."""
    if path is None:
        return os.environ.get(PUSH_METRICS_TOKEN, "").strip()
    try:
        token = read_text(path.expanduser(), SECRET).strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise UsageError(
            f"--push-metrics-token-file {path} cannot be read ({why}). Name a file with the token"
        ) from error
    if not token:
        raise UsageError(f"--push-metrics-token-file {path} is empty: write the token into it")
    return token
