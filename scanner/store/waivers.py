"""The waivers that scans read. A set is stored once and never changed, so each report has the waivers of its day.

No prune deletes them: a report of a kept scan may have the set of a pruned one, and the decisions of people are small.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime

import msgspec
from sqlalchemy import Connection, and_, insert, or_, select

from scanner.model.texts import clean
from scanner.model.waiver import Waiver, WaiverSet
from scanner.store import codec
from scanner.store.closing_sums import sum_rows
from scanner.store.engine import among
from scanner.store.interning import Interned, chunks
from scanner.store.logical_rows import OF_TABLES
from scanner.store.packing import Key
from scanner.store.scans import LATEST_FIRST, USABLE
from scanner.store.tables import SCAN_WAIVERS, SCANS, WAIVER_SETS, WAIVERS


def write_waivers(connection: Connection, scan: int, waivers: WaiverSet) -> None:
    """Store the waivers of a scan, each body and each set once."""
    ids = Interned(connection, WAIVERS).ids([_key(waiver) for waiver in waivers.waivers])
    content = {"waivers": ids, "faults": waivers.faults, "notes": waivers.notes}
    [number] = Interned(connection, WAIVER_SETS).ids([(json.dumps(content, separators=(",", ":")),)])
    connection.execute(insert(SCAN_WAIVERS).values(scan=scan, waivers=number))
    sum_rows(connection, OF_TABLES[SCAN_WAIVERS.name], scan, [(scan, number)])


def waivers_at(connection: Connection, scan_id: str, moment: datetime) -> WaiverSet | None:
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
    return None if content is None else _set(connection, content)


def waivers_used(connection: Connection, cluster: int, scan: int, revision: int) -> Sequence[Waiver]:
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
    return () if content is None else _set(connection, content).waivers


def waivers_in(content: str) -> Sequence[int]:
    """The ids of the waivers in the content of a set."""
    ids: list[int] = json.loads(content)["waivers"]
    return ids


def _set(connection: Connection, content: str) -> WaiverSet:
    # A set can have thousands of waivers: this decoder reads what `codec` writes, ten times as fast as `codec` does.
    decode = msgspec.json.Decoder(Waiver).decode
    ids = waivers_in(content)
    bodies: dict[int, Waiver] = {}
    for portion in chunks(ids):
        wanted = select(WAIVERS.c.id, WAIVERS.c.document).where(among(connection, WAIVERS.c.id, portion))
        bodies |= {number: decode(document) for number, document in connection.execute(wanted)}
    values = json.loads(content)
    return WaiverSet(tuple(bodies[number] for number in ids), tuple(values["faults"]), tuple(values["notes"]))


def _key(waiver: Waiver) -> Key:
    return clean(waiver.name), codec.to_text(waiver)
