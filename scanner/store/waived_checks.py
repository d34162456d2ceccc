"""The checks that waivers name, as scans had them: a waiver without a digest is about the check of the first scan that used it.

Written when a scan is merged, because the policies of that scan may be pruned later; no prune deletes these rows.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import Connection, select

from scanner.model.outcome import Check
from scanner.model.policy import PolicyKey
from scanner.model.waiver import WaivedCheck, Waiver
from scanner.posture.questions import form_of, question_of
from scanner.posture.waived_checks import NamedChecks, waiver_key
from scanner.posture.waivers import of_cluster
from scanner.store.check_names import check_ids, policies_of_scan
from scanner.store.columns import CheckColumns, columns_of
from scanner.store.engine import insert_rows
from scanner.store.scans import USABLE, scan_of, select_scans
from scanner.store.tables import CHECKS, SCAN_WAIVERS, SCANS, TALLIES, WAIVED_CHECKS
from scanner.store.waivers import waivers_used


def write_waived_checks(connection: Connection, cluster: int, scan: int, revision: int) -> None:
    """Store the checks of a scan that its waivers name, in the forms that no earlier scan had.

    The tallies of the scan are written, and the connection is in a transaction that writes history.
    """
    named = [waiver for waiver in _waivers(connection, cluster, scan, revision) if waiver.check]
    if not named:
        return
    known = {(each.waiver, each.form) for each in waived_checks(connection, cluster, revision)}
    checks = _named_checks(connection, cluster, scan, revision, frozenset(waiver.policy for waiver in named))
    rows: dict[tuple[bytes, bytes], str] = {}
    for waiver in named:
        for check in checks.of(waiver.policy, waiver.check):
            key = waiver_key(waiver), form_of(*check)
            if key not in known:
                rows[key] = question_of(*check)
    values = [(cluster, *key, question, revision) for key, question in rows.items()]
    insert_rows(connection, WAIVED_CHECKS, ("cluster", "waiver", "form", "question", "since"), values)


def waived_checks(connection: Connection, cluster: int, revision: int) -> list[WaivedCheck]:
    """The checks that waivers name, of the scans of a cluster up to a revision."""
    own = WAIVED_CHECKS.c
    wanted = select(own.waiver, own.form, own.question, own.since).where(own.cluster == cluster, own.since <= revision)
    return [
        WaivedCheck(bytes(waiver), bytes(form), question, since)
        for waiver, form, question, since in connection.execute(wanted)
    ]


def write_all(connection: Connection) -> None:
    """Store the checks that waivers name in a database of an older version, as far as the policies of scans are kept."""
    if connection.execute(select(SCAN_WAIVERS.c.scan).limit(1)).scalar() is None:
        return
    kept = SCANS.c.revision.is_not(None), SCANS.c.pruned_at.is_(None), SCANS.c.state.in_(USABLE)
    wanted = select(SCANS.c.cluster, SCANS.c.number, SCANS.c.revision).where(*kept)
    for cluster, scan, revision in connection.execute(wanted.order_by(SCANS.c.cluster, SCANS.c.revision)).all():
        write_waived_checks(connection, cluster, scan, revision)


def _waivers(connection: Connection, cluster: int, scan: int, revision: int) -> Iterator[Waiver]:
    """The waivers for its cluster that the report of a scan has."""
    stored = scan_of(connection.execute(select_scans().where(SCANS.c.number == scan)).one())
    return of_cluster(waivers_used(connection, cluster, scan, revision), stored.cluster.names)


def _named_checks(connection: Connection, cluster: int, scan: int, revision: int, names: frozenset[str]) -> NamedChecks:
    policies = [each for each in policies_of_scan(connection, scan) if each.name in names]
    return NamedChecks(policies, check_ids(connection, cluster, policies, revision), _evaluated(connection, scan))


def _evaluated(connection: Connection, scan: int) -> Iterator[tuple[PolicyKey, Check]]:
    own = select(TALLIES.c.check).where(TALLIES.c.scan == scan)
    for columns in connection.execute(select(*columns_of(CHECKS, CheckColumns)).where(CHECKS.c.id.in_(own))):
        check = CheckColumns._make(columns)
        yield (check.language, check.policy), check.check()
