"""Looks up a problem by the beginning of its id, with its findings: those that are open first."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, select

from scanner.errors import UsageError
from scanner.posture.problems import problem_id
from scanner.store.clusters import find_cluster
from scanner.store.findings import FindingRow, select_findings
from scanner.store.lookup import ExplainedFinding, all_explained, current, explained, listed
from scanner.store.problem_clocks import is_last_in_problem
from scanner.store.tables import ALONE, FINDINGS, OPEN

_ID: Final = re.compile(r"p-([0-9a-f]{1,12})")
_DIGITS: Final = 12
_MOST: Final = 20
_AMBIGUOUS: Final = 6


@dataclass(frozen=True, slots=True)
class ExplainedProblem:
    """A problem of one cluster: the latest state of its findings, at most 20, and the numbers of all that are open and resolved.

    `alone` is the number of previews and outdated findings, which belong to one scan alone.
    """

    id: str
    findings: tuple[ExplainedFinding, ...]
    open: int
    resolved: int
    alone: int


def find_problem(connection: Connection, text: str, cluster: str | int | None = None) -> ExplainedProblem:
    """The problem whose id begins with `text`, of a cluster (by what names it, or by its id) or of the one that a scan saw it in last.

    Raises UsageError unless there is exactly one.
    """
    match = _ID.fullmatch(text.lower())
    if match is None:
        raise UsageError(f"{text!r} is not the id of a problem: p- and at most {_DIGITS} hex digits.")
    number = _number(connection, text, match[1])
    rows = _rows(connection, number, cluster)
    if not rows:
        if not cluster:
            raise _there_is_none(text)
        raise UsageError(f"The cluster {cluster!r} has no problem {text!r}.")
    still_open = sum(row.history.until == OPEN for row in rows)
    shown = all_explained(connection, rows[0].history.cluster, rows[:_MOST])
    alone = sum(row.history.event in ALONE for row in rows)
    resolved = len(rows) - still_open - alone
    return ExplainedProblem(problem_id(number), tuple(sorted(shown, key=_worst_first)), still_open, resolved, alone)


def _worst_first(finding: ExplainedFinding) -> tuple[bool, bool]:
    return finding.stored.status == "resolved", not finding.stored.finding.denies


def _number(connection: Connection, text: str, digits: str) -> int:
    """The only problem whose id has these first digits; all digits are those of one problem, which need not exist."""
    if len(digits) == _DIGITS:
        return int(digits, 16)
    low, high = int(digits.ljust(_DIGITS, "0"), 16), int(digits.ljust(_DIGITS, "f"), 16)
    begins = select(FINDINGS.c.problem).where(FINDINGS.c.problem.between(low, high)).distinct()
    numbers = connection.execute(begins.order_by(FINDINGS.c.problem).limit(_AMBIGUOUS)).scalars().all()
    if not numbers:
        raise _there_is_none(text)
    if len(numbers) > 1:
        ids = listed([problem_id(number) for number in numbers])
        raise UsageError(f"Problem {text!r} is ambiguous: {ids}. Give more digits of the id.")
    return int(numbers[0])


def _there_is_none(text: str) -> UsageError:
    return UsageError(f"There is no problem {text!r} in this database. `assay findings --problems` lists them.")


def _rows(connection: Connection, number: int, cluster: str | int | None) -> list[FindingRow]:
    """The latest rows of the findings of a problem in one cluster: the open ones first, then those that were seen last.

    An outdated finding was never open: its row explains a problem without other rows alone.
    """
    own = FINDINGS.c
    latest = is_last_in_problem() | own.event.in_(ALONE)
    wanted = select_findings().where(own.problem == number, latest).order_by(own.since)
    if isinstance(cluster, str) and cluster:
        named = find_cluster(connection, cluster)
        wanted = wanted.where(FINDINGS.c.cluster == (named.id if named else None))
    elif cluster:
        wanted = wanted.where(FINDINGS.c.cluster == cluster)
    of_clusters: dict[int, dict[tuple[bytes, bool], FindingRow]] = {}
    for row in map(FindingRow.of, connection.execute(wanted)):
        # A finding that left the problem may have come back: its last row in this problem counts.
        of_clusters.setdefault(row.history.cluster, {})[row.history.fingerprint, row.history.event in ALONE] = row
    ordered = [sorted(current(rows.values()), key=_order) for rows in of_clusters.values()]
    if len(ordered) <= 1:
        return ordered[0] if ordered else []
    return max(ordered, key=lambda rows: explained(connection, rows[0]).stored.last_seen)


def _order(row: FindingRow) -> tuple[bool, bool, int, bytes]:
    history = row.history
    return (
        history.until != OPEN,
        history.event in ALONE,
        -max(history.last_seen or 0, history.since),
        history.fingerprint,
    )
