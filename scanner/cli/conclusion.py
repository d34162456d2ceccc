"""How a command ended, for machines: the last line of a JSON log, and the message that Kubernetes keeps of a container.

Upstream: kubernetes.io, "Determine the Reason for Pod Failure" (`terminationMessagePath`, at most 4096 bytes).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from scanner.cli.logs import JsonLines, LogFormat, Value, log, use

if TYPE_CHECKING:
    from scanner.cli.exit_codes import Ending
    from scanner.report.document.document import Document

TerminationLogOption = Annotated[
    Path | None,
    typer.Option(
        "--termination-log",
        metavar="PATH",
        help="Write the verdict, or the error that ended the scan, to this file: /dev/termination-log in a container.",
        show_default=False,
    ),
]
_MOST_BYTES: Final = 4096
_CUT: Final = "…"


@dataclass(slots=True)
class Conclusion:
    """What is known of the end of a command: its verdict, and the error that ended it."""

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


def use_messages(form: LogFormat, termination_log: Path | None) -> None:
    """Write the messages of the command that runs in a form, and its conclusion into a file."""
    use(form)
    current().path = termination_log


def conclude(document: Document, ending: Ending) -> None:
    """Conclude a scan with the verdict of its report, and with the reason of its exit code."""
    from scanner.cli.terminal import visible
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
        **{kind: numbers.get(kind, 0) for kind in ("refused", "new", "reopened", "resolved", "gaps")},
        "sentence": visible(sentence),
        "reason": visible(ending.reason),
    }
    current().conclude(visible(line), fields)
