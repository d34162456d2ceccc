"""Why findings were resolved: see `Resolution`."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from scanner.posture.causes import Coordinates
from scanner.store.row_ids import RowIdSet


class Resolution(StrEnum):
    """The reasons. Only `fixed` is remediation: nothing that decides about the finding changed but its object."""

    FIXED = "fixed"
    OBJECT_GONE = "objectGone"
    RULES_CHANGED = "rulesChanged"
    UNBOUND = "unbound"
    NOT_MATCHED = "notMatched"


@dataclass(frozen=True, slots=True)
class Decisive:
    """What decides about the findings of some coordinates besides their objects.

    `bound` tells whether policy and binding exist, `invoked` whether there can be an invocation of the param, or of none; `matched`
    are the objects that the policy still matches; `changed` tells whether the rules changed in a part that may decide; `failed`
    are the objects for which the whole invocation has an error, and `cause` is the id of the cause of a resolution.
    """

    bound: bool
    invoked: bool
    changed: bool
    failed: Callable[[], RowIdSet]
    matched: Callable[[], RowIdSet]
    cause: Callable[[Resolution], int]

    def reason(self, object_id: int, *, is_there: bool) -> Resolution:
        """The reason for an object, which exists or not."""
        if not self.bound:
            return Resolution.UNBOUND
        if not is_there:
            return Resolution.OBJECT_GONE
        if not self.invoked:
            return Resolution.RULES_CHANGED
        if object_id not in self.matched():
            return Resolution.NOT_MATCHED
        return Resolution.RULES_CHANGED if self.changed or object_id in self.failed() else Resolution.FIXED


class MissingFindings:
    """Open findings that a scan did not find again: twelve bytes for each, because there can be many."""

    def __init__(self) -> None:
        """Begin with none."""
        self.ids = array("I")
        self._objects = array("I")
        self._places = array("I")
        self._coordinates: dict[Coordinates, int] = {}

    def add(self, number: int, object_id: int, coordinates: Coordinates) -> None:
        """Add a finding, by the ids of its row and of its object."""
        self.ids.append(number)
        self._objects.append(object_id)
        self._places.append(self._coordinates.setdefault(coordinates, len(self._coordinates)))

    def those(self, chosen: Collection[int], wanted: Callable[[Coordinates], bool]) -> Iterator[int]:
        """Those of some rows whose coordinates are wanted."""
        rows = RowIdSet(chosen)
        places = [wanted(coordinates) for coordinates in self._coordinates]
        return (
            number for number, place in zip(self.ids, self._places, strict=True) if places[place] and number in rows
        )

    def by_reason(
        self, chosen: Collection[int], is_there: Callable[[int], bool], decisive: Callable[[Coordinates], Decisive]
    ) -> Mapping[tuple[Resolution, int], list[int]]:
        """Some rows by the reason of their resolution and the id of its cause.

        `is_there` returns whether this scan examined an object.
        """
        rows = RowIdSet(chosen)
        of_place = [decisive(coordinates) for coordinates in self._coordinates]
        groups: defaultdict[tuple[Resolution, int], list[int]] = defaultdict(list)
        for number, object_id, place in zip(self.ids, self._objects, self._places, strict=True):
            if number in rows:
                reason = of_place[place].reason(object_id, is_there=is_there(object_id))
                groups[reason, of_place[place].cause(reason)].append(number)
        return groups
