"""The kinds of the documents that Kyverno's policies consist of: policies, exceptions and global context entries.

Source of truth: the CustomResourceDefinitions of Kyverno 1.19. All versions of a kind have one schema.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from scanner.model.resource import Kind
from scanner.policies.kyverno.schema import Schema

GROUP: Final = "policies.kyverno.io"
VERSIONS: Final = ("v1", "v1beta1", "v1alpha1")
EXCEPTION: Final = "PolicyException"
ENTRIES_GROUP: Final = "kyverno.io"
ENTRY: Final = "GlobalContextEntry"


class KyvernoKind(Struct, frozen=True):
    """One kind of Kyverno's policies, which is cluster-wide or in a namespace: its names, its versions and its schema.

    `served` has both kinds in each of their versions, the preferred version first. `schema` is that of the spec, and
    `report_source` the source that Kyverno's own reports state for both.
    """

    cluster_wide: str
    namespaced: str
    served: tuple[Kind, ...]
    schema: Schema
    report_source: str

    @property
    def names(self) -> tuple[str, ...]:
        """Both kinds."""
        return self.cluster_wide, self.namespaced


def versions_of(
    group: str, versions: tuple[str, ...], kind: str, plural: str, *, namespaced: bool = False
) -> tuple[Kind, ...]:
    """A kind in each of its versions."""
    return tuple(Kind(group, version, kind, plural, namespaced) for version in versions)


SHARED_KINDS: Final = (
    *versions_of(GROUP, VERSIONS, EXCEPTION, "policyexceptions", namespaced=True),
    *versions_of(ENTRIES_GROUP, ("v2", "v2beta1", "v2alpha1"), ENTRY, "globalcontextentries"),
)
"""The kinds on which policies of every kind rely, in each of their versions, the preferred version first."""
