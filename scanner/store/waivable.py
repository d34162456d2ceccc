"""Reads the open findings of some policies without their texts, for waivers to be counted, and the numbers of excepted findings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import orjson
from sqlalchemy import Connection, Row, and_, func, select

from scanner.model.outcome import Check
from scanner.model.population import Pairs
from scanner.model.scan import outcome_name
from scanner.model.waiver import Candidate
from scanner.store.columns import CheckColumns, KindColumns, columns_of
from scanner.store.engine import listed
from scanner.store.findings import seen_in
from scanner.store.row_ids import RowIdSet
from scanner.store.tables import CHECKS, FINDINGS, KEPT, KINDS, OBJECTS, POPULATION, PREVIEW, VERDICTS, WORKLOADS

_PORTION: Final = 5000


def candidates(
    connection: Connection, cluster: int, revision: int, unchecked: RowIdSet, policies: frozenset[str]
) -> Iterator[Candidate]:
    """The open findings of the policies with some names at a revision, in no order; `unchecked` rows are marked."""
    if not policies:
        return
    of_policies = select(CHECKS.c.id, *columns_of(CHECKS, CheckColumns)).where(CHECKS.c.policy.in_(sorted(policies)))
    checks = {number: CheckColumns._make(rest) for number, *rest in connection.execute(of_policies)}
    kinds = {
        number: KindColumns._make(rest)
        for number, *rest in connection.execute(select(KINDS.c.id, *columns_of(KINDS, KindColumns)))
    }
    made: dict[int, Check] = {number: columns.check() for number, columns in checks.items()}
    labels: dict[str | None, Pairs] = {None: ()}
    own, verdict, place, top = FINDINGS.c, VERDICTS.c, OBJECTS.c, WORKLOADS.c
    interval = and_(POPULATION.c.object == own.object, POPULATION.c.since <= revision, POPULATION.c.until > revision)
    wanted = (
        select(
            own.id, own.problem, own.check, own.kind, own.event, place.namespace, place.name,
            verdict.outcome, verdict.would_deny, verdict.excepted_by,
            top.kind.label("top_kind"), top.name.label("top_name"), KEPT.c.labels,
        )
        .select_from(FINDINGS)
        .join(VERDICTS, verdict.id == own.verdict)
        .join(OBJECTS, place.id == own.object)
        .outerjoin(POPULATION, interval)
        .outerjoin(WORKLOADS, top.id == POPULATION.c.workload)
        .outerjoin(KEPT, KEPT.c.id == POPULATION.c.kept)
        .where(seen_in(cluster, revision), own.check.in_(listed(connection, checks)))
        .execution_options(yield_per=_PORTION)
    )  # fmt: skip

    def candidate(row: Row[*tuple[Any, ...]]) -> Candidate:
        number, problem, check, kind, event, namespace, name, outcome, denies, excepted_by, top_kind, top_name, text = (
            row
        )
        if text not in labels:
            labels[text] = tuple((key, value) for key, value in orjson.loads(text))
        columns = checks[check]
        api_version, kind_name = kinds[kind]
        return Candidate(
            number,
            -number if problem is None else problem,
            columns.language,
            columns.policy,
            columns.binding,
            columns.param_namespace,
            columns.param_name,
            made[check],
            api_version,
            kind_name,
            namespace,
            name,
            outcome_name(outcome, would_deny=denies, excepted_by=excepted_by).value,
            number not in unchecked,
            event == PREVIEW,
            top_kind or kind_name,
            top_name or name,
            labels[text],
        )

    with connection.execute(wanted) as result:
        for portion in result.partitions():
            yield from map(candidate, portion)


def excepted(connection: Connection, cluster: int, revision: int) -> Mapping[str, int]:
    """The numbers of open findings at a revision by the exceptions and filters that except them."""
    counted = (
        select(VERDICTS.c.excepted_by, func.count().label("number"))
        .select_from(FINDINGS.join(VERDICTS, VERDICTS.c.id == FINDINGS.c.verdict))
        .where(seen_in(cluster, revision), VERDICTS.c.excepted_by != "")
        .group_by(VERDICTS.c.excepted_by)
    )
    return {row.excepted_by: row.number for row in connection.execute(counted)}
