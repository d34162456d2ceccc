"""The gaps of scans as lists: scans with equal gaps share one."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import orjson
from sqlalchemy import Connection, select

from scanner.store.database.engine import is_among
from scanner.store.rows.interning import Interner, chunks
from scanner.store.rows.tables import GAP_LISTS, SCANS


class GapRow(NamedTuple):
    """A gap of a scan, with texts that every database stores. A list that lost gaps keeps the positions of the others."""

    position: int
    kind: str
    where: str
    why: str


def write_gaps(connection: Connection, gaps: Sequence[GapRow]) -> int | None:
    """Store a list of gaps unless an equal one is stored; returns its id, or None for no gap."""
    if not gaps:
        return None
    content = orjson.dumps([list(gap) for gap in gaps])
    digest = hashlib.sha256(content).digest()
    return Interner(connection, GAP_LISTS).intern_digests({digest: (zlib.compress(content),)})[digest]


def read_gaps(connection: Connection, scan: int) -> list[GapRow]:
    """The gaps of a scan, by its number."""
    return read_gaps_of_scans(connection, [scan]).get(scan, [])


def read_gaps_of_scans(connection: Connection, scans: Collection[int]) -> Mapping[int, list[GapRow]]:
    """The gaps of scans, by their numbers; scans without gaps are left out."""
    lists: dict[int, list[GapRow]] = {}
    of_scans: dict[int, list[GapRow]] = {}
    for portion in chunks(list(scans)):
        wanted = select(SCANS.c.number, SCANS.c.gaps).where(
            is_among(connection, SCANS.c.number, portion), SCANS.c.gaps.is_not(None)
        )
        used = dict(connection.execute(wanted).all())
        lists |= _read_lists(connection, frozenset(used.values()) - lists.keys())
        of_scans |= {scan: lists[number] for scan, number in used.items()}
    return of_scans


def _read_lists(connection: Connection, numbers: Iterable[int]) -> dict[int, list[GapRow]]:
    wanted = select(GAP_LISTS.c.id, GAP_LISTS.c.content).where(is_among(connection, GAP_LISTS.c.id, sorted(numbers)))
    return {number: list(_decode_gaps(bytes(content))) for number, content in connection.execute(wanted)}


def _decode_gaps(content: bytes) -> Iterator[GapRow]:
    return map(GapRow._make, orjson.loads(zlib.decompress(content)))
