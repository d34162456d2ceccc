"""Reads the record of one stored scan, from which reports are made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from datetime import datetime
from itertools import chain, repeat
from typing import Any

import orjson
from sqlalchemy import Connection, Engine, select

from scanner.errors import UsageError
from scanner.model.cause import CauseKind
from scanner.model.method import Method
from scanner.model.opinion import Opinion
from scanner.model.outcome import Gap, GapKind
from scanner.model.policy import Action, Binding, Policy
from scanner.model.reading import UNKNOWN, Reading
from scanner.model.scan import (
    Coverage,
    CoverageState,
    Health,
    HealthKind,
    OutOfScope,
    PolicyRecord,
    Scan,
    ScanState,
)
from scanner.model.uncovered import UncoveredKind
from scanner.store import codec
from scanner.store.address import Address
from scanner.store.check_names import check_ids
from scanner.store.problem_counts import comparable
from scanner.store.read_tallies import read_tallies
from scanner.store.rules import read_rules
from scanner.store.scans import Abandoned, abandoned, scan_of, select_scans, with_current_state
from scanner.store.shared_rows import Owners, owners_of, read_rows
from scanner.store.sql_scan import ScanRow, SqlScan
from scanner.store.tables import (
    BINDINGS,
    COVERAGE,
    GAPS,
    HEALTH,
    OUTSIDE,
    POLICIES,
    SCAN_BINDINGS,
    SCAN_POLICIES,
    SCANS,
    UNCOVERED,
)

_ACTIONS: tuple[Action, ...] = ("Deny", "Warn", "Audit")


def record(engine: Engine, address: Address, scan_id: str, now: datetime) -> SqlScan:
    """A finished scan. Raises UsageError for an unknown id, a scan that still runs, and a pruned scan."""
    with engine.connect() as connection:
        dead = abandoned(connection, now)
        stored = stored_scan(connection, scan_id, dead)
        owners = owners_of(connection, stored.number)
        policies = _policies(connection, owners, stored.matched)
        return SqlScan(
            engine=engine,
            address=address,
            row=stored,
            scan=with_current_state(_scan(connection, SCANS.c.number == stored.number), dead),
            previous=_previous(connection, stored),
            policies=policies,
            check_ids=check_ids(
                connection, stored.cluster, [each.policy for each in policies], stored.revision or stored.base
            ),
            coverage=_coverage(connection, stored.number),
            health=tuple(
                Health(HealthKind(kind), *rest) for kind, *rest in read_rows(connection, HEALTH, owners.health)
            ),
            gaps=tuple(Gap(GapKind(kind), *rest) for kind, *rest in read_rows(connection, GAPS, stored.number)),
            tallies=read_tallies(connection, stored.number),
            comparable=comparable(connection, scan_id),
            changed_rules=tuple(map(CauseKind, filter(None, stored.changed_rules.split(",")))),
            unchecked=stored.unchecked,
            outside=tuple(OutOfScope(*row) for row in read_rows(connection, OUTSIDE, owners.outside)),
            opinion=codec.from_text(Opinion, stored.opinion) if stored.opinion else None,
            rules=read_rules(connection, owners.rules),
            uncovered=tuple(UncoveredKind(*row) for row in read_rows(connection, UNCOVERED, owners.uncovered)),
            method=codec.from_text(Method, stored.method) if stored.method else None,
        )


def _coverage(connection: Connection, number: int) -> tuple[Coverage, ...]:
    """The coverage of a scan. Older versions recorded no digests of pages."""
    own = (COVERAGE.c[item.name] for item in fields(Coverage))
    rows = connection.execute(select(*own).where(COVERAGE.c.scan == number).order_by(COVERAGE.c.position))
    coverage = (Coverage(api_version, kind, CoverageState(state), *rest) for api_version, kind, state, *rest in rows)
    return tuple(replace(each, page_digests=bytes(each.page_digests or b"")) for each in coverage)


def stored_scan(connection: Connection, scan_id: str, dead: Sequence[Abandoned]) -> ScanRow:
    """A finished scan, by its id. Raises UsageError for an unknown id, a scan that still runs, and a pruned scan."""
    wanted = select(*(SCANS.c[name] for name in ScanRow._fields)).where(SCANS.c.id == scan_id)
    row = connection.execute(wanted).one_or_none()
    if row is None:
        raise UsageError(f"There is no scan {scan_id} in this database. `assay scans` lists all scans.")
    stored = ScanRow(*row)
    if stored.pruned_at is not None:
        raise UsageError(
            f"Scan {scan_id} was pruned on {stored.pruned_at:%Y-%m-%d} and has no report any more. "
            "`assay scans` shows which scans have one."
        )
    if stored.state == ScanState.RUNNING.value and stored.number not in {scan.number for scan in dead}:
        raise UsageError(f"Scan {scan_id} is still running. Only a finished scan has a report.")
    return stored


def _scan(connection: Connection, chosen: Any) -> Scan:
    return scan_of(connection.execute(select_scans().where(chosen)).one())


def _previous(connection: Connection, stored: ScanRow) -> Scan | None:
    """The previous scan in the cluster's history; for a failed scan, the newest one when it began."""
    revision = stored.base if stored.revision is None else stored.revision - 1
    if not revision:
        return None
    return _scan(connection, (SCANS.c.cluster == stored.cluster) & (SCANS.c.revision == revision))


def _policies(connection: Connection, owners: Owners, matched: str) -> tuple[PolicyRecord, ...]:
    bindings = _bindings(connection, owners.bindings)
    counts = chain(orjson.loads(matched or "[]"), repeat(0))
    used = SCAN_POLICIES.c
    wanted = (
        select(POLICIES.c.document, used.reading)
        .join(POLICIES)
        .where(used.scan == owners.policies)
        .order_by(used.position)
    )
    return tuple(
        _policy(codec.from_text(Policy, document), count, bindings, _reading(read))
        for (document, read), count in zip(connection.execute(wanted), counts, strict=False)
    )


def _reading(text: str) -> Reading:
    return codec.from_text(Reading, text) if text else UNKNOWN


def _bindings(connection: Connection, number: int) -> tuple[Binding, ...]:
    used = SCAN_BINDINGS.c
    wanted = select(BINDINGS.c.document).join(SCAN_BINDINGS).where(used.scan == number).order_by(used.position)
    return tuple(codec.from_text(Binding, document) for document in connection.execute(wanted).scalars())


def _policy(policy: Policy, matched: int, bindings: tuple[Binding, ...], reading: Reading) -> PolicyRecord:
    own = tuple(item for item in bindings if item.policy_key == policy.key)
    actions = {action for binding in own for action in binding.actions}
    return PolicyRecord(policy, own, matched, tuple(action for action in _ACTIONS if action in actions), reading)
