"""The numbers of a scan's findings, in the groups from which reports add them up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol, TypeAlias

from scanner.model.policy import PolicyKey
from scanner.model.population import KeptOfObject


class Bucket(NamedTuple):
    """The key under which findings are counted. `expression` is that of the check, `status` that of `StoredFinding`."""

    policy: PolicyKey
    expression: str
    namespace: str
    status: str
    denies: bool
    drift: bool


Census: TypeAlias = Mapping[Bucket, int]


class OwnedCensus(NamedTuple):
    """The numbers of the findings about the objects of one owner, empty for none. The namespaces are added up, and empty too."""

    owner: str
    census: Census


class OwnerOf(Protocol):
    """Names the owner of an object."""

    @property
    def names(self) -> frozenset[str]:
        """The names of the labels and annotations that can name an owner."""
        ...

    def __call__(self, kept: KeptOfObject | None, /) -> str:
        """The owner of an object, given its kept labels, which are None if they are not known; empty for none."""
        ...
