"""The end of a scan: its exit code and the reason, the last line of a JSON log, and the message that Kubernetes keeps of a container.

Upstream: kubernetes.io, "Determine the Reason for Pod Failure" (`terminationMessagePath`, at most 4096 bytes).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from scanner.cli.flags.flag_group import FlagGroup
from scanner.cli.scanning.interruption import EXIT_INTERRUPTED, INTERRUPTED
from scanner.cli.terminal.progress import Progress
from scanner.cli.terminal.stderr import JsonLines, LogFormat, LogFormatOption, Value, log, use
from scanner.cli.terminal.stdout import QuietOption

if TYPE_CHECKING:
    from scanner.cli.flags.gates import GateVerdict
    from scanner.model.scans.stored_scan import StoredScan
    from scanner.report.document.document import Document

_MOST_BYTES: Final = 4096
_CUT: Final = "…"


EXIT_INCOMPLETE: Final = 3
_EVERYTHING: Final = 100


class ExitZeroOn(StrEnum):
    """The states that may have exit code 0 instead of their own."""

    INCOMPLETE = "incomplete"


@dataclass(frozen=True, slots=True)
class CompletenessFlags(FlagGroup):
    """The incomplete scans that the user accepts, besides those with enough kinds (--min-coverage)."""

    allow_empty: Annotated[
        bool,
        typer.Option("--allow-empty", help="Accept a scan without a bound policy or without objects as complete."),
    ] = False
    exit_zero_on: Annotated[
        ExitZeroOn | None,
        typer.Option(
            "--exit-zero-on",
            help="Exit with code 0 instead of 3 if the scan is incomplete, but not interrupted. A gate that fails still has code 1.",
            show_default=False,
        ),
    ] = None


@dataclass(frozen=True, slots=True)
class MessageFlags(FlagGroup):
    """The messages on stderr, and the file with the conclusion."""

    quiet: QuietOption = False
    verbose: Annotated[bool, typer.Option("-v", "--verbose", help="Print every page of a list on stderr.")] = False
    log_format: LogFormatOption = LogFormat.TEXT
    termination_log: Annotated[
        Path | None,
        typer.Option(
            "--termination-log",
            metavar="PATH",
            help="Write the verdict, or the error that ended the scan, to this file: /dev/termination-log in a container.",
            show_default=False,
        ),
    ] = None

    def use(self) -> None:
        """Write the messages of the command that runs in the form, and its conclusion into the file."""
        use(self.log_format)
        current().path = self.termination_log

    def progress(self) -> Progress:
        """The progress of a scan on stderr."""
        return Progress(quiet=self.quiet, verbose=self.verbose)


@dataclass(frozen=True, slots=True)
class Ending:
    """An exit code, and the reason of another one than 0."""

    code: int
    reason: str = ""


def decide_ending(record: StoredScan, gates: GateVerdict, min_coverage: float, flags: CompletenessFlags) -> Ending:
    """Return the end of a scan. Code 3 has priority over a failed gate, unless `--exit-zero-on` takes it away.

    An interrupted scan keeps code 3: Kubernetes would not repeat a pod that ends with code 0 when its node is drained.
    """
    from scanner.scan.record import INTERRUPTION

    if INTERRUPTION in record.gaps:
        return Ending(EXIT_INTERRUPTED, INTERRUPTED)
    accepted = flags.exit_zero_on is ExitZeroOn.INCOMPLETE
    if not accepted and not _is_enough(record, min_coverage, allow_empty=flags.allow_empty):
        return Ending(EXIT_INCOMPLETE, explain_emptiness(record) or f"the scan is incomplete: {len(record.gaps)} gaps")
    return Ending(gates.code, gates.line)


def explain_emptiness(record: StoredScan) -> str:
    """The reason why an incomplete scan had nothing to evaluate, or an empty string."""
    from scanner.model.scans.scan import ScanState, is_empty
    from scanner.report.document.document import document_of
    from scanner.report.document.sentences import nothing_line

    partial = record.scan.state is ScanState.INCOMPLETE
    return nothing_line(document_of(record)) if partial and is_empty(record) else ""


def _is_enough(record: StoredScan, min_coverage: float, *, allow_empty: bool) -> bool:
    """Return whether a scan is complete enough. --min-coverage accepts kinds that were not listed, and no other gap."""
    from scanner.model.scans.scan import ScanState, is_empty
    from scanner.report.document.coverage import beyond_kinds, percent_listed

    if record.scan.state is ScanState.COMPLETE:
        return True
    if is_empty(record) and not allow_empty:
        return False
    return min_coverage < _EVERYTHING and percent_listed(record) >= min_coverage and not beyond_kinds(record)


@dataclass(slots=True)
class Conclusion:
    """The known facts about the end of a command: its verdict, and the error that ended it."""

    path: Path | None = None
    verdict: str = ""
    fields: dict[str, Value] = field(default_factory=dict)

    def fail(self, text: str, exit_code: int) -> None:
        """Print the error that ends the command, and write it into the file."""
        self._write(f"{self.verdict}\n{text}" if self.verdict else text)
        fields = {**self.fields, "exitCode": exit_code} if isinstance(sys.stderr, JsonLines) else {}
        log(sys.stderr, f"assay: {text}", fields, level="error")
        self.fields = {}

    def end(self, exit_code: int) -> None:
        """Print the verdict as the last line of a JSON log, unless an error was the last one."""
        if self.fields and isinstance(sys.stderr, JsonLines):
            sys.stderr.end_line()
            sys.stderr.event(_LEVELS.get(exit_code, "error"), self.verdict, {**self.fields, "exitCode": exit_code})

    def conclude(self, text: str, fields: Mapping[str, Value]) -> None:
        """Keep the verdict for the end, and write it into the file."""
        self.verdict = text
        self.fields = dict(fields)
        self._write(text)

    def _write(self, text: str) -> None:
        if self.path is None:
            return
        content = f"{text}\n".encode()
        if len(content) > _MOST_BYTES:
            most = _MOST_BYTES - len(f"{_CUT}\n".encode())
            content = f"{content[:most].decode(errors='ignore')}{_CUT}\n".encode()
        try:
            self.path.write_bytes(content)
        except OSError as error:
            log(sys.stderr, f"assay: --termination-log {self.path} cannot be written: {error.strerror}", {}, "warning")


_LEVELS: Final = {0: "info", 1: "warning", 3: "warning"}
_CURRENT: Final[ContextVar[Conclusion | None]] = ContextVar("conclusion", default=None)


@contextmanager
def concluding() -> Iterator[Conclusion]:
    """A block in which a command runs that may conclude."""
    token = _CURRENT.set(Conclusion())
    try:
        yield current()
    finally:
        _CURRENT.reset(token)


def current() -> Conclusion:
    """The conclusion of the command that runs."""
    return _CURRENT.get() or Conclusion()


def conclude(document: Document, ending: Ending) -> None:
    """Conclude a scan with the verdict of its report, and with the reason of its exit code."""
    from scanner.cli.terminal.stdout import visible
    from scanner.report.document.sentences import headline_of, verdict_of, verdict_parts

    parts = verdict_parts(document)
    provenance, problems = document.provenance, document.problems
    verdict = " · ".join(part.text for part in parts)
    sentence = verdict_of(document)
    # The numbers have the gaps already, but not what the user left out.
    parts_of_line = (verdict, sentence.removesuffix(".") if document.left_out else "", ending.reason)
    line = f"{headline_of(document)}: {'. '.join(filter(None, parts_of_line))}"
    numbers = {part.kind: part.number for part in parts}
    fields: dict[str, Value] = {
        "event": "verdict",
        "scan": provenance.scan_id,
        "cluster": visible(provenance.cluster.name),
        "state": provenance.state.value,
        "problems": problems.open,
        **{kind: numbers.get(kind, 0) for kind in ("refused", "pods", "new", "reopened", "resolved", "gaps")},
        "sentence": visible(sentence),
        "reason": visible(ending.reason),
    }
    current().conclude(visible(line), fields)
