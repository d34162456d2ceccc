"""Creates the read-only views, and has their queries.

The views belong to the newest schema alone, and every upgrade creates them anew after its last migration: no migration creates
one. SQLite renames no table while a view refers to a table that does not exist, so there the views are dropped before the first
migration. PostgreSQL replaces views in their place, because views and rights of users may depend on them. A migration that
changes or drops a column below a view calls `drop_views(op.get_bind())` first; `reading_rights` restores the rights.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Final, TypeAlias

from sqlalchemy import (
    ColumnElement,
    Connection,
    Dialect,
    FromClause,
    Integer,
    Select,
    String,
    and_,
    case,
    cast,
    exists,
    func,
    null,
    select,
    true,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.sql.selectable import NamedFromClause

from scanner.posture.problem_rows import WEAKEST
from scanner.store.history.problem_clocks import FIRST, OPENED, is_last_in_problem
from scanner.store.read.findings import MOVED, PROBLEM, SHORT
from scanner.store.read.open_problems import MILDEST_FIRST, rank_actions
from scanner.store.rows.stored_texts import ESCAPE, NAME, NAMESPACE
from scanner.store.rows.tables import (
    CAUSES,
    CHECKS,
    CLUSTERS,
    COVERAGE,
    DAILY_KEYS,
    DAILY_LISTS,
    DAILY_SETS,
    DAYS,
    FINDINGS,
    HEALTH,
    KINDS,
    OBJECTS,
    OPEN,
    POPULATION,
    SCANS,
    UNCHECKED_NOW,
    VERDICTS,
    WORKLOADS,
)


@contextmanager
def creating_views(connection: Connection) -> Iterator[None]:
    """Let the block migrate the database to the newest schema, then create its views. All happens in one transaction."""
    if connection.dialect.name == "sqlite":
        drop_views(connection)
    yield
    create_views(connection)


def create_views(connection: Connection) -> None:
    """Create the views; PostgreSQL replaces older ones, which may lack columns at the end."""
    for statement in list_view_definitions(connection.dialect):
        connection.exec_driver_sql(statement)


def list_view_definitions(dialect: Dialect) -> Iterator[str]:
    """The statements that create the views."""
    create = "CREATE VIEW" if dialect.name == "sqlite" else "CREATE OR REPLACE VIEW"
    for name, query in VIEWS.items():
        compiled = query.compile(dialect=dialect, compile_kwargs={"literal_binds": True})
        yield f"{create} {name} AS {compiled}"


def drop_views(connection: Connection) -> None:
    """Drop the views that exist."""
    for name in VIEWS:
        connection.exec_driver_sql(f"DROP VIEW IF EXISTS {name}")


# SQL that SQLite and PostgreSQL write differently: both give the same text.


class SqlText(FunctionElement[str]):
    """A text of some arguments, with the SQL of each database; `{0}` stands for the first argument."""

    inherit_cache = True
    type = String()
    sql: ClassVar[Mapping[str, str]]


@compiles(SqlText)
def _compile_text(word: SqlText, compiler: SQLCompiler, **options: Any) -> str:
    arguments = [compiler.process(argument, **options) for argument in word.clauses]
    return word.sql[compiler.dialect.name].format(*arguments)


class UtcText(SqlText):
    """A time in UTC, without fractions of a second: `2026-03-31T06:05:00Z`."""

    inherit_cache = True
    sql: ClassVar = {
        "sqlite": "(substr({0}, 1, 10) || 'T' || substr({0}, 12, 8) || 'Z')",
        "postgresql": """to_char({0} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')""",
    }


class HexDigits(SqlText):
    """Bytes in hexadecimal digits, in small letters."""

    inherit_cache = True
    sql: ClassVar = {"sqlite": "lower(hex({0}))", "postgresql": "encode({0}, 'hex')"}


class ProblemId(SqlText):
    """The id of a problem, by its number: see `posture.problem_ids.problem_id`."""

    inherit_cache = True
    sql: ClassVar = {
        "sqlite": "('p-' || printf('%012x', {0}))",
        "postgresql": "('p-' || lpad(to_hex({0}), 12, '0'))",
    }


class CharacterText(SqlText):
    """The character with a number."""

    inherit_cache = True
    sql: ClassVar = {"sqlite": "char({0})", "postgresql": "chr({0})"}


class JsonItems(SqlText):
    """The rows of a JSON list: `value`."""

    inherit_cache = True
    sql: ClassVar = {"sqlite": "json_each({0})", "postgresql": "json_array_elements_text(({0})::json)"}


class JsonPairs(SqlText):
    """The rows of a JSON object: `key` and `value`."""

    inherit_cache = True
    sql: ClassVar = {"sqlite": "json_each({0})", "postgresql": "json_each_text(({0})::json)"}


# The queries of the read-only views, which `docs/sql.md` describes: their columns are an interface.
#
# Columns are added at the end; none is removed or gets another meaning within a major version. Both databases return
# the same values: times are texts in UTC, ids are those of the reports, facts are 1 or 0. A view has nothing that
# reports do not show.

_Sql: TypeAlias = ColumnElement[Any]

_NEWEST = (
    select(SCANS.c.cluster, func.max(SCANS.c.revision).label("revision")).group_by(SCANS.c.cluster).subquery("newest")
)
"""The newest revision of each cluster."""
_CLUSTER: Final = CLUSTERS.c.name.label("cluster"), CLUSTERS.c.id.label("cluster_id")


def _fact(condition: _Sql) -> _Sql:
    """1 or 0: PostgreSQL compares no boolean with a number, and SQLite has no booleans."""
    return case((condition, 1), else_=0)


def _contains(text: _Sql, part: str | CharacterText) -> _Sql:
    return func.replace(text, part, "") != text


def _action(strictness: _Sql) -> _Sql:
    return case(*((strictness == place, action) for place, action in enumerate(MILDEST_FIRST, 1)), else_="")


def _fill_template(template: _Sql) -> _Sql:
    """The text of a template about the object of a finding: see `stored_texts.fill_template`."""
    name, namespace, escape = (CharacterText(ord(mark)) for mark in (NAME, NAMESPACE, ESCAPE))
    replaced = func.replace(func.replace(template, name, OBJECTS.c.name), namespace, OBJECTS.c.namespace)
    # The mark itself is the last: before, the first of two would be taken for the one before another mark.
    unescaped = template
    for mark in (name, namespace, escape):
        unescaped = func.replace(unescaped, escape.concat(mark), mark)
    return case((_contains(template, escape), unescaped), else_=replaced)


def _finding_id(fingerprint: _Sql) -> _Sql:
    return func.substr(HexDigits(fingerprint), 1, SHORT)


def _problem_id(problem: _Sql, fingerprint: _Sql) -> _Sql:
    """The id of a problem. A finding of an older version, whose problem is not known, is a problem of its own."""
    return case((problem.is_not(None), ProblemId(problem)), else_=_finding_id(fingerprint))


def _known_workload(column: str, part_of_object: _Sql) -> _Sql:
    """A part of the workload of an object, which may be the object itself; null if no interval of the object is stored."""
    return case((POPULATION.c.object.is_(None), null()), else_=func.coalesce(WORKLOADS.c[column], part_of_object))


_OWN_WORKLOAD: Final[Mapping[str, _Sql]] = {
    "api_version": KINDS.c.api_version,
    "kind": KINDS.c.kind,
    "namespace": OBJECTS.c.namespace,
    "name": OBJECTS.c.name,
}


def _join_content(findings: FromClause) -> FromClause:
    """Rows of findings, joined to everything to which they refer, and to the newest interval of their objects."""
    interval = POPULATION.alias("later")
    newest = select(func.max(interval.c.since)).where(interval.c.object == findings.c.object)
    newest = newest.where(interval.c.since < findings.c.until).correlate(findings)
    of_object = and_(POPULATION.c.object == findings.c.object, POPULATION.c.since == newest.scalar_subquery())
    return (
        findings.join(CLUSTERS, CLUSTERS.c.id == findings.c.cluster)
        .join(CHECKS, CHECKS.c.id == findings.c.check)
        .join(KINDS, KINDS.c.id == findings.c.kind)
        .join(OBJECTS, OBJECTS.c.id == findings.c.object)
        .join(VERDICTS, VERDICTS.c.id == findings.c.verdict)
        .join(_NEWEST, _NEWEST.c.cluster == findings.c.cluster)
        .outerjoin(POPULATION, of_object)
        .outerjoin(WORKLOADS, WORKLOADS.c.id == POPULATION.c.workload)
    )


def _join_scan(name: str, cluster: _Sql, revision: _Sql) -> tuple[NamedFromClause, _Sql]:
    """The scan of a revision, by the name of an alias, and the condition to join it. Tombstones have the times of their scans."""
    scan = SCANS.alias(name)
    return scan, and_(scan.c.cluster == cluster, scan.c.revision == revision)


def _is_unchecked() -> _Sql:
    """The condition that the newest scan left an open finding unchecked."""
    finding, part = FINDINGS.c, UNCHECKED_NOW.c
    of_finding = part.cluster == finding.cluster, part.part == finding.id.bitwise_rshift(5)
    # 32 findings in a part: see `UNCHECKED_NOW`.
    bit = part.bits.bitwise_rshift(finding.id.bitwise_and(31)).bitwise_and(1)
    return exists().where(*of_finding, bit == 1)


def _select_open_findings() -> Select[Any]:
    finding, check, verdict = FINDINGS.c, CHECKS.c, VERDICTS.c
    first, of_first = _join_scan("first_scan", finding.cluster, finding.first)
    opened, of_opened = _join_scan("opening_scan", finding.cluster, finding.opened)
    begins = finding.since == _NEWEST.c.revision
    columns = {
        "finding": _finding_id(finding.fingerprint),
        "problem": _problem_id(finding.problem, finding.fingerprint),
        "status": case((and_(begins, finding.event.in_(("new", "reopened"))), finding.event), else_="open"),
        "first_seen": UtcText(first.c.finished_at),
        "opened_at": UtcText(opened.c.finished_at),
        "language": check.language,
        "policy": check.policy,
        "binding": check.binding,
        "param_namespace": check.param_namespace,
        "param_name": check.param_name,
        "check_kind": check.kind,
        "check_index": check.index,
        "expression": check.expression,
        "outcome": verdict.outcome,
        "message": case((verdict.outcome == "wouldChange", null()), else_=_fill_template(verdict.message)),
        "operation": verdict.operation,
        "action": _action(rank_actions(verdict.actions)),
        "actions": verdict.actions,
        "denies": _fact(verdict.denies),
        "excepted_by": verdict.excepted_by,
        "api_version": KINDS.c.api_version,
        "kind": KINDS.c.kind,
        "namespace": OBJECTS.c.namespace,
        "name": OBJECTS.c.name,
        "uid": OBJECTS.c.uid,
        **{f"workload_{name}": _known_workload(name, column) for name, column in _OWN_WORKLOAD.items()},
        "cause": CAUSES.c.kind,
        "checked": _fact(~_is_unchecked()),
    }
    joined = _join_content(FINDINGS).join(first, of_first).outerjoin(opened, of_opened)
    joined = joined.outerjoin(CAUSES, CAUSES.c.id == finding.cause)
    return _select_labelled(_CLUSTER, columns).select_from(joined).where(finding.until == OPEN)


def _select_latest() -> FromClause:
    """The latest row of each finding in a problem with the clocks of its problem: `last` is the greatest end of a finding of the problem."""
    finding = FINDINGS.c
    names = "cluster", "fingerprint", "until", "check", "kind", "object", "verdict", "problem", "resolution", "moved_to"
    columns = [finding[name] for name in names]
    last = func.max(finding.until).over(partition_by=(finding.cluster, PROBLEM))
    first = func.min(FIRST).over(partition_by=(finding.cluster, PROBLEM))
    counted = last.label("last"), first.label("first"), OPENED.label("opened")
    rows = select(PROBLEM.label("number"), *columns, *counted).where(is_last_in_problem())
    return rows.subquery("latest")


def _select_deciding() -> FromClause:
    """The problems: one row for each, made of its open findings, or of those that ended last."""
    latest = _select_latest()
    row, check, verdict = latest.c, CHECKS.c, VERDICTS.c
    resolution = func.min(case({reason: place for place, reason in enumerate(WEAKEST)}, value=row.resolution))
    columns = {
        "newest": func.max(_NEWEST.c.revision),
        "problem": func.min(_problem_id(row.problem, row.fingerprint)),
        "until": func.max(row.until),
        "first": func.min(row.first),
        "opened": func.min(row.opened),
        "findings": func.count(),
        "excepted": func.sum(_fact(verdict.excepted_by != "")),
        "resolution": case(dict(enumerate(WEAKEST)), value=resolution),
        "moved_to": func.min(case((row.resolution == MOVED, row.moved_to))),
        "language": func.min(check.language),
        "policy": func.min(check.policy),
        "check_kind": func.min(check.kind),
        "check_index": func.min(check.index),
        "expression": func.min(check.expression),
        "action": _action(func.max(rank_actions(verdict.actions))),
        "denies": func.max(_fact(verdict.denies)),
        **{
            f"workload_{name}": func.coalesce(func.min(_known_workload(name, column)), func.min(column))
            for name, column in _OWN_WORKLOAD.items()
        },
    }
    grouped = _select_labelled(_CLUSTER, columns).select_from(_join_content(latest)).where(row.until == row.last)
    return grouped.group_by(CLUSTERS.c.id, CLUSTERS.c.name, row.number).subquery("problems")


def _select_problems() -> Select[Any]:
    problems = _select_deciding()
    problem = problems.c
    first, of_first = _join_scan("first_scan", problem.cluster_id, problem.first)
    opened, of_opened = _join_scan("opening_scan", problem.cluster_id, problem.opened)
    resolved, of_resolved = _join_scan("last_scan", problem.cluster_id, problem.until)
    is_open = problem.until == OPEN
    appeared = case((problem.first == problem.newest, "new"), else_="reopened")
    columns = {
        "problem": problem.problem,
        "status": case((~is_open, "resolved"), (problem.opened == problem.newest, appeared), else_="open"),
        "first_seen": UtcText(first.c.finished_at),
        "opened_at": UtcText(opened.c.finished_at),
        "resolved_at": UtcText(resolved.c.finished_at),
        "resolution": problem.resolution,
        "findings": case((is_open, problem.findings), else_=0),
        "excepted": case((is_open, problem.excepted), else_=0),
        "action": problem.action,
        "denies": problem.denies,
        **{name: problem[name] for name in ("language", "policy", "check_kind", "check_index", "expression")},
        **{f"workload_{name}": problem[f"workload_{name}"] for name in _OWN_WORKLOAD},
        "moved_to": case((problem.moved_to.is_not(None), ProblemId(problem.moved_to))),
    }
    joined = problems.join(first, of_first).join(opened, of_opened).outerjoin(resolved, of_resolved)
    return _select_labelled((problem.cluster, problem.cluster_id), columns).select_from(joined)


_SCAN: Final[Mapping[str, _Sql]] = {
    "scan": SCANS.c.id,
    "finished_at": UtcText(SCANS.c.finished_at),
    "newest": _fact(SCANS.c.revision == _NEWEST.c.revision),
}
"""The scan of a row: `newest` is 1 for the newest scan in the history of its cluster."""


def _join_scans() -> FromClause:
    return SCANS.join(CLUSTERS, CLUSTERS.c.id == SCANS.c.cluster).join(_NEWEST, _NEWEST.c.cluster == SCANS.c.cluster)


def _select_scans() -> Select[Any]:
    scan = SCANS.c
    counts = ("findings", "new", "reopened", "resolved", "unchecked")
    columns = {
        "scan": scan.id,
        "state": scan.state,
        "started_at": UtcText(scan.started_at),
        "finished_at": _SCAN["finished_at"],
        "newest": _SCAN["newest"],
        **{name: scan[name] for name in counts},
        "source": scan.source,
        "server_version": scan.server_version,
        "tool_version": scan.tool_version,
        "pruned": _fact(scan.pruned_at.is_not(None)),
        "pruned_at": UtcText(scan.pruned_at),
    }
    return _select_labelled(_CLUSTER, columns).select_from(_join_scans())


def _select_coverage() -> Select[Any]:
    coverage = COVERAGE.c
    names = ("api_version", "kind", "state", "objects", "evaluated", "pages", "bytes", "seconds", "note")
    joined = _join_scans().join(COVERAGE, coverage.scan == SCANS.c.number)
    columns = {**_SCAN, **{name: coverage[name] for name in names}}
    return _select_labelled(_CLUSTER, columns).select_from(joined).where(SCANS.c.pruned_at.is_(None))


def _select_policy_health() -> Select[Any]:
    health = HEALTH.c
    owner = case((SCANS.c.health_of == 0, SCANS.c.number), else_=SCANS.c.health_of)
    joined = _join_scans().join(HEALTH, health.scan == owner)
    columns = {**_SCAN, **{name: health[name] for name in ("kind", "language", "policy", "binding", "detail")}}
    finished = SCANS.c.pruned_at.is_(None), SCANS.c.finished_at.is_not(None)
    return _select_labelled(_CLUSTER, columns).select_from(joined).where(*finished)


def _select_daily() -> Select[Any]:
    key = DAILY_KEYS.c
    numbers = JsonItems(DAILY_SETS.c.lists).table_valued("value", name="numbers")
    counts = JsonPairs(DAILY_LISTS.c.content).table_valued("key", "value", name="counts")
    columns = {
        "day": DAYS.c.day,
        "scan": SCANS.c.id,
        **{name: key[name] for name in ("language", "policy", "namespace", "outcome")},
        "depends_on_requester": _fact(key.requester),
        "count": cast(counts.c.value, Integer),
    }
    joined = (
        DAYS.join(CLUSTERS, CLUSTERS.c.id == DAYS.c.cluster)
        .join(SCANS, SCANS.c.number == DAYS.c.scan)
        .join(DAILY_SETS, DAILY_SETS.c.id == DAYS.c.tallies)
        .join(numbers, true())
        .join(DAILY_LISTS, DAILY_LISTS.c.id == cast(numbers.c.value, Integer))
        .join(counts, true())
        .join(DAILY_KEYS, key.id == cast(counts.c.key, Integer))
    )
    return _select_labelled(_CLUSTER, columns).select_from(joined)


def _select_labelled(cluster: Sequence[_Sql], columns: Mapping[str, _Sql]) -> Select[Any]:
    return select(*cluster, *(column.label(name) for name, column in columns.items()))


VIEWS: Final[Mapping[str, Select[Any]]] = {
    "v_findings_open": _select_open_findings(),
    "v_problems": _select_problems(),
    "v_scans": _select_scans(),
    "v_coverage": _select_coverage(),
    "v_policy_health": _select_policy_health(),
    "v_daily": _select_daily(),
}
"""The queries of the views, by name."""
