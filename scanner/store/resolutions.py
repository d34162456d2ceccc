"""Why findings were resolved: their object is gone, or no longer matched, or their rules changed; else they were fixed."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum

from sqlalchemy import Connection

from scanner.posture.causes import Circumstances, Coordinates, changes
from scanner.store.circumstances import circumstances_at
from scanner.store.row_ids import RowIdSet


class Resolution(StrEnum):
    """The reasons. Only `fixed` is remediation: nothing that decides about the finding changed but its object."""

    FIXED = "fixed"
    OBJECT_GONE = "objectGone"
    RULES_CHANGED = "rulesChanged"
    NOT_MATCHED = "notMatched"


class ResolvedFindings:
    """The findings that a scan resolves: twelve bytes for each, because there can be many."""

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

    def by_resolution(
        self,
        numbers: Sequence[int],
        is_there: Callable[[int], bool],
        matched: Callable[[Coordinates], RowIdSet],
        changed: Callable[[Coordinates], bool],
    ) -> Mapping[Resolution, list[int]]:
        """Some of the findings by the reason of their resolution.

        `is_there` returns whether this scan examined an object, `matched` the objects that the policy of a finding still
        matches, and `changed` whether anything else that decides changed since the findings were last seen.
        """
        chosen = RowIdSet(numbers)
        kinds = [(matched(coordinates), changed(coordinates)) for coordinates in self._coordinates]
        groups: defaultdict[Resolution, list[int]] = defaultdict(list)
        for number, object_id, place in zip(self.ids, self._objects, self._places, strict=True):
            if number in chosen:
                groups[_reason(object_id, is_there(object_id), *kinds[place])].append(number)
        return groups


def _reason(object_id: int, is_there: bool, matched: RowIdSet, changed: bool) -> Resolution:  # noqa: FBT001 - facts
    if not is_there:
        return Resolution.OBJECT_GONE
    if object_id not in matched:
        return Resolution.NOT_MATCHED
    return Resolution.RULES_CHANGED if changed else Resolution.FIXED


def changed_since(
    connection: Connection, cluster: int, revision: int, now: Circumstances
) -> Callable[[Coordinates], bool]:
    """Return whether anything that decides about a finding, besides its object, changed since the scan of a revision."""
    before = circumstances_at(connection, cluster, revision)
    return lambda finding: bool(changes(before, now, finding))
