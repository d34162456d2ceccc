"""The columns of a finding. Tables, staging, history and reading derive from these definitions.

A finding is one row of `findings`: `HistoryColumns` say when it was open, `FindingColumns` what it is. Texts that repeat are
rows of tables of their own (`CheckColumns`, `KindColumns`, `VerdictColumns`, `EvidenceColumns`), to which the row refers by id.

To add a column, add a field here, a migration, and the field of `Finding` that it stores. The type of a field is the SQL type,
and a field with a default is a column that a migration added.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import islice
from operator import attrgetter
from typing import Any, Final, NamedTuple, TypeVar, assert_never, cast

from sqlalchemy import ColumnElement, Table

from scanner.model.evidence import Evidence
from scanner.model.outcome import Check, CheckKind, Errored, Finding, Violated, WouldChange
from scanner.model.policy import Action, Operation
from scanner.model.scan import TallyKey
from scanner.store.drift import drift_of, drift_text
from scanner.store.evidence import evidence_text
from scanner.store.texts import clean

_Columns = TypeVar("_Columns", bound="tuple[Any, ...]")


class CheckColumns(NamedTuple):
    """A row of `checks`: an invocation, and a check of its policy."""

    policy: str
    binding: str
    param_namespace: str
    param_name: str
    kind: str
    index: int  # type: ignore[assignment] # the column hides tuple.index
    expression: str
    language: str = ""

    def check(self) -> Check:
        """The check. Findings of one check share it."""
        return _check(self.kind, self.index, self.expression)


class KindColumns(NamedTuple):
    """A row of `kinds`."""

    api_version: str
    kind: str


class VerdictColumns(NamedTuple):
    """A row of `verdicts`: an outcome, and its effect on a request."""

    outcome: str
    message: str
    reason: str
    code: int
    would_deny: bool
    always: bool
    operation: str
    actions: str
    denies: bool
    excepted_by: str = ""

    @classmethod
    def of(cls, finding: Finding) -> VerdictColumns:
        """The columns of a finding."""
        effect = finding.operation, ",".join(finding.actions), finding.denies, finding.excepted_by
        return cls(*_outcome_columns(finding.outcome), *effect)

    def noun(self) -> Violated | WouldChange | Errored:
        """The outcome."""
        match self.outcome:
            case "violated":
                return Violated(self.message, self.reason, self.code)
            case "wouldChange":
                return drift_of(self.message)
            case _:
                return Errored(self.message, self.would_deny, self.always, self.reason, self.code)


class EvidenceColumns(NamedTuple):
    """A row of `evidence`. A finding of an older version refers to none."""

    reasons: str

    @classmethod
    def of(cls, evidence: Evidence) -> EvidenceColumns:
        """The columns of evidence, whose texts are cleaned here: nested in JSON, unfit characters would be escapes."""
        reasons = tuple(
            replace(reason, expression=clean(reason.expression), value=clean(reason.value), path=clean(reason.path))
            for reason in evidence.reasons
        )
        return cls(evidence_text(replace(evidence, reasons=reasons)))


class FindingColumns(NamedTuple):
    """What a finding is: columns of `findings`. While a page is staged, the ids are positions in the lists of the page."""

    check: int
    kind: int
    namespace: str
    name: str
    uid: str
    resource_version: str
    verdict: int
    evidence: int | None


class HistoryColumns(NamedTuple):
    """When a finding was open: columns of `findings`. Numbers are revisions, except `id`, `cluster` and `reopened`."""

    id: int
    cluster: int
    fingerprint: bytes
    since: int
    until: int
    superseded: int | None
    first: int
    event: str
    reopened: int
    last_seen: int | None


ROW: Final = (*HistoryColumns._fields, *FindingColumns._fields)
"""The columns of `findings`."""

_CHECK_PATHS: Final = {"kind": "check.kind", "index": "check.index", "expression": "check.expression"}
_check_columns: Final = attrgetter(*(_CHECK_PATHS.get(name, name) for name in CheckColumns._fields))
_kind_columns: Final = attrgetter(*KindColumns._fields)


def check_columns(noun: Finding | TallyKey) -> tuple[str | int, ...]:
    """The fields of `CheckColumns`; a plain tuple, because tallies are many."""
    return cast("tuple[str | int, ...]", _check_columns(noun))


def kind_columns(noun: Finding | TallyKey) -> tuple[str, ...]:
    """The fields of `KindColumns`; a plain tuple, because tallies are many."""
    return cast("tuple[str, ...]", _kind_columns(noun))


def columns_of(table: Table, columns: type[tuple[Any, ...]]) -> Iterator[ColumnElement[Any]]:
    """The columns of a table that these fields name, in their order."""
    names: tuple[str, ...] = columns._fields  # type: ignore[attr-defined]
    return (table.c[name] for name in names)


def taken(columns: type[_Columns], values: Iterator[Any]) -> _Columns:
    """Take the fields of one definition from the values of a row."""
    return columns(*islice(values, len(columns._fields)))  # type: ignore[attr-defined]


def finding_of(
    row: HistoryColumns,
    columns: FindingColumns,
    check: CheckColumns,
    kind: KindColumns,
    verdict: VerdictColumns,
    evidence: Evidence,
) -> Finding:
    """The finding of a row and of the rows that it refers to."""
    return Finding(
        fingerprint=bytes(row.fingerprint).hex(),
        policy=check.policy,
        binding=check.binding,
        param_namespace=check.param_namespace,
        param_name=check.param_name,
        check=check.check(),
        outcome=verdict.noun(),
        api_version=kind.api_version,
        kind=kind.kind,
        namespace=columns.namespace,
        name=columns.name,
        uid=columns.uid,
        resource_version=columns.resource_version,
        operation=cast("Operation", verdict.operation),
        actions=_actions(verdict.actions),
        denies=verdict.denies,
        excepted_by=verdict.excepted_by,
        language=check.language,
        evidence=evidence,
    )


def _outcome_columns(outcome: Violated | WouldChange | Errored) -> tuple[str, str, str, int, bool, bool]:
    match outcome:
        case Violated():
            return "violated", outcome.message, outcome.reason, outcome.code, False, False
        case WouldChange():
            return "wouldChange", drift_text(outcome), "", 0, False, False
        case Errored():
            return "errored", outcome.message, outcome.reason, outcome.code, outcome.would_deny, outcome.always
        case _:
            assert_never(outcome)


@lru_cache(maxsize=4096)
def _check(kind: str, index: int, expression: str) -> Check:
    return Check(CheckKind(kind), index, expression)


@lru_cache(maxsize=64)
def _actions(text: str) -> tuple[Action, ...]:
    return cast("tuple[Action, ...]", tuple(text.split(",")) if text else ())
