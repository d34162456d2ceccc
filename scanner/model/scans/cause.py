"""The causes for which a finding or a problem appeared, changed or was resolved."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum


class CauseKind(StrEnum):
    """The parts of a decision, in the order in which they explain a change.

    `firstScan`: the cluster has no earlier scan. `coverage`: the earlier scan did not evaluate it. `objectNotInEarlierScan`: files
    have an object that the files of the earlier scan did not have, which tells nothing about its creation.
    """

    POLICY = "policy"
    BINDING = "binding"
    PARAM = "param"
    EXCEPTION = "exception"
    NAMESPACE = "namespace"
    WAIVER = "waiver"
    FIRST_SCAN = "firstScan"
    COVERAGE = "coverage"
    SERVER = "server"
    KYVERNO = "kyverno"
    ASSAY = "assay"
    OPTIONS = "options"
    OBJECT_NOT_IN_EARLIER_SCAN = "objectNotInEarlierScan"
    OBJECT_CREATED = "objectCreated"
    OBJECT_DELETED = "objectDeleted"
    OBJECT_CHANGED = "objectChanged"


@dataclass(frozen=True, slots=True)
class Cause:
    """The part that changed; of several, the first in the order of `CauseKind`. `also` are the others, in their order."""

    kind: CauseKind
    also: tuple[CauseKind, ...] = ()

    @property
    def kinds(self) -> tuple[CauseKind, ...]:
        """All parts that changed, in their order."""
        return self.kind, *self.also


def cause_of(kinds: Collection[CauseKind]) -> Cause:
    """The cause for some changes, of which there must be one."""
    first, *others = (kind for kind in CauseKind if kind in kinds)
    return Cause(first, tuple(others))
