"""Asks the database at once for all that the first page of a scan needs: it answers one question while the process works on another.

Row 12: one reader alone waits 0.48 s for the summary of a date that no reader has opened, and 0.56 s without (medians of 24 dates); 20
readers, who keep the process busy, do not miss it.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from threading import BoundedSemaphore, Lock, Thread
from typing import Any, Final, Generic, TypeVar

from scanner.model.stored_scan import StoredScan
from scanner.posture.triage import Triage
from scanner.posture.worst_problems import MOST, ranks_of

ValueT = TypeVar("ValueT")


class Questions:
    """Calls functions in threads, some at a time. The process does not wait for the threads when it ends."""

    def __init__(self, at_once: int) -> None:
        """Start nothing yet."""
        self._free: Final = BoundedSemaphore(at_once)

    def ask(self, call: Callable[..., ValueT], *arguments: Any) -> Future[ValueT]:
        """The answer that a function will have returned, or its error."""
        answer: Future[ValueT] = Future()
        Thread(target=self._work, args=(answer, call, arguments), name="assay-read-ahead", daemon=True).start()
        return answer

    def _work(self, answer: Future[ValueT], call: Callable[..., ValueT], arguments: tuple[Any, ...]) -> None:
        with self._free:
            try:
                answer.set_result(call(*arguments))
            except BaseException as error:  # noqa: BLE001 - raised again where the answer is needed
                answer.set_exception(error)


class Asked(Generic[ValueT]):
    """A function that was asked ahead: the first call with the same arguments gets that answer."""

    def __init__(self, questions: Questions, call: Callable[..., ValueT], *arguments: Any) -> None:
        """Ask."""
        self._call = call
        self._arguments = arguments
        self._answer: Future[ValueT] | None = questions.ask(call, *arguments)
        self._lock = Lock()

    def __call__(self, *arguments: Any) -> ValueT:
        """The answer, for which it waits, or that of another call."""
        with self._lock:
            answer = self._answer if arguments == self._arguments else None
            if answer is not None:
                self._answer = None
        return self._call(*arguments) if answer is None else answer.result()


class CountsAhead:
    """The numbers of a scan, which are being read already. Each answer is given once, and then not kept."""

    def __init__(self, questions: Questions, scan: StoredScan, triage: Triage) -> None:
        """Ask."""
        owner_of = triage.owner_of
        self.tallies_by = Asked(questions, lambda by: iter(tuple(scan.tallies_by(by))), owner_of)
        self.census_by = Asked(questions, lambda by: iter(tuple(scan.census_by(by))), owner_of)
        self.census = Asked(questions, scan.census)
        self.problem_totals = Asked(questions, scan.problem_totals, ranks_of(scan, triage), triage.waived.rows, MOST)
