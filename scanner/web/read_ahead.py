"""Asks the database at once for all that the first page of a scan needs: it answers one question while the process works on another."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from dataclasses import replace
from threading import Lock
from typing import Any, Generic, TypeVar

from scanner.model.scan import ScanRecord
from scanner.posture.triage import Triage
from scanner.posture.worst_problems import MOST, ranks_of

ValueT = TypeVar("ValueT")


def reading_ahead(pool: Executor, record: ScanRecord, triage: Triage) -> ScanRecord:
    """The record with answers that the threads of a pool read already. Each is given once, and then not kept."""
    owned, totals, owner_of = record.tallies_by, record.problem_totals, triage.owner_of
    return replace(
        record,
        tallies_by=_Asked(pool, lambda by: iter(tuple(owned(by))), owner_of),
        census_by=_Asked(pool, lambda by: iter(tuple(record.counted_by(by))), owner_of),
        census=_Asked(pool, record.counted),
        problem_totals=totals and _Asked(pool, totals, ranks_of(record, triage), triage.waived.rows, MOST),
    )


class _Asked(Generic[ValueT]):
    """A function that was called ahead: the first call with the same arguments gets that answer."""

    def __init__(self, pool: Executor, call: Callable[..., ValueT], *arguments: Any) -> None:
        self._call = call
        self._arguments = arguments
        self._answer: Future[ValueT] | None = pool.submit(call, *arguments)
        self._lock = Lock()

    def __call__(self, *arguments: Any) -> ValueT:
        with self._lock:
            answer = self._answer if arguments == self._arguments else None
            self._answer = None if answer else self._answer
        return self._call(*arguments) if answer is None else answer.result()
