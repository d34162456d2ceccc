"""The addresses of clusters and moments: parts of paths that mean the same for ever.

`prod-eu-1.3fa29c1b` names a cluster by the SHA-256 of its identity; the text before the dot is for readers. `latest`, `at/2026-03-31`
and `scans/<id>` name a scan of it: the newest, the newest one that had ended by the end of a day in UTC, and one by its id. Users
write a moment into a form as `latest`, a date, a time in UTC or the id of a scan.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from hashlib import sha256
from typing import Final
from urllib.parse import quote

from scanner.store.catalog.clusters import StoredCluster

_DIGITS: Final = 8
_NOT_PLAIN: Final = re.compile(r"[^A-Za-z0-9_-]+")
_MOMENT: Final = re.compile(r"\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d)?Z)?")


def cluster_key(cluster: StoredCluster) -> str:
    """The part of a path that names a cluster."""
    plain = _NOT_PLAIN.sub("-", cluster.name).strip("-")[:60] or "cluster"
    return f"{plain}.{_digest(cluster.identity)}"


def find_cluster(key: str, clusters: Iterable[StoredCluster]) -> StoredCluster | None:
    """The cluster that a key names; its readable part may be that of an earlier name. None if there is none."""
    digest = key.rpartition(".")[2]
    return next((cluster for cluster in clusters if _digest(cluster.identity) == digest), None)


def _digest(identity: str) -> str:
    return sha256(identity.encode()).hexdigest()[:_DIGITS]


@dataclass(frozen=True, slots=True)
class ScanMoment:
    """The scan that an address names: one of `scan` (an id) and `at` (a date or a time in UTC), or neither for the newest."""

    scan: str = ""
    at: str = ""

    @property
    def path(self) -> str:
        """The part of a path that names it."""
        if self.scan:
            return f"scans/{quote(self.scan, safe='')}"
        return f"at/{quote(self.at, safe='')}" if self.at else "latest"

    @property
    def query(self) -> dict[str, str]:
        """The parameters of the API that name it."""
        return {"scan": self.scan} if self.scan else {"at": self.at} if self.at else {}

    @property
    def day(self) -> date | None:
        """The day of the report, or None for that of its scan. Raises ValueError as `end` does."""
        return end_of(self.at).astimezone(UTC).date() if self.at else None

    @property
    def end(self) -> datetime | None:
        """The last moment of `at`. Raises ValueError if it is no date and no time."""
        return end_of(self.at) if self.at else None


def end_of(at: str) -> datetime:
    """The end of a date, or a time in UTC such as 2026-03-31T12:00Z. Raises ValueError."""
    if not _MOMENT.fullmatch(at):
        raise ValueError(f"{at[:40]!r} is no date: write 2026-03-31, or a time in UTC such as 2026-03-31T12:00:00Z")
    try:
        if "T" in at:
            return datetime.fromisoformat(at)
        return datetime.combine(date.fromisoformat(at), time.min, UTC) + timedelta(days=1, microseconds=-1)
    except (ValueError, OverflowError):
        raise ValueError(f"{at[:40]!r} is no date of the calendar") from None


def beginning_of(at: str) -> datetime:
    """The beginning of a date, or a time in UTC. Raises ValueError as `end_of` does."""
    moment = end_of(at)
    return moment if "T" in at else datetime.combine(moment.date(), time.min, UTC)


LATEST: Final = "latest"
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d(T[0-9:]*Z)?")
_PATH: Final = re.compile(r"(at|scans)/(.*)")


def moment_of(text: str) -> ScanMoment:
    """The moment; also in the form of a path, `at/2026-03-31` and `scans/<id>`. What is no date is the id of a scan."""
    if not text or text == LATEST:
        return ScanMoment()
    if match := _PATH.fullmatch(text):
        return ScanMoment(at=match[2]) if match[1] == "at" else ScanMoment(scan=match[2])
    return ScanMoment(at=text) if _DATE.fullmatch(text) else ScanMoment(scan=text)
