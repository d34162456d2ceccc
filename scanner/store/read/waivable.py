"""Reads the open findings of some policies without their texts, for waivers to be counted, and the numbers of excepted findings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any, Final

import orjson
from sqlalchemy import ColumnElement, Connection, Integer, Select, and_, func, or_, select, type_coerce

from scanner.model.population import Pairs
from scanner.model.scans.tally import name_outcome
from scanner.model.waiver import Candidate, CandidateFilter, CheckOfFinding
from scanner.store.database.engine import select_numbers, select_texts
from scanner.store.read.findings import PROBLEM, is_open_in
from scanner.store.read.open_problems import NO_ROWS, ScanPlace, select_open_problems
from scanner.store.rows.columns import CheckColumns, KindColumns, columns_of
from scanner.store.rows.row_ids import RowIdSet
from scanner.store.rows.tables import (
    CHECKS,
    FINDINGS,
    KEPT,
    KINDS,
    OBJECTS,
    POPULATION,
    SINGLE_SCAN_EVENTS,
    VERDICTS,
    WORKLOADS,
)

_PORTION: Final = 5000


def read_candidates(
    connection: Connection, cluster: int, revision: int, unchecked: RowIdSet, candidate_filter: CandidateFilter
) -> Iterator[Candidate]:
    """The open findings at a revision to which waivers may apply, in no order; `unchecked` rows are marked."""
    if not candidate_filter.policies:
        return
    checks = _read_checks(connection, candidate_filter)
    of_kinds = select(KINDS.c.id, *columns_of(KINDS, KindColumns))
    kinds = {number: (api_version, kind) for number, api_version, kind in connection.execute(of_kinds)}
    labels: dict[str | None, Pairs] = {None: ()}
    named = _match_names(connection, candidate_filter, cluster, revision)
    of_checks = FINDINGS.c.check.in_(select_numbers(connection, checks))
    wanted = _select_candidates(revision).where(is_open_in(cluster, revision), of_checks, *named)
    with connection.execute(wanted) as result:
        for row in chain.from_iterable(result.partitions()):
            number, problem, check, kind, event, namespace, name, outcome, would_deny, excepted_by, *top, text = row
            if text not in labels:
                labels[text] = tuple((key, value) for key, value in orjson.loads(text))
            top_kind, top_name = top
            yield Candidate(
                number,
                -number if problem is None else problem,
                checks[check],
                kinds[kind],
                namespace,
                name,
                name_outcome(outcome, would_deny=bool(would_deny), excepted_by=excepted_by).value,
                number not in unchecked,
                event in SINGLE_SCAN_EVENTS,
                top_kind or kinds[kind][1],
                top_name or name,
                labels[text],
            )


def _read_checks(connection: Connection, candidate_filter: CandidateFilter) -> dict[int, CheckOfFinding]:
    of_policies = CHECKS.c.policy.in_(sorted(candidate_filter.policies))
    wanted = select(CHECKS.c.id, *columns_of(CHECKS, CheckColumns)).where(of_policies)
    return {number: _build_check(CheckColumns._make(rest)) for number, *rest in connection.execute(wanted)}


def _select_candidates(revision: int) -> Select[Any]:
    """The query of findings with what waivers need, as their objects were at a revision."""
    finding, verdict, place, top = FINDINGS.c, VERDICTS.c, OBJECTS.c, WORKLOADS.c
    interval = and_(
        POPULATION.c.object == finding.object, POPULATION.c.since <= revision, POPULATION.c.until > revision
    )
    return (
        select(finding.id, finding.problem, finding.check, finding.kind, finding.event, place.namespace, place.name)
        .add_columns(verdict.outcome, type_coerce(verdict.would_deny, Integer), verdict.excepted_by)
        .add_columns(top.kind.label("top_kind"), top.name.label("top_name"), KEPT.c.labels)
        .select_from(FINDINGS)
        .join(VERDICTS, verdict.id == finding.verdict)
        .join(OBJECTS, place.id == finding.object)
        .outerjoin(POPULATION, interval)
        .outerjoin(WORKLOADS, top.id == POPULATION.c.workload)
        .outerjoin(KEPT, KEPT.c.id == POPULATION.c.kept)
        .execution_options(yield_per=_PORTION)
    )


def _match_names(
    connection: Connection, candidate_filter: CandidateFilter, cluster: int, revision: int
) -> Iterator[ColumnElement[bool]]:
    """The condition that an object has one of the names or labels, unless any finding may be waived.

    The objects are chosen before their findings are read: there are fewer of them, and each is examined once.
    """
    if candidate_filter.any:
        return
    identity, interval = OBJECTS.c, POPULATION.c
    at = and_(interval.object == identity.id, interval.since <= revision, interval.until > revision)
    objects = (
        select(identity.id)
        .outerjoin(POPULATION, at)
        .outerjoin(WORKLOADS, WORKLOADS.c.id == interval.workload)
        .where(
            identity.cluster == cluster,
            or_(
                identity.name.in_(select_texts(connection, candidate_filter.objects)),
                func.coalesce(WORKLOADS.c.name, identity.name).in_(
                    select_texts(connection, candidate_filter.workloads)
                ),
                identity.namespace.in_(select_texts(connection, candidate_filter.namespaces)),
                interval.kept.in_(select_numbers(connection, _find_kept_ids(connection, candidate_filter.labels))),
            ),
        )
    )
    yield FINDINGS.c.object.in_(objects)


def _find_kept_ids(connection: Connection, labels: frozenset[tuple[str, str]]) -> list[int]:
    """The ids of the kept labels that have one of some labels."""
    if not labels:
        return []
    stored = connection.execute(select(KEPT.c.id, KEPT.c.labels))
    return [number for number, text in stored if not labels.isdisjoint(map(tuple, orjson.loads(text)))]


def count_open_findings(connection: Connection, place: ScanPlace, problems: frozenset[int]) -> Mapping[int, int]:
    """The numbers of the findings that make problems open; those with waivers count."""
    number = func.count().label("number")
    counted = select_open_problems(connection, place, NO_ROWS, number).where(
        PROBLEM.in_(select_numbers(connection, problems))
    )
    return {row.problem: row.number for row in connection.execute(counted)}


def _build_check(columns: CheckColumns) -> CheckOfFinding:
    return CheckOfFinding(
        columns.language,
        columns.policy,
        columns.binding,
        columns.param_namespace,
        columns.param_name,
        columns.make_check(),
    )


def count_excepted(connection: Connection, cluster: int, revision: int) -> Mapping[str, int]:
    """The numbers of open findings at a revision by the exceptions and filters that except them."""
    counted = (
        select(VERDICTS.c.excepted_by, func.count().label("number"))
        .select_from(FINDINGS.join(VERDICTS, VERDICTS.c.id == FINDINGS.c.verdict))
        .where(is_open_in(cluster, revision), VERDICTS.c.excepted_by != "")
        .group_by(VERDICTS.c.excepted_by)
    )
    return {row.excepted_by: row.number for row in connection.execute(counted)}
