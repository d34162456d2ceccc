"""The policies of one language in one scan: the lists that they need, their records, and their health."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import NamedTuple, Protocol, TypeAlias

from msgspec import Struct, field

from scanner.admission.auditability import AUDITABLE
from scanner.admission.dispatch import BoundPolicy
from scanner.model.json import JsonObject
from scanner.model.outcome import Gap
from scanner.model.policy import Binding, Operation, Policy
from scanner.model.reading import Reading
from scanner.model.release import NEWEST, Minor, Release
from scanner.model.resource import Kind, Resource, UserInfo
from scanner.model.rule import RuleType
from scanner.model.scans.health import Health
from scanner.model.scans.out_of_scope import OutOfScope
from scanner.model.selector import Selector
from scanner.mutate.schema import Schemas

# The manifests of a policy language: a policy, a binding, or an object that its policies rely on.


class Supporting(Struct, frozen=True):
    """An object that policies of one language or of a family rely on, such as an exception. `what` names its kind in sentences."""

    what: str
    name: str
    body: JsonObject


class ReadDocument(Struct, frozen=True):
    """A manifest that was read."""

    content: Policy | Binding | Supporting


class PolicyDocuments(Struct, frozen=True):
    """The policies of one language that a scan selected, in force or not, their bindings, and the objects that they rely on."""

    policies: tuple[Policy, ...] = ()
    bindings: tuple[Binding, ...] = ()
    supporting: tuple[Supporting, ...] = ()


Places: TypeAlias = Mapping[Kind, tuple[str, ...]]
"""Kinds to list, each with the namespaces to list it in; the empty string means all namespaces."""


class Lists(Protocol):
    """A source of listed objects."""

    def list_all(self, kind: Kind, namespaces: Iterable[str] = ("",)) -> Iterator[Resource]:
        """Every object of a kind in some namespaces; the empty name stands for all namespaces.

        Raises ListFailed, and ValueError for a page that cannot be read.
        """
        ...


class BindingContext(Struct, frozen=True):
    """The context for binding policies, besides the policies themselves.

    `rules` is the Kubernetes release that evaluates, `operations` are those of the simulated requests, `user` makes them.
    `schemas` has the known schemas by which objects of a kind are merged. `params` are the objects among the policy files.
    Without `lists` nothing can be listed. `namespaces` are those of the cluster, from which policies may have been derived. `files`
    tells that files stand for the cluster.
    """

    now: datetime
    rules: Minor = NEWEST
    operations: tuple[Operation, ...] = AUDITABLE
    schemas: Schemas | None = None
    served: tuple[Kind, ...] = ()
    user: UserInfo = field(default_factory=UserInfo)
    params: tuple[Resource, ...] = ()
    lists: Lists | None = None
    namespaces: tuple[JsonObject, ...] = ()
    files: bool = False


class ListRight(NamedTuple):
    """A permission to list a resource in a namespace, and its purpose.

    A scan without an `optional` permission is still complete; `without` is the difference.
    """

    group: str
    plural: str
    namespace: str
    why: str
    optional: bool = False
    without: str = ""


class RuleDocument(NamedTuple):
    """The manifest of an object that decides together with policies, and its name within its type."""

    type: RuleType
    name: str
    body: JsonObject


class BoundLanguage(ABC):
    """The policies of one language in force.

    The defaults are correct for policies that need no binding in a manifest and read only the object.

    With `own_health`, `health` returns every problem that is known before the first object is evaluated; otherwise it adds to the
    health of policies of every language: expressions that do not compile, missing params, repeated bindings. `gaps` and `outside`
    are the unknown parts of the language's own configuration. `release` is that of the controller whose rules decide besides those of
    the Kubernetes release, or None.
    """

    own_health: bool = False
    gaps: tuple[Gap, ...] = ()
    outside: tuple[OutOfScope, ...] = ()
    release: Release | None = None

    @property
    @abstractmethod
    def bound(self) -> tuple[BoundPolicy, ...]:
        """The policies in force, compiled on first use."""

    @property
    def bindings(self) -> tuple[Binding, ...]:
        """The bindings to record, including those that put no policy into force."""
        return tuple(binding for bound_policy in self.bound for binding in bound_policy.bindings)

    def list_recorded(self) -> Iterator[tuple[Policy, Reading]]:
        """Pairs of a policy to record, in force or not, and the access paths of its expressions."""
        yield from ((bound_policy.policy, bound_policy.reading) for bound_policy in self.bound)

    def list_announced(self) -> Iterator[tuple[Policy, tuple[Binding, ...]]]:
        """The policies in force with their bindings, known before they are compiled if possible: they decide what will be listed."""
        yield from ((bound_policy.policy, bound_policy.bindings) for bound_policy in self.bound)

    def reads(self) -> Iterator[tuple[BoundPolicy, Places]]:
        """The policies whose expressions read further cluster objects, each with the lists to make."""
        yield from ()

    def read_groups(self) -> Iterator[str]:
        """The API groups of the cluster objects that expressions read, served or not; `*` for those that are not foreseeable."""
        yield from ()

    def take(self, kind: Kind, namespace: str, resources: Iterable[Resource]) -> None:
        """Take the objects of a namespace, or of all (the empty name), that `reads` named."""
        raise NotImplementedError

    def rules(self) -> Iterator[RuleDocument]:
        """The objects besides policies, bindings and params that decide together with the policies."""
        yield from ()

    def namespace_labels(self) -> Iterator[str]:
        """The keys of the labels of namespaces that decide whether a policy applies."""
        for bound_policy in self.bound:
            matches = (bound_policy.policy.match, *(binding.match for binding in bound_policy.bindings))
            selectors = (match.namespace_selector for match in matches if match is not None)
            yield from (requirement.key for selector in selectors for requirement in selector.requirements)
            yield from bound_policy.covered.keys if bound_policy.covered else ()

    def request_selectors(self) -> Iterator[Selector]:
        """The selectors, besides those of policies and bindings, that choose the namespaces whose requests are evaluated."""
        yield from ()

    def other_paths(self, bound_policy: BoundPolicy) -> Iterator[tuple[str, ...]]:
        """The access paths of expressions that decide about a policy and are not in its manifest."""
        del bound_policy
        yield from ()

    def rights(self) -> Iterator[ListRight]:
        """The permissions for the lists that binding the policies needed."""
        yield from ()

    def health(self, evaluable: tuple[BoundPolicy, ...], served: tuple[Kind, ...]) -> Iterator[Health]:
        """The problems before the first object is evaluated; `evaluable` are the policies in force that can be evaluated."""
        del evaluable, served
        yield from ()

    def adapt_health(self, health: Iterable[Health]) -> Iterator[Health]:
        """The health that the evaluation found for policies of every language, adapted to the policies of this language."""
        yield from health
