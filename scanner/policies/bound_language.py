"""The policies of one language, bound for one scan: what they have to list, what is recorded of them, and their health."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple, Protocol, TypeAlias

from scanner.admission.auditability import AUDITABLE
from scanner.admission.dispatch import BoundPolicy
from scanner.model.outcome import Gap
from scanner.model.policy import Binding, Operation, Policy
from scanner.model.reading import Reading
from scanner.model.release import NEWEST, Minor
from scanner.model.resource import Kind, Resource, UserInfo
from scanner.model.scan import Health, OutOfScope
from scanner.mutate.schema import Schemas

Places: TypeAlias = Mapping[Kind, tuple[str, ...]]
"""Kinds to list, each with the namespaces to list it in; the empty one stands for all of them."""


class Lists(Protocol):
    """Where the objects of a kind are listed."""

    def everything(self, kind: Kind, namespaces: Iterable[str] = ("",)) -> Iterator[Resource]:
        """Every object of a kind in some namespaces. Raises ListFailed, and ValueError for a page that cannot be read."""
        ...


@dataclass(frozen=True, slots=True)
class BindingContext:
    """What binding policies depends on besides the policies.

    `rules` is the Kubernetes release that evaluates, `operations` are those of the simulated requests, `user` makes them.
    `schemas` tells how objects of a kind are merged, where that is known. `params` are the objects among the policy files. Without
    `lists` nothing can be listed.
    """

    now: datetime
    rules: Minor = NEWEST
    operations: tuple[Operation, ...] = AUDITABLE
    schemas: Schemas | None = None
    served: tuple[Kind, ...] = ()
    user: UserInfo = field(default_factory=UserInfo)
    params: tuple[Resource, ...] = ()
    lists: Lists | None = None


class ListRight(NamedTuple):
    """A right to list a resource in a namespace, and what needs it."""

    group: str
    plural: str
    namespace: str
    why: str


class BoundLanguage(ABC):
    """The policies of one language in force.

    What is not overridden is right for policies that need no binding in a manifest and read nothing but the object.

    With `own_health`, `health` says all that there is to say before objects are seen; otherwise it adds to what is said of
    policies of every language: expressions that do not compile, params that are missing, bindings that repeat others.
    `gaps` and `outside` are what a scan does not know of the language's own configuration.
    """

    own_health: bool = False
    gaps: tuple[Gap, ...] = ()
    outside: tuple[OutOfScope, ...] = ()

    @property
    @abstractmethod
    def bound(self) -> tuple[BoundPolicy, ...]:
        """The policies in force, compiled when first asked for."""

    @property
    def bindings(self) -> tuple[Binding, ...]:
        """The bindings to record, those that put nothing into force included."""
        return tuple(binding for entry in self.bound for binding in entry.bindings)

    def recorded(self) -> Iterator[tuple[Policy, Reading]]:
        """The policies to record, in force or not, and what their expressions read."""
        yield from ((entry.policy, entry.reading) for entry in self.bound)

    def announced(self) -> Iterator[Policy]:
        """The policies in force, as far as they are known before they are compiled: they tell what will be listed."""
        yield from (entry.policy for entry in self.bound)

    def reads(self) -> Iterator[tuple[BoundPolicy, Places]]:
        """What the expressions of each policy read of the cluster, besides the object and the params."""
        yield from ()

    def take(self, kind: Kind, namespace: str, resources: Iterable[Resource]) -> None:
        """Take the objects of a namespace, or of all, that `reads` named. Raises like `Lists`."""
        raise NotImplementedError

    def rights(self) -> Iterator[ListRight]:
        """What binding the policies had to list."""
        yield from ()

    def health(self, evaluable: tuple[BoundPolicy, ...], served: tuple[Kind, ...]) -> Iterator[Health]:
        """What can be said before any object is seen; `evaluable` are the policies in force that can be evaluated."""
        del evaluable, served
        yield from ()

    def observed(self, health: Iterable[Health]) -> Iterator[Health]:
        """What the objects told of policies of every language, as it holds for those of this one."""
        yield from health
