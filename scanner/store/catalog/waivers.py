"""The waivers that scans read. A set is stored once and never changed, so each report has the waivers of its day.

No prune deletes them: a report of a kept scan may have the set of a pruned one, and the decisions of people are small. A set
goes with the last cluster whose scans read it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import datetime

import msgspec
from sqlalchemy import Connection, and_, insert, or_, select

from scanner.model.outcome import Check
from scanner.model.policy import PolicyKey
from scanner.model.texts import clean
from scanner.model.waiver import WaivedCheck, Waiver, WaiverSet
from scanner.posture.waivers.waived_checks import NamedChecks, form_of, question_of, waiver_key
from scanner.posture.waivers.waivers import select_by_cluster
from scanner.store.catalog.check_names import read_check_ids, read_policies_of_scan
from scanner.store.catalog.scans import LATEST_FIRST, USABLE, scan_of, select_scans
from scanner.store.database.engine import insert_rows, is_among, select_numbers
from scanner.store.rows import codec
from scanner.store.rows.closing_sums import sum_rows
from scanner.store.rows.columns import CheckColumns, columns_of
from scanner.store.rows.interning import Interner, Key, chunks
from scanner.store.rows.logical_rows import PARTS_BY_TABLE
from scanner.store.rows.references import decode_waiver_ids
from scanner.store.rows.tables import CHECKS, SCAN_WAIVERS, SCANS, WAIVED_CHECKS, WAIVER_SETS, WAIVERS
from scanner.store.rows.tally_lists import read_tallied_checks


def write_waivers(connection: Connection, scan: int, waivers: WaiverSet) -> None:
    """Store the waivers of a scan, each body and each set once."""
    ids = Interner(connection, WAIVERS).intern([_encode_waiver(waiver) for waiver in waivers.waivers])
    content = {"waivers": ids, "faults": waivers.faults, "notes": waivers.notes}
    [number] = Interner(connection, WAIVER_SETS).intern([(json.dumps(content, separators=(",", ":")),)])
    connection.execute(insert(SCAN_WAIVERS).values(scan=scan, waivers=number))
    sum_rows(connection, PARTS_BY_TABLE[SCAN_WAIVERS.name], scan, [(scan, number)])


def find_waivers_at(connection: Connection, scan_id: str, moment: datetime) -> WaiverSet | None:
    """The waivers with the latest date up to a moment, of a scan of the same cluster; None if no such scan read waivers."""
    cluster = select(SCANS.c.cluster).where(SCANS.c.id == scan_id).scalar_subquery()
    newest = (
        select(WAIVER_SETS.c.content)
        .select_from(SCAN_WAIVERS.join(SCANS).join(WAIVER_SETS))
        .where(SCANS.c.cluster == cluster, SCANS.c.state.in_(USABLE), SCANS.c.finished_at <= moment)
        .order_by(*LATEST_FIRST)
        .limit(1)
    )
    content = connection.execute(newest).scalar()
    return None if content is None else _decode_set(connection, content)


def find_used_waivers(connection: Connection, cluster: int, scan: int, revision: int) -> Sequence[Waiver]:
    """The waivers that the report of a scan has, given its number and revision: its own, or the newest ones before."""
    is_own = SCANS.c.number == scan
    newest = (
        select(WAIVER_SETS.c.content)
        .select_from(SCAN_WAIVERS.join(SCANS).join(WAIVER_SETS))
        .where(SCANS.c.cluster == cluster, or_(is_own, and_(SCANS.c.state.in_(USABLE), SCANS.c.revision <= revision)))
        .order_by(is_own.desc(), SCANS.c.revision.desc())
        .limit(1)
    )
    content = connection.execute(newest).scalar()
    return () if content is None else _decode_set(connection, content).waivers


def _decode_set(connection: Connection, content: str) -> WaiverSet:
    # A set can have thousands of waivers: this decoder reads what `codec` writes, ten times as fast as `codec` does.
    decode = msgspec.json.Decoder(Waiver).decode
    ids = decode_waiver_ids(content)
    bodies: dict[int, Waiver] = {}
    for portion in chunks(ids):
        wanted = select(WAIVERS.c.id, WAIVERS.c.document).where(is_among(connection, WAIVERS.c.id, portion))
        bodies |= {number: decode(document) for number, document in connection.execute(wanted)}
    values = json.loads(content)
    return WaiverSet(tuple(bodies[number] for number in ids), tuple(values["faults"]), tuple(values["notes"]))


def _encode_waiver(waiver: Waiver) -> Key:
    return clean(waiver.name), codec.to_text(waiver)


# The checks that waivers name, as scans had them: a waiver without a digest is about the check of the first scan that
# used it.
#
# Written when a scan is merged, because the policies of that scan may be pruned later; no prune deletes these rows.


def write_waived_checks(connection: Connection, cluster: int, scan: int, revision: int) -> None:
    """Store the checks of a scan that its waivers name, in the forms that no earlier scan had.

    The tallies of the scan are written, and the connection is in a transaction that writes history.
    """
    named = [waiver for waiver in _list_waivers(connection, cluster, scan, revision) if waiver.check]
    if not named:
        return
    known = {(each.waiver, each.form) for each in read_waived_checks(connection, cluster, revision)}
    checks = _find_named_checks(connection, cluster, scan, revision, frozenset(waiver.policy for waiver in named))
    rows: dict[tuple[bytes, bytes], str] = {}
    for waiver in named:
        for check in checks.find(waiver.policy, waiver.check):
            key = waiver_key(waiver), form_of(*check)
            if key not in known:
                rows[key] = question_of(*check)
    values = [(cluster, *key, question, revision) for key, question in rows.items()]
    insert_rows(connection, WAIVED_CHECKS, ("cluster", "waiver", "form", "question", "since"), values)


def read_waived_checks(connection: Connection, cluster: int, revision: int) -> list[WaivedCheck]:
    """The checks that waivers name, of the scans of a cluster up to a revision."""
    waived_check = WAIVED_CHECKS.c
    wanted = select(waived_check.waiver, waived_check.form, waived_check.question, waived_check.since).where(
        waived_check.cluster == cluster, waived_check.since <= revision
    )
    return [
        WaivedCheck(bytes(waiver), bytes(form), question, since)
        for waiver, form, question, since in connection.execute(wanted)
    ]


def write_all_waived_checks(connection: Connection) -> None:
    """Store the checks that waivers name in a database of an older version, as far as the policies of scans are kept."""
    if connection.execute(select(SCAN_WAIVERS.c.scan).limit(1)).scalar() is None:
        return
    with_report = SCANS.c.revision.is_not(None), SCANS.c.pruned_at.is_(None), SCANS.c.state.in_(USABLE)
    wanted = select(SCANS.c.cluster, SCANS.c.number, SCANS.c.revision).where(*with_report)
    for cluster, scan, revision in connection.execute(wanted.order_by(SCANS.c.cluster, SCANS.c.revision)).all():
        write_waived_checks(connection, cluster, scan, revision)


def _list_waivers(connection: Connection, cluster: int, scan: int, revision: int) -> Iterator[Waiver]:
    """The waivers for its cluster that the report of a scan has."""
    stored = scan_of(connection.execute(select_scans().where(SCANS.c.number == scan)).one())
    return select_by_cluster(find_used_waivers(connection, cluster, scan, revision), stored.cluster.names)


def _find_named_checks(
    connection: Connection, cluster: int, scan: int, revision: int, names: frozenset[str]
) -> NamedChecks:
    policies = [each for each in read_policies_of_scan(connection, scan) if each.name in names]
    return NamedChecks(
        policies, read_check_ids(connection, cluster, policies, revision), _read_evaluated_checks(connection, scan)
    )


def _read_evaluated_checks(connection: Connection, scan: int) -> Iterator[tuple[PolicyKey, Check]]:
    checks = select_numbers(connection, sorted(read_tallied_checks(connection, scan)))
    for columns in connection.execute(select(*columns_of(CHECKS, CheckColumns)).where(CHECKS.c.id.in_(checks))):
        check = CheckColumns._make(columns)
        yield (check.language, check.policy), check.make_check()
