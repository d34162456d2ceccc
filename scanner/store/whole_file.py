"""Rejects a SQLite file that is cut short: SQLite reads zeros in place of the bytes that are missing in the last page.

Upstream: "The Database Header" of SQLite's file format, https://www.sqlite.org/fileformat2.html.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

from scanner.errors import StoreError
from scanner.store.address import Address

_MAGIC: Final = b"SQLite format 3\0"
_HEADER: Final = 100
_LARGEST_PAGE: Final = 65_536
_ATTEMPTS: Final = 3
_PAUSE: Final = 0.1
"""Seconds between two attempts: a file that another process changes just now has another size in a moment."""


def reject_cut_file(address: Address) -> None:
    """Raise StoreError if a file has fewer bytes than its header records."""
    path = address.path
    if path is None:
        return
    for attempt in range(_ATTEMPTS):
        missing = _missing(path)
        if not missing:
            return
        if attempt < _ATTEMPTS - 1:
            time.sleep(_PAUSE)
    raise StoreError(
        f"The database {address.shown} is damaged: the file is cut short, and at least {missing:,} bytes are missing. "
        "Restore it from a backup, or name another file with --db."
    )


def _missing(path: Path) -> int:
    """The number of bytes that a file lacks. Pages in a write-ahead log are not yet in the file, so then it is not known."""
    try:
        log = path.with_name(f"{path.name}-wal")
        if log.exists() and log.stat().st_size:
            return 0
        with path.open("rb") as file:
            header = file.read(_HEADER)
            size = file.seek(0, 2)
    except OSError:
        return 0
    if len(header) < _HEADER or not header.startswith(_MAGIC):
        return 0
    page = int.from_bytes(header[16:18])
    page = _LARGEST_PAGE if page == 1 else page
    # The number of pages is valid if the change counter is the one for which it was written.
    recorded = int.from_bytes(header[28:32]) * page if header[24:28] == header[92:96] else 0
    whole = -(-size // page) * page if page else 0
    return max(recorded - size, whole - size, 0)
