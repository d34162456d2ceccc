"""The population of a scan: every object that it examined, the workload of each, and the labels that are kept.

Upstream: `metav1.OwnerReference` and `metav1.GetControllerOf` (apimachinery/pkg/apis/meta/v1) for controllers; the
recommended labels `app.kubernetes.io/*` of the Kubernetes documentation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple, Protocol, TypeAlias

from scanner.model.outcome import Check
from scanner.model.resource import Kind

Pairs: TypeAlias = tuple[tuple[str, str], ...]
"""Labels or annotations, sorted by key."""

GroupKind: TypeAlias = tuple[str, str]
"""Group and kind. The objects of a group are the same in each of its versions."""


@dataclass(frozen=True, slots=True, order=True)
class Workload:
    """The top of the `controller: true` owner references of an object, or the object itself.

    `namespace` is empty for a cluster-scoped workload. `derived` is True where an object on the way up was not read, so
    that the workload comes from a name or from a reference alone.
    """

    api_version: str
    kind: str
    namespace: str
    name: str
    derived: bool = False


@dataclass(frozen=True, slots=True, order=True)
class Controller:
    """The owner reference with `controller: true`. It names no namespace: see `posture.workloads`."""

    api_version: str
    kind: str
    name: str
    uid: str

    @property
    def group_kind(self) -> GroupKind:
        """Group and kind of the controller."""
        return self.api_version.rpartition("/")[0], self.kind


class PopulationMember(NamedTuple):
    """An object that a scan examined. None of its content is kept but labels and annotations, which are redacted.

    A tuple, because one is made for every object of a cluster: a frozen dataclass of so many fields takes twice as long.

    `uid` is empty for objects from files that have none. `template_hash` is the value of the label `pod-template-hash`
    where the name of the object or of its controller ends with that hash, else empty.
    """

    kind: Kind
    namespace: str
    name: str
    uid: str
    controller: Controller | None = None
    labels: Pairs = ()
    annotations: Pairs = ()
    template_hash: str = ""


@dataclass(frozen=True, slots=True)
class KeptMetadata:
    """The kept labels and annotations of one object."""

    labels: Pairs = ()
    annotations: Pairs = ()


NOTHING_KEPT: Final = KeptMetadata()


@dataclass(frozen=True, slots=True)
class KeptOfObject:
    """The kept labels and annotations of an object, of its workload and of its namespace; of those that the scan recorded.

    The workload of an object that is its own workload, and the namespace of a cluster-scoped object, have nothing of their own.
    """

    object: KeptMetadata = NOTHING_KEPT
    workload: KeptMetadata = NOTHING_KEPT
    namespace: KeptMetadata = NOTHING_KEPT


class RecordedObject(NamedTuple):
    """An object that a scan examined, as the store keeps it. `id` is the number of the object in the database."""

    id: int
    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str
    workload: Workload
    labels: Pairs = ()
    annotations: Pairs = ()


class LabelledObject(NamedTuple):
    """A recorded object with its kept labels, those of its workload and those of its namespace."""

    object: RecordedObject
    kept: KeptOfObject


class CountedObject(NamedTuple):
    """A recorded object with the numbers of the checks that evaluated it, and of those that matched it and did not."""

    object: RecordedObject
    evaluated: int
    not_evaluated: int


CheckKey: TypeAlias = tuple[str, str, str, str, str, Check]
"""A check of an invocation: language, policy, binding, namespace and name of the param, and the check."""


class MatchedCheck(NamedTuple):
    """A check of an invocation that matched an object. `reason` is the `SkipReason` of one that was not evaluated, else empty."""

    language: str
    policy: str
    binding: str
    param_namespace: str
    param_name: str
    check: Check
    reason: str

    @property
    def key(self) -> CheckKey:
        """The check of the invocation."""
        return self.language, self.policy, self.binding, self.param_namespace, self.param_name, self.check


class ExaminedObject(NamedTuple):
    """An object of a scan with every check that matched it. `since` is the end of the first scan with it, None if that was pruned."""

    object: RecordedObject
    kept: KeptOfObject
    since: datetime | None
    checks: tuple[MatchedCheck, ...]


class PlaceOfPage(NamedTuple):
    """The last object of a page: the place of its kind among the kinds of the scan, and its number in the database."""

    kind: int
    object: int


class ObjectPage(NamedTuple):
    """Some objects of a scan, the number of all, and the place after which the next page begins; None at the end."""

    objects: tuple[CountedObject, ...]
    total: int
    next: PlaceOfPage | None


class ObjectIds(Protocol):
    """A set of the ids of recorded objects."""

    count: int

    def __contains__(self, number: int, /) -> bool:
        """Return whether an object is in the set."""
        ...

    def bits(self) -> int:
        """The set as a number: bit n is set if the object with id n is in the set."""
        ...


@dataclass(frozen=True, slots=True)
class EvaluatedObjects:
    """The objects of a kind that a check of an invocation matched: those evaluated, and the others by `SkipReason`.

    The objects that pass the check are the evaluated ones without those of its findings.
    """

    language: str
    policy: str
    binding: str
    param_namespace: str
    param_name: str
    check: Check
    api_version: str
    kind: str
    evaluated: ObjectIds
    not_evaluated: Mapping[str, ObjectIds]


_LABEL_NAMES: Final = frozenset({"team", "owner", "app"})
_LABEL_PREFIXES: Final = ("app.kubernetes.io/",)


@dataclass(frozen=True, slots=True)
class KeptKeys:
    """The labels and annotations that are kept: exact keys, and prefixes of label keys. A Namespace keeps all its labels."""

    labels: frozenset[str] = _LABEL_NAMES
    prefixes: tuple[str, ...] = _LABEL_PREFIXES
    annotations: frozenset[str] = frozenset()

    def add_keys(self, labels: tuple[str, ...], annotations: tuple[str, ...]) -> KeptKeys:
        """The same keys and others: the values of `--keep-label` and `--keep-annotation`."""
        return KeptKeys(self.labels.union(labels), self.prefixes, self.annotations.union(annotations))

    def keeps_label(self, key: str) -> bool:
        """Return whether the label of a key is kept, of objects other than Namespaces."""
        return key in self.labels or key.startswith(self.prefixes)


DEFAULT_KEYS: Final = KeptKeys()
