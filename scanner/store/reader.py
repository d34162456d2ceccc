"""One stored scan as it was: everything a report says about it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from itertools import chain, repeat
from typing import Any, NamedTuple

import orjson
from sqlalchemy import Connection, Engine, select

from scanner.errors import UsageError
from scanner.model.opinion import Opinion
from scanner.model.outcome import Check, CheckKind, Gap, GapKind
from scanner.model.policy import Action, Binding, Policy
from scanner.model.reading import UNKNOWN, Reading
from scanner.model.scan import (
    Coverage,
    CoverageState,
    Health,
    HealthKind,
    OutcomeName,
    OutOfScope,
    PolicyRecord,
    Scan,
    ScanRecord,
    ScanState,
    StoredFinding,
    TallyKey,
)
from scanner.store import codec
from scanner.store.address import Address
from scanner.store.findings import resolved_by, seen_by
from scanner.store.row_ids import unpacked
from scanner.store.scans import Abandoned, abandoned, as_it_is, scan_of, select_scans
from scanner.store.shared_rows import Lines, lines_of, read_lines
from scanner.store.store_errors import told
from scanner.store.tables import (
    BINDINGS,
    CHECKS,
    COVERAGE,
    GAPS,
    HEALTH,
    KINDS,
    OUTSIDE,
    POLICIES,
    SCAN_BINDINGS,
    SCAN_POLICIES,
    SCANS,
    TALLIES,
    UNCHECKED,
)

_ACTIONS: tuple[Action, ...] = ("Deny", "Warn", "Audit")


class _Place(NamedTuple):
    number: int
    cluster: int
    base: int
    revision: int | None
    unchecked: int
    state: str
    opinion: str
    matched: str


def record(engine: Engine, address: Address, scan_id: str, now: datetime) -> ScanRecord:
    """A scan as it was. Raises UsageError when there is none of that id, or when it still runs."""
    with engine.connect() as connection:
        dead = abandoned(connection, now)
        place = _place(connection, scan_id, dead)
        of = lines_of(connection, place.number)
        return ScanRecord(
            scan=as_it_is(_scan(connection, SCANS.c.number == place.number), dead),
            previous=_previous(connection, place),
            policies=_policies(connection, of, place.matched),
            coverage=tuple(
                Coverage(line[0], line[1], CoverageState(line[2]), *line[3:])
                for line in read_lines(connection, COVERAGE, place.number)
            ),
            health=tuple(Health(HealthKind(kind), *rest) for kind, *rest in read_lines(connection, HEALTH, of.health)),
            gaps=tuple(Gap(GapKind(kind), *rest) for kind, *rest in read_lines(connection, GAPS, place.number)),
            tallies=_tallies(connection, place.number),
            findings=_streaming(engine, address, place, _seen),
            resolved=_streaming(engine, address, place, _resolved),
            unchecked=place.unchecked,
            outside=tuple(OutOfScope(*line) for line in read_lines(connection, OUTSIDE, of.outside)),
            opinion=codec.from_text(Opinion, place.opinion) if place.opinion else None,
        )


def _place(connection: Connection, scan_id: str, dead: Sequence[Abandoned]) -> _Place:
    wanted = select(*(SCANS.c[name] for name in _Place._fields)).where(SCANS.c.id == scan_id)
    row = connection.execute(wanted).one_or_none()
    if row is None:
        raise UsageError(f"There is no scan {scan_id} in this database. `assay scans` lists what there is.")
    place = _Place(*row)
    if place.state == ScanState.RUNNING.value and place.number not in {it.number for it in dead}:
        raise UsageError(f"Scan {scan_id} is still running. Wait for its end: only a finished scan can be reported.")
    return place


def _scan(connection: Connection, chosen: Any) -> Scan:
    return scan_of(connection.execute(select_scans().where(chosen)).one())


def _previous(connection: Connection, place: _Place) -> Scan | None:
    """The scan just before in the cluster's history; for a failed one, the newest when it began."""
    revision = place.base if place.revision is None else place.revision - 1
    if not revision:
        return None
    return _scan(connection, (SCANS.c.cluster == place.cluster) & (SCANS.c.revision == revision))


def _policies(connection: Connection, of: Lines, matched: str) -> tuple[PolicyRecord, ...]:
    bindings = _bindings(connection, of.bindings)
    counts = chain(orjson.loads(matched or "[]"), repeat(0))
    used = SCAN_POLICIES.c
    wanted = (
        select(POLICIES.c.document, used.reading).join(POLICIES).where(used.scan == of.policies).order_by(used.position)
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


def _tallies(connection: Connection, number: int) -> dict[TallyKey, int]:
    checks = ("policy", "language", "binding", "param_namespace", "param_name", "kind", "index", "expression")
    wanted = (
        select(*(CHECKS.c[name] for name in checks), KINDS.c.api_version, KINDS.c.kind)
        .add_columns(TALLIES.c.namespace, TALLIES.c.outcome, TALLIES.c.requester, TALLIES.c.count)
        .select_from(TALLIES.join(CHECKS).join(KINDS))
        .where(TALLIES.c.scan == number)
        .order_by(*(CHECKS.c[name] for name in checks), KINDS.c.kind, KINDS.c.api_version)
        .order_by(TALLIES.c.namespace, TALLIES.c.outcome)
    )
    return {_tally_key(*row[:-1]): row[-1] for row in connection.execute(wanted)}


def _tally_key(*row: Any) -> TallyKey:
    policy, language, binding, param_namespace, param_name, check, index, expression = row[:8]
    api_version, kind, namespace, outcome, requester = row[8:]
    return TallyKey(
        policy=policy,
        binding=binding,
        param_namespace=param_namespace,
        param_name=param_name,
        check=Check(CheckKind(check), index, expression),
        api_version=api_version,
        kind=kind,
        namespace=namespace,
        outcome=OutcomeName(outcome),
        requester=requester,
        language=language,
    )


def _streaming(
    engine: Engine, address: Address, place: _Place, read: Callable[[Connection, _Place, int], Iterator[StoredFinding]]
) -> Callable[[], Iterator[StoredFinding]]:
    """Findings on a connection of their own, which ends with them. A failed scan has none: it is not in history."""

    def findings() -> Iterator[StoredFinding]:
        if place.revision is None:
            return
        with told(address), engine.connect() as connection:
            yield from read(connection, place, place.revision)

    return findings


def _seen(connection: Connection, place: _Place, revision: int) -> Iterator[StoredFinding]:
    data = connection.execute(select(UNCHECKED.c.findings).where(UNCHECKED.c.scan == place.number)).scalar()
    return seen_by(connection, place.cluster, revision, unpacked(data))


def _resolved(connection: Connection, place: _Place, revision: int) -> Iterator[StoredFinding]:
    return resolved_by(connection, place.cluster, revision)
