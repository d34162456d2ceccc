"""The places of the objects of scans of files. Equal places of two scans are stored once.

The places of a scan are one compressed value: the paths, then the keys of the objects in order, and their paths and lines. A
reader needs 16 bytes for each object and no text.
"""

from __future__ import annotations

import sys
import zlib
from array import array
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

import orjson
from sqlalchemy import Connection, insert, select

from scanner.model.scans.place import Place, PlacedObject, name_field
from scanner.model.texts import clean
from scanner.posture.problem_ids import workload_key
from scanner.store.rows.closing_sums import sum_rows
from scanner.store.rows.interning import Interner
from scanner.store.rows.logical_rows import PARTS_BY_TABLE
from scanner.store.rows.tables import PLACES, SCAN_PLACES, SCANS

_LENGTH: Final = 8


@dataclass(frozen=True, slots=True)
class StoredPlaces:
    """The places of the objects of a scan. `keys` are in order; the object of each is in `paths[files[i]]`, `lines[i]`."""

    paths: tuple[str, ...]
    keys: array[int]
    files: array[int]
    lines: array[int]

    def __bool__(self) -> bool:
        """Return whether any object has a place."""
        return bool(self.keys)

    def find(self, group: str, kind: str, namespace: str, name: str, field: str = "") -> Place | None:
        """See `model.scans.place.Places`."""
        key = workload_key(group, kind, namespace, name_field(name, field))
        index = bisect_left(self.keys, key)
        if index == len(self.keys) or self.keys[index] != key:
            return None
        return Place(self.paths[self.files[index]], self.lines[index])


def write_places(connection: Connection, scan_id: str, objects: Iterable[PlacedObject]) -> None:
    """Store the places of the objects of a scan, by its full id."""
    content = encode_places(objects)
    digest = sha256(content).digest()
    number = Interner(connection, PLACES).intern_digests({digest: (zlib.compress(content),)})[digest]
    scan = connection.execute(select(SCANS.c.number).where(SCANS.c.id == scan_id)).scalar_one()
    connection.execute(insert(SCAN_PLACES).values(scan=scan, places=number))
    sum_rows(connection, PARTS_BY_TABLE[SCAN_PLACES.name], scan, [(scan, number)])


def read_places(connection: Connection, scan: int) -> StoredPlaces | None:
    """The places of a scan, by its number; None for a scan of a cluster, and for one of an older version."""
    wanted = select(PLACES.c.content).join(SCAN_PLACES).where(SCAN_PLACES.c.scan == scan)
    content = connection.execute(wanted).scalar()
    return None if content is None else decode_places(zlib.decompress(content))


def encode_places(objects: Iterable[PlacedObject]) -> bytes:
    """The places as one value. The same places in another order give the same value."""
    paths: dict[str, int] = {}
    rows = sorted(
        (
            workload_key(*(clean(text) for text in (each.group, each.kind, each.namespace, each.name))),
            clean(each.place.path),
            each.place.line,
        )
        for each in objects
    )
    for path in sorted({path for _, path, _ in rows}):
        paths[path] = len(paths)
    names = orjson.dumps(list(paths))
    keys = array("Q", (key for key, _, _ in rows))
    files = array("I", (paths[path] for _, path, _ in rows))
    lines = array("I", (line for _, _, line in rows))
    numbers = b"".join(_to_bytes(column) for column in (keys, files, lines))
    return len(names).to_bytes(_LENGTH, "little") + names + numbers


def decode_places(data: bytes) -> StoredPlaces:
    """The places that `encode_places` wrote."""
    end = _LENGTH + int.from_bytes(data[:_LENGTH], "little")
    keys, files, lines = array("Q"), array("I"), array("I")
    count = (len(data) - end) // (keys.itemsize + files.itemsize + lines.itemsize)
    for column in (keys, files, lines):
        start, end = end, end + count * column.itemsize
        column.frombytes(data[start:end])
        _swap_bytes(column)
    return StoredPlaces(tuple(orjson.loads(data[_LENGTH : len(data) - count * 16])), keys, files, lines)


def _to_bytes(column: array[int]) -> bytes:
    _swap_bytes(column)
    return column.tobytes()


def _swap_bytes(column: array[int]) -> None:
    """Between the order of bytes of this machine and the one that is stored."""
    if sys.byteorder == "big":
        column.byteswap()
