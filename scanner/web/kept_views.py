"""The views of scans in memory. The newest scan of a cluster is read most, so a full memory drops the views of earlier ones first."""

from __future__ import annotations

from collections.abc import Hashable
from datetime import datetime
from typing import Final, Protocol, TypeVar

from cachetools import Cache

MOST_VIEWS: Final = 64
"""The views that are kept: those of the newest scans of a fleet, and some of other dates."""
MOST_PROBLEMS: Final = 1_000_000
"""The problems of all kept views together: a bound of their memory. A view counts as a 64th of it at least."""


class View(Protocol):
    """What the memory must know of a view: its cluster, the end of its scan, and its number of problems."""

    @property
    def cluster(self) -> Hashable:
        """The cluster of its scan."""
        ...

    @property
    def ended(self) -> datetime:
        """The end of its scan."""
        ...

    @property
    def size(self) -> int:
        """The number of its problems, or an equivalent of other data."""
        ...


ViewT = TypeVar("ViewT", bound=View)


class KeptViews(Cache[Hashable, ViewT]):
    """The views that were read last, in that order. Its methods may not be called by several threads at once.

    Row 12: without the rule for newest scans, one session in nine about a newest scan would wait half a second for its view (ADR 68).
    """

    def __init__(self, most_views: int = MOST_VIEWS, most_problems: int = MOST_PROBLEMS) -> None:
        """Keep at most so many views, and views of so many problems; always one."""
        least = most_problems // most_views
        super().__init__(most_problems, lambda view: min(max(view.size, least), most_problems))
        self._newest: Final[dict[Hashable, datetime]] = {}

    def __getitem__(self, key: Hashable) -> ViewT:
        """The view with a key, which is now the one that was read last."""
        view = super().__getitem__(key)
        super().__delitem__(key)
        super().__setitem__(key, view)
        return view

    def __setitem__(self, key: Hashable, view: ViewT) -> None:
        """Keep a view, and drop others while there are too many."""
        self._newest[view.cluster] = max(view.ended, self._newest.get(view.cluster, view.ended))
        super().__setitem__(key, view)

    def popitem(self) -> tuple[Hashable, ViewT]:
        """Drop the view of an earlier scan of its cluster that was not read for the longest time; else any such view."""
        key = next(filter(self._is_earlier, self), None) or next(iter(self))
        return key, self.pop(key)

    def _is_earlier(self, key: Hashable) -> bool:
        view = super().__getitem__(key)
        return view.ended < self._newest[view.cluster]
