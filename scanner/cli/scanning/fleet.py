"""`assay scan --fleet FILE --parallel N`: one process for each cluster of a fleet, some at a time."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import IO, TYPE_CHECKING, Final, NamedTuple

from scanner.cli.scanning.conclusion import current
from scanner.cli.scanning.interruption import EXIT_INTERRUPTED
from scanner.cli.terminal.exit_codes import COULD_NOT_RUN, NEEDS_USER
from scanner.cli.terminal.stderr import JsonLines

if TYPE_CHECKING:
    from scanner.documents.fleet import Member

_PARALLEL: Final = "--parallel"
_WORST: Final = (COULD_NOT_RUN, NEEDS_USER, EXIT_INTERRUPTED, 1)
"""The exit codes, of which the first that occurs is that of the fleet."""
_PROGRAM: Final = "from scanner.cli import main; main()"


class ScannedMember(NamedTuple):
    """The end of the scan of a cluster: exit code, and the verdict or the error."""

    member: Member
    code: int
    verdict: str


@dataclass
class _Scans:
    """Processes that scan. Standard error is written a line at a time."""

    arguments: tuple[str, ...]
    folder: Path
    running: dict[int, subprocess.Popen[str]] = field(default_factory=dict)
    interrupted: bool = False
    lock: Lock = field(default_factory=Lock)

    def scan(self, index: int, member: Member) -> ScannedMember:
        """Scan one cluster in a process of its own, and wait for its end."""
        log = self.folder / str(index)
        own = (*self.arguments, "--index", str(index), "--termination-log", str(log))
        with self.lock:
            if self.interrupted:
                return ScannedMember(member, EXIT_INTERRUPTED, "interrupted before its scan began")
            process = subprocess.Popen(  # noqa: S603 - this program, with the arguments that it has itself
                [sys.executable, "-c", _PROGRAM, *own],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                errors="backslashreplace",
            )
            self.running[index] = process
        with process:
            if process.stderr is not None:
                self._copy(process.stderr, member.name)
        with self.lock:
            del self.running[index]
        verdict = log.read_text().strip() if log.exists() else ""
        if process.returncode == -signal.SIGTERM and self.is_interrupted():
            return ScannedMember(member, EXIT_INTERRUPTED, "interrupted before its scan began")
        if process.returncode < 0:
            verdict = f"ended by signal {-process.returncode}"
        return ScannedMember(member, process.returncode, verdict)

    def is_interrupted(self) -> bool:
        """Return whether a signal has ended the scans."""
        return self.interrupted

    def _copy(self, lines: IO[str], name: str) -> None:
        for line in lines:
            with self.lock:
                _write(line.rstrip("\n"), name)

    def interrupt(self) -> None:
        """Send the scans that run a signal, again if it was sent before, and begin no others."""
        with self.lock:
            self.interrupted = True
            for process in self.running.values():
                process.terminate()


def _write(line: str, name: str) -> None:
    """Write a message of a scan with the name of its cluster."""
    if isinstance(sys.stderr, JsonLines):
        event = _parse_event(line)
        level, message = str(event.pop("level", "info")), str(event.pop("message", line))
        event.pop("time", None)
        sys.stderr.event(level, message, {**event, "cluster": name})
    elif line:
        sys.stderr.write(f"{name}: {line}\n")


def _parse_event(line: str) -> dict[str, str | int]:
    try:
        event = json.loads(line)
    except ValueError:
        return {}
    return event if isinstance(event, dict) else {}


def scan_all(arguments: Sequence[str], members: Sequence[Member], parallel: int, *, own_workers: bool) -> int:
    """Scan every cluster, print a line for each, and return the worst exit code: the first of 4, 5, 3 and 1 that occurs.

    An interrupted scan has code 3. `arguments` are those of the command line. Unless it has `own_workers`, the processes of one cluster share the cores with those
    of the others.
    """
    from scanner.scan.workers.cores import count_cores

    shared = () if own_workers else ("--workers", str(max(1, count_cores() // min(parallel, len(members)))))
    own = (*_leave_out_parallel(arguments), *shared)
    with TemporaryDirectory(prefix="assay-fleet-") as folder, ThreadPoolExecutor(parallel) as pool:
        scans = _Scans(own, Path(folder))
        scanned = _wait([pool.submit(scans.scan, *each) for each in enumerate(members)], scans)
    _print(scanned)
    codes = {each.code if each.code in (0, *_WORST) else COULD_NOT_RUN for each in scanned}
    code = next((code for code in _WORST if code in codes), 0)
    _conclude(scanned)
    return code


def _wait(running: Sequence[Future[ScannedMember]], scans: _Scans) -> list[ScannedMember]:
    """The ends of all scans. Each signal is passed on, and a second one ends a scan at once."""
    interrupted = False
    while True:
        try:
            if interrupted:
                scans.interrupt()
                interrupted = False
            return [each.result() for each in running]
        except KeyboardInterrupt:
            interrupted = True


def _leave_out_parallel(arguments: Sequence[str]) -> Iterator[str]:
    left = iter(arguments)
    for argument in left:
        if argument == _PARALLEL:
            next(left, None)
        elif not argument.startswith(f"{_PARALLEL}="):
            yield argument


def _print(scanned: Sequence[ScannedMember]) -> None:
    from scanner.cli.terminal import stdout

    rows = ((each.member.name, str(each.code), each.verdict.partition("\n")[0]) for each in scanned)
    stdout.table(("CLUSTER", "EXIT", "VERDICT"), rows)


def _conclude(scanned: Sequence[ScannedMember]) -> None:
    worst = [each for each in scanned if each.code]
    line = f"{len(scanned) - len(worst)} of {len(scanned)} clusters ended with exit code 0"
    named = "; ".join(f"{each.member.name}: {each.verdict or f'exit code {each.code}'}" for each in worst)
    fields: dict[str, str | int] = {"event": "verdict", "clusters": len(scanned), "failed": len(worst)}
    current().conclude(f"{line}{f'. {named}' if named else ''}", fields)
