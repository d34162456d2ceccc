"""The columns of a finding. Tables, staging, history and reading derive from these definitions.

A finding is one row of `findings`: `HistoryColumns` have the time that it was open, `FindingColumns` its content. The row
refers to its object by id (`ObjectColumns`). Texts that repeat are rows of tables of their own (`CheckColumns`, `KindColumns`,
`VerdictColumns`, `EvidenceColumns`), to which the row refers by id.

To add a column, add a field here, a migration, and the field of `Finding` that it stores. The type of a field is the SQL type,
and a field with a default is a column that a migration added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import accumulate, pairwise
from operator import attrgetter
from typing import Any, Final, NamedTuple, TypeAlias, assert_never, cast

from sqlalchemy import ColumnElement, Table

from scanner.model.outcome import Check, CheckKind, Errored, Evidence, Finding, Violated, WouldChange
from scanner.model.policy import Action, Operation
from scanner.model.scans.tally import TallyKey
from scanner.store.rows.stored_texts import (
    decode_drift,
    decode_evidence,
    encode_drift,
    encode_evidence,
    fill_template,
    has_marks,
    template_of,
)

Values: TypeAlias = tuple[str | int | bool | None, ...]
"""The fields of a definition in their order: a plain tuple, because pages have many."""


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

    def make_check(self) -> Check:
        """The check. Findings of one check share it."""
        return _make_check(self.kind, self.index, self.expression)


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

    def make_verdict_on(self, name: str, namespace: str) -> StoredVerdict:
        """The outcome and its effect, for the object with this name and namespace."""
        if not has_marks(self.message):
            return _make_verdict(self)
        return self._replace(message=fill_template(self.message, name, namespace)).make_verdict()

    def make_verdict(self) -> StoredVerdict:
        """The outcome and its effect; the message must be no template."""
        return StoredVerdict(
            self._make_outcome(),
            cast("Operation", self.operation),
            _split_actions(self.actions),
            self.denies,
            self.excepted_by,
        )

    def _make_outcome(self) -> Violated | WouldChange | Errored:
        match self.outcome:
            case "violated":
                return Violated(self.message, self.reason, self.code)
            case "wouldChange":
                return decode_drift(self.message)
            case _:
                return Errored(self.message, self.would_deny, self.always, self.reason, self.code)


class StoredVerdict(NamedTuple):
    """The part of a finding that `VerdictColumns` store."""

    outcome: Violated | WouldChange | Errored
    operation: Operation
    actions: tuple[Action, ...]
    denies: bool
    excepted_by: str


class EvidenceColumns(NamedTuple):
    """A row of `evidence`. A finding of an older version refers to none."""

    reasons: str


class ExcerptColumns(NamedTuple):
    """A row of `excerpts`."""

    text: str


class FindingColumns(NamedTuple):
    """The content of a finding: columns of `findings`.

    While a page is staged, the ids are positions in the lists of the page, and `object` is the place of the object on the page.
    `resource_version` is that of the object when the row was written. `problem` is the number of the finding's problem
    (see `posture.problem_ids`): None while a page is staged, and in rows of older versions.
    """

    check: int
    kind: int
    object: int
    resource_version: str
    verdict: int
    evidence: int | None
    excerpt: int | None
    problem: int | None


UNDECIDING: Final = frozenset({"resource_version", "excerpt"})
"""The columns that do not decide whether a finding changed: a status write changes the first, and maybe the second."""


class ObjectColumns(NamedTuple):
    """The identity of an object: columns of `objects`."""

    namespace: str
    name: str
    uid: str


class HistoryColumns(NamedTuple):
    """The time that a finding was open: columns of `findings`. Numbers are revisions, except `id`, `cluster` and `reopened`.

    `first` never moves. `opened` is the beginning of the episode that the row belongs to: it moves when the finding reopens.
    `resolution` is the reason why the finding was resolved. Older versions recorded neither, and nothing of what follows here.
    `cause` is the id of the cause with which the row began, `end_cause` of that with which the finding was resolved. `continues` is
    the fingerprint of the finding that the row continues. `problem_first` and `problem_opened` are what `first` and `opened` are,
    of the finding's problem. `moved_to` is the number of the problem to which the next row of the finding
    belongs, if that is another one: the finding moved, or it was resolved and came back there.
    """

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
    opened: int | None
    resolution: str | None
    cause: int | None
    end_cause: int | None
    continues: bytes | None
    problem_first: int | None
    problem_opened: int | None
    moved_to: int | None


ROW: Final = (*HistoryColumns._fields, *FindingColumns._fields)
"""The columns of `findings`."""

_CHECK_PATHS: Final = {"kind": "check.kind", "index": "check.index", "expression": "check.expression"}
check_values: Final[Callable[[Finding | TallyKey], Values]] = attrgetter(
    *(_CHECK_PATHS.get(name, name) for name in CheckColumns._fields)
)
"""The fields of `CheckColumns` in a finding or the key of a tally."""
kind_values: Final[Callable[[Finding | TallyKey], Values]] = attrgetter(*KindColumns._fields)
"""The fields of `KindColumns` in a finding or the key of a tally."""


def verdict_values(finding: Finding) -> Values:
    """The fields of `VerdictColumns` in a finding; the message is a template (see `stored_texts`)."""
    values = _outcome_values(finding.outcome)
    effect = finding.operation, ",".join(finding.actions), finding.denies, finding.excepted_by
    return (values[0], template_of(values[1], finding.name, finding.namespace), *values[2:], *effect)


def evidence_values(finding: Finding) -> Values:
    """The fields of `EvidenceColumns` in a finding; the text is a template (see `stored_texts`)."""
    return (template_of(encode_evidence(finding.evidence), finding.name, finding.namespace),)


def excerpt_values(finding: Finding) -> Values:
    """The fields of `ExcerptColumns` in a finding; the text is a template (see `stored_texts`)."""
    return (template_of(finding.evidence.excerpt, finding.name, finding.namespace),)


def columns_of(table: Table, columns: type[tuple[Any, ...]]) -> Iterator[ColumnElement[Any]]:
    """The columns of a table that are fields of a definition, in the order of the fields."""
    names: tuple[str, ...] = columns._fields  # type: ignore[attr-defined]
    return (table.c[name] for name in names)


def slices_of(*columns: type[tuple[Any, ...]]) -> tuple[slice, ...]:
    """The slice of each definition in a row that has the fields of all of them, in this order."""
    ends = [0, *accumulate(len(group._fields) for group in columns)]  # type: ignore[attr-defined]
    return tuple(slice(start, end) for start, end in pairwise(ends))


def finding_of(
    fingerprint: str,
    resource_version: str,
    check: CheckColumns,
    kind: KindColumns,
    identity: ObjectColumns,
    outcome: VerdictColumns,
    reasons: str,
    excerpt: str,
) -> Finding:
    """The finding of some columns of a row and of the rows that it refers to; `reasons` and `excerpt` are templates, or empty."""
    verdict = outcome.make_verdict_on(identity.name, identity.namespace)
    return Finding(
        fingerprint=fingerprint,
        policy=check.policy,
        binding=check.binding,
        param_namespace=check.param_namespace,
        param_name=check.param_name,
        check=check.make_check(),
        outcome=verdict.outcome,
        api_version=kind.api_version,
        kind=kind.kind,
        namespace=identity.namespace,
        name=identity.name,
        uid=identity.uid,
        resource_version=resource_version,
        operation=verdict.operation,
        actions=verdict.actions,
        denies=verdict.denies,
        excepted_by=verdict.excepted_by,
        language=check.language,
        evidence=_make_evidence(
            *(fill_template(text, identity.name, identity.namespace) for text in (reasons, excerpt))
        ),
    )


def _make_evidence(reasons: str, excerpt: str) -> Evidence:
    evidence = decode_evidence(reasons)
    return replace(evidence, excerpt=excerpt) if excerpt else evidence


def _outcome_values(outcome: Violated | WouldChange | Errored) -> tuple[str, str, str, int, bool, bool]:
    match outcome:
        case Violated():
            return "violated", outcome.message, outcome.reason, outcome.code, False, False
        case WouldChange():
            return "wouldChange", encode_drift(outcome), "", 0, False, False
        case Errored():
            return "errored", outcome.message, outcome.reason, outcome.code, outcome.would_deny, outcome.always
        case _:
            assert_never(outcome)


@lru_cache(maxsize=4096)
def _make_check(kind: str, index: int, expression: str) -> Check:
    return Check(CheckKind(kind), index, expression)


@lru_cache(maxsize=4096)
def _make_verdict(columns: VerdictColumns) -> StoredVerdict:
    return columns.make_verdict()


@lru_cache(maxsize=64)
def _split_actions(text: str) -> tuple[Action, ...]:
    return cast("tuple[Action, ...]", tuple(text.split(",")) if text else ())
