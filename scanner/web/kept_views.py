"""The views of scans in memory. The newest scan of a cluster is read most, so a full memory drops the views of earlier ones first."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from datetime import datetime
from typing import Final, Generic, Protocol, TypeVar

MOST_VIEWS: Final = 64
"""The views that are kept: those of the newest scans of a fleet, and some of other dates."""
MOST_PROBLEMS: Final = 1_000_000
"""The problems of all kept views together: a bound of their memory."""


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


class KeptViews(Generic[ViewT]):
    """The views that were read last, by key. Its methods may not be called by several threads at once."""

    def __init__(self, most_views: int = MOST_VIEWS, most_problems: int = MOST_PROBLEMS) -> None:
        """Keep at most so many views, and views of so many problems; always one."""
        self._most_views: Final = most_views
        self._most_problems: Final = most_problems
        self._views: Final[OrderedDict[Hashable, ViewT]] = OrderedDict()

    def get(self, key: Hashable) -> ViewT | None:
        """The view with a key, if it is kept."""
        view = self._views.get(key)
        if view is not None:
            self._views.move_to_end(key)
        return view

    def keep(self, key: Hashable, view: ViewT) -> None:
        """Keep a view, and drop others while there are too many."""
        self._views[key] = view
        self._views.move_to_end(key)
        while len(self._views) > 1 and self._is_full():
            del self._views[self._least_needed()]

    def clear(self) -> None:
        """Drop all views."""
        self._views.clear()

    def _is_full(self) -> bool:
        problems = sum(view.size for view in self._views.values())
        return len(self._views) > self._most_views or problems > self._most_problems

    def _least_needed(self) -> Hashable:
        """The view of an earlier scan of its cluster that was not read for the longest time; else any such view. Never the last one."""
        newest: dict[Hashable, datetime] = {}
        for view in self._views.values():
            newest[view.cluster] = max(view.ended, newest.get(view.cluster, view.ended))
        *others, _ = self._views
        earlier = (key for key in others if self._views[key].ended < newest[self._views[key].cluster])
        return next(earlier, others[0])
