"""The kinds of the documents that Kyverno's policies consist of: policies, exceptions and global context entries.

Source of truth: the CustomResourceDefinitions of Kyverno 1.18. All versions of a kind have one schema.
"""

from __future__ import annotations

from typing import Final

from scanner.model.resource import Kind

GROUP: Final = "policies.kyverno.io"
VERSIONS: Final = ("v1", "v1beta1", "v1alpha1")
CLUSTER_WIDE: Final = "ValidatingPolicy"
NAMESPACED: Final = "NamespacedValidatingPolicy"
EXCEPTION: Final = "PolicyException"
ENTRIES_GROUP: Final = "kyverno.io"
ENTRY: Final = "GlobalContextEntry"


def _kinds(
    group: str, versions: tuple[str, ...], kind: str, plural: str, *, namespaced: bool = False
) -> tuple[Kind, ...]:
    return tuple(Kind(group, version, kind, plural, namespaced) for version in versions)


CUSTOM_KINDS: Final = (
    *_kinds(GROUP, VERSIONS, CLUSTER_WIDE, "validatingpolicies"),
    *_kinds(GROUP, VERSIONS[:2], NAMESPACED, "namespacedvalidatingpolicies", namespaced=True),
    *_kinds(GROUP, VERSIONS, EXCEPTION, "policyexceptions", namespaced=True),
    *_kinds(ENTRIES_GROUP, ("v2", "v2beta1", "v2alpha1"), ENTRY, "globalcontextentries"),
)
"""Every kind in each of its versions, the preferred version first."""
