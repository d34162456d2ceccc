"""The findings of a scan without their texts, as columns: what a list of findings is filtered and ordered by."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from scanner.model.policy import PolicyKey
from scanner.model.scans.cause import Cause


class CommonFacts(NamedTuple):
    """Facts that many findings share. `check` and `verdict` are ids of the store, `expression` is that of the check.

    `opened` is the beginning of the problem's latest episode in seconds since 1970. `status`, `cause` and `resolution` are as in
    `StoredFinding`, `episode` as in `ProblemFinding`.
    """

    check: int
    verdict: int
    policy: PolicyKey
    expression: str
    status: str
    episode: str
    opened: int
    outcome: str
    denies: bool
    actions: tuple[str, ...]
    excepted: bool
    cause: Cause | None
    resolution: str


class CommonPlace(NamedTuple):
    """The place of the objects of some findings. `workload_row` (0 for none) and `kept` are ids of the store.

    `kind` and `workload` (`namespace/name`) are those of the workload; `workload` is empty for objects that are their own workload.
    `object_kind` is that of the objects.
    """

    namespace: str
    owner: str
    kind: str
    workload: str
    workload_row: int
    kept: int
    object_kind: str


class CombinationNumbers(dict[tuple[Any, ...], int]):
    """Numbers combinations in the order in which they are first asked for."""

    def __missing__(self, key: tuple[Any, ...]) -> int:
        """Give a new combination the next number."""
        self[key] = number = len(self)
        return number


@dataclass(slots=True)
class FindingIndex:
    """The findings of a scan as columns, in no order. `rows` and `objects` are ids of the store.

    `problems` has the number of the problem (negative in scans of older versions), `ids` the first 48 bits of the fingerprint, `names`
    the name of the object. `facts` and `places` are places in `common_facts` and `common_places`. `unchecked` are the rows that the
    scan left unchecked.
    """

    rows: array[int] = field(default_factory=lambda: array("q"))
    problems: array[int] = field(default_factory=lambda: array("q"))
    ids: array[int] = field(default_factory=lambda: array("q"))
    objects: array[int] = field(default_factory=lambda: array("q"))
    names: list[str] = field(default_factory=list)
    facts: array[int] = field(default_factory=lambda: array("l"))
    places: array[int] = field(default_factory=lambda: array("l"))
    common_facts: Sequence[CommonFacts] = ()
    common_places: Sequence[CommonPlace] = ()
    unchecked: frozenset[int] = frozenset()
