"""The findings of the pages of a cluster's newest merged scan, so that an unchanged page is merged without reading its findings.

If a page has the digest of a page of the scan before, then each of its findings has an open row with this content: nothing
is to be written. Only the rows of the newest scan are kept, because any merge may resolve or change rows of others.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Sequence
from itertools import starmap

import orjson
from sqlalchemy import Connection, delete, select

from scanner.store.engine import among, insert_rows
from scanner.store.interning import chunks
from scanner.store.packing import StagedPage
from scanner.store.population import RecordedList
from scanner.store.row_ids import Run
from scanner.store.tables import MERGED_PAGES


class MergedPages:
    """The pages of the newest merged scan of a cluster, and those of the scan that is being merged."""

    def __init__(self, connection: Connection, cluster: int) -> None:
        """Read the digests; the connection is in a transaction that writes history."""
        self._connection = connection
        self._cluster = cluster
        own = MERGED_PAGES.c
        wanted = select(own.digest, own.findings).where(own.cluster == cluster)
        self._before = {bytes(digest): bytes(runs) for digest, runs in connection.execute(wanted)}
        self._now: dict[bytes, bytes] = {}

    def known(self, key: bytes) -> list[Run] | None:
        """The row ids of the findings of a page that the scan before had, too; None for another page."""
        packed = self._before.get(key)
        if packed is None:
            return None
        self._now[key] = packed
        return list(starmap(Run, orjson.loads(zlib.decompress(packed))))

    def keep(self, key: bytes, numbers: Sequence[int]) -> None:
        """Record the row ids of the findings of a page."""
        self._now[key] = zlib.compress(orjson.dumps(list(_runs(sorted(numbers)))), 6)

    def forget(self) -> None:
        """Let the next scan merge every page of this one anew."""
        self._now.clear()

    def write(self) -> None:
        """Replace the pages of the scan before by those of this scan."""
        own = MERGED_PAGES.c
        for portion in chunks([key for key in self._before if key not in self._now]):
            gone = own.cluster == self._cluster, among(self._connection, own.digest, portion)
            self._connection.execute(delete(MERGED_PAGES).where(*gone))
        rows = [(self._cluster, key, runs) for key, runs in self._now.items() if key not in self._before]
        insert_rows(self._connection, MERGED_PAGES, ("cluster", "digest", "findings"), rows)


def merged_key(page: StagedPage, objects: RecordedList) -> bytes:
    """The digest of a page with findings and of its objects, 16 bytes."""
    text = page.digest + objects.ids.tobytes() + objects.workloads.tobytes()
    return hashlib.blake2b(text, digest_size=16).digest()


def _runs(numbers: Sequence[int]) -> list[list[int]]:
    """Ascending numbers as pairs of the first number of a run and its length."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][0] + runs[-1][1]:
            runs[-1][1] += 1
        else:
            runs.append([number, 1])
    return runs
