"""Why findings were resolved: see `Resolution`."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import partial

from scanner.posture.causes import Coordinates
from scanner.store.row_ids import RowIdSet


class Resolution(StrEnum):
    """The reasons. Only `fixed` is remediation: nothing that decides about the finding changed but its workload.

    A `moved` finding goes on as one of another problem, because its object has another workload.
    """

    FIXED = "fixed"
    MOVED = "moved"
    NO_OBJECTS = "noObjects"
    OBJECT_GONE = "objectGone"
    RULES_CHANGED = "rulesChanged"
    UNBOUND = "unbound"
    NOT_MATCHED = "notMatched"


@dataclass(frozen=True, slots=True)
class WorkloadState:
    """The workload of a finding whose object is gone, as the scan found it.

    `objects` are its examined objects, by id; `has_same_kind` tells that one of them has the kind of the gone object. The workload
    `exists` if its own object does, see `workload_states`. `still_broken` tells that another finding of the problem is open.
    """

    objects: tuple[int, ...] = ()
    has_same_kind: bool = False
    exists: bool = False
    still_broken: bool = False

    @property
    def without_objects(self) -> Resolution:
        """The reason if no other object of the workload was there to evaluate, or if the problem goes on in another one."""
        return Resolution.NO_OBJECTS if self.exists and not self.still_broken else Resolution.OBJECT_GONE


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

    def reason(
        self, objects: Collection[int], workload: WorkloadState | None, evaluated: Callable[[], RowIdSet]
    ) -> Resolution | None:
        """The reason of a finding whose object exists; with the state of its `workload`, of one whose object is gone.

        `objects` are the object, or those of its workload, and `evaluated` those that the scan evaluated by the check. None if
        the scan evaluated none of the objects that replaced a gone one: it does not show whether the problem is fixed.
        """
        if not self.bound:
            return Resolution.UNBOUND
        if workload is not None and (workload.still_broken or not objects):
            return workload.without_objects
        if not self.invoked:
            return Resolution.RULES_CHANGED
        matched = self.matched()
        if not any(number in matched for number in objects):
            if workload is None or workload.has_same_kind:
                return Resolution.NOT_MATCHED
            return workload.without_objects
        if self.changed or any(number in self.failed() for number in objects):
            return Resolution.RULES_CHANGED
        if workload is None or any(number in evaluated() for number in objects):
            return Resolution.FIXED
        return None


class MissingFindings:
    """Open findings that a scan did not find again: sixteen bytes for each, because there can be many."""

    def __init__(self) -> None:
        """Begin with none."""
        self.ids = array("I")
        self._objects = array("I")
        self._checks = array("I")
        self._places = array("I")
        self._coordinates: dict[Coordinates, int] = {}

    def add(self, number: int, object_id: int, check: int, coordinates: Coordinates) -> None:
        """Add a finding, by the ids of its row, of its object and of its check."""
        self.ids.append(number)
        self._objects.append(object_id)
        self._checks.append(check)
        self._places.append(self._coordinates.setdefault(coordinates, len(self._coordinates)))

    def those(self, chosen: Collection[int], wanted: Callable[[Coordinates], bool]) -> Iterator[int]:
        """Those of some rows whose coordinates are wanted."""
        rows = RowIdSet(chosen)
        places = [wanted(coordinates) for coordinates in self._coordinates]
        return (
            number for number, place in zip(self.ids, self._places, strict=True) if places[place] and number in rows
        )

    def without_object(self, chosen: Collection[int], is_there: Callable[[int], bool]) -> Iterator[int]:
        """Those of some rows whose object this scan did not examine."""
        rows = RowIdSet(chosen)
        return (
            number
            for number, object_id in zip(self.ids, self._objects, strict=True)
            if number in rows and not is_there(object_id)
        )

    def by_reason(
        self,
        chosen: Collection[int],
        workloads: Mapping[int, WorkloadState],
        decisive: Callable[[Coordinates], Decisive],
        evaluated: Callable[[int], RowIdSet],
    ) -> Mapping[tuple[Resolution, int] | None, list[int]]:
        """Some rows by the reason of their resolution and the id of its cause; those of None are not resolved.

        `workloads` has the state of the workload of each row whose object is gone, `evaluated` returns the objects that this
        scan evaluated by a check.
        """
        rows = RowIdSet(chosen)
        of_place = [decisive(coordinates) for coordinates in self._coordinates]
        groups: defaultdict[tuple[Resolution, int] | None, list[int]] = defaultdict(list)
        columns = zip(self.ids, self._objects, self._checks, self._places, strict=True)
        for number, object_id, check, place in columns:
            if number not in rows:
                continue
            workload = workloads.get(number)
            objects = (object_id,) if workload is None else workload.objects
            reason = of_place[place].reason(objects, workload, partial(evaluated, check))
            groups[None if reason is None else (reason, of_place[place].cause(reason))].append(number)
        return groups
