"""Records a run of `assay scan` before the cluster is contacted, and how the run ended, with an error too.

A process that is killed leaves its run open; the next run closes it.
"""

from __future__ import annotations

from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Self

import typer

from scanner.cli.scanning.interruption import EXIT_INTERRUPTED, INTERRUPTED
from scanner.cli.terminal.exit_codes import COULD_NOT_RUN, find_exit_code
from scanner.errors import AssayError, StoreError

if TYPE_CHECKING:
    from scanner.store import SqlStore


class RunRecord:
    """A row of `runs`: begun with the context, and closed with the exit code and the reason when it ends."""

    def __init__(self, store: SqlStore, name: str, command_line: tuple[str, ...] = ()) -> None:
        """Record the run when the context begins. `name` may be empty until the cluster is known."""
        self._store = store
        self._command_line = command_line
        self._name = name
        self._number = 0
        self._reason = ""
        self._scan_id = ""

    def __enter__(self) -> Self:
        """Record that the run begins. Raises StoreError."""
        self._number = self._store.begin_run(self._name, self._command_line)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Record how the run ended. A database that fails now does not hide the error that ended the run."""
        exit_code, reason = self._ending(error)
        hurry = isinstance(error, KeyboardInterrupt)
        with suppress(StoreError):
            self._store.end_run(self._number, exit_code=exit_code, reason=reason, scan_id=self._scan_id, hurry=hurry)

    def name(self, name: str) -> None:
        """Record the name of the run, unless it has one. Raises StoreError."""
        if not self._name:
            self._name = name
            self._store.name_run(self._number, name)

    def begins(self, scan_id: str) -> None:
        """Record the id of the scan. Raises StoreError."""
        self._scan_id = scan_id
        self._store.begin_scan_of_run(self._number, scan_id)

    def because(self, reason: str) -> None:
        """Note the reason of an exit code other than 0."""
        self._reason = reason

    def _ending(self, error: BaseException | None) -> tuple[int, str]:
        match error:
            case None:
                return 0, ""
            case typer.Exit():
                return error.exit_code, self._reason if error.exit_code else ""
            case AssayError():
                return find_exit_code(error), str(error)
            case KeyboardInterrupt():
                return EXIT_INTERRUPTED, INTERRUPTED
            case _:
                return COULD_NOT_RUN, f"internal error: {type(error).__name__}"
