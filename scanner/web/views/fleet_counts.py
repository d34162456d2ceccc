"""Keeps the numbers of the newest scans of all clusters. A finished scan never changes, so each is counted once, in the background.

A page that needs numbers which are not counted yet states that; it never shows others in their place.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from threading import Condition, Thread
from time import monotonic
from typing import Final, TypeAlias

from scanner.web.requests.refusals import WebError
from scanner.web.views.library import ScanLibrary
from scanner.web.views.scan_counts import CountedScan, counts_of

_LOG: Final = logging.getLogger("assay.web")
_OTHERS: Final = 64
"""The scans that are kept besides the newest ones of all clusters."""
_PATIENCE: Final = 0.1
"""Seconds that a page waits for numbers: one scan that has just ended is counted in that time, a whole fleet is not."""
_AGAIN: Final = 10.0
"""Seconds after which a scan that could not be counted is counted again."""


@dataclass(frozen=True, slots=True)
class NotCounted:
    """Stands for the numbers of a scan that are not known: the reason, and when (`monotonic`) to count again."""

    why: str
    again: float = 0.0


COUNTING: Final = NotCounted("being counted: reload this page in some seconds")
Counted: TypeAlias = CountedScan | NotCounted


class FleetCounts:
    """The numbers of scans by id, for many threads."""

    def __init__(self, library: ScanLibrary) -> None:
        self._library: Final = library
        self._kept: Final[OrderedDict[str, Counted]] = OrderedDict()
        self._queue: Final[dict[str, None]] = {}
        self._changed: Final = Condition()
        self._counting = False
        self._most = _OTHERS

    def warm(self) -> None:
        """Begin to count the newest scan of every cluster. Does not wait, and raises as `ScanLibrary.fleet` does."""
        newest = (scans.usable.id for scans in self._library.fleet().clusters if scans.usable is not None)
        self.get(list(newest), patience=0)

    def get(self, scans: Collection[str], patience: float = _PATIENCE) -> Mapping[str, Counted]:
        """The numbers of finished scans, by their full ids; what is not known is counted, for `patience` seconds before the answer."""
        with self._changed:
            self._ask(scans)
            self._changed.wait_for(lambda: not any(scan in self._queue for scan in scans), patience)
            self._most = max(self._most, len(scans) + _OTHERS)
            for scan in scans:
                if scan in self._kept:
                    self._kept.move_to_end(scan)
            return {scan: self._kept.get(scan, COUNTING) for scan in scans}

    def count(self, scan: str) -> CountedScan:
        """The numbers of a finished scan, counted now if they are not known. Raises as `ScanLibrary.use_reader` does."""
        with self._changed:
            known = self._kept.get(scan)
        if isinstance(known, CountedScan):
            return known
        made = self._counts(scan)
        with self._changed:
            self._keep(scan, made)
        return made

    def _keep(self, scan: str, made: Counted) -> None:
        self._kept[scan] = made
        while len(self._kept) > self._most:
            self._kept.popitem(last=False)

    def _ask(self, scans: Collection[str]) -> None:
        """Put scans without numbers into the queue, and start the thread that counts, unless it runs."""
        now = monotonic()
        for scan in scans:
            known = self._kept.get(scan)
            if known is None or (isinstance(known, NotCounted) and known.again < now):
                self._queue[scan] = None
        if self._queue and not self._counting:
            self._counting = True
            Thread(target=self._work, name="assay-counts", daemon=True).start()

    def _work(self) -> None:
        """Count the scans of the queue, one after the other, and end."""
        while True:
            with self._changed:
                scan = next(iter(self._queue), None)
                if scan is None:
                    self._counting = False
                    return
            made = self._count(scan)
            with self._changed:
                self._keep(scan, made)
                del self._queue[scan]
                self._changed.notify_all()

    def _count(self, scan: str) -> Counted:
        try:
            return self._counts(scan)
        except WebError as error:
            return NotCounted(f"not counted: {error}", monotonic() + _AGAIN)
        except Exception:  # noqa: BLE001 - an error of the program must not leave pages without an answer for ever
            _LOG.exception("the scan %s could not be counted", scan)
            return NotCounted("not counted: the log of the server has the error", monotonic() + _AGAIN)

    def _counts(self, scan: str) -> CountedScan:
        with self._library.use_reader() as reader:
            return counts_of(reader, self._library.settings, scan)
