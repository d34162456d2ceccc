"""The versions of policy kinds that a cluster serves, for manifests that another release would store.

Source of truth: the life cycles in `k8s.io/api/admissionregistration` (`zz_generated.prerelease-lifecycle.go`) up to 1.37, and
`DefaultAPIResourceConfigSource` of kube-apiserver, which enables no alpha and no beta version of the group.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from msgspec import Struct

from scanner.model.json import JsonObject, as_text
from scanner.model.release import Minor, format_minor
from scanner.model.resource import Kind
from scanner.policies.manifest import GROUP, VERSIONS

_NEVER: Final[Minor] = (2, 0)
_VALIDATING: Final[Mapping[str, tuple[Minor, Minor]]] = {
    "v1": ((1, 30), _NEVER),
    "v1beta1": ((1, 28), (1, 34)),
    "v1alpha1": ((1, 26), (1, 32)),
}
_MUTATING: Final[Mapping[str, tuple[Minor, Minor]]] = {
    "v1": ((1, 36), _NEVER),
    "v1beta1": ((1, 34), (1, 40)),
    "v1alpha1": ((1, 32), (1, 38)),
}
_RELEASES: Final = {
    "ValidatingAdmissionPolicy": _VALIDATING,
    "ValidatingAdmissionPolicyBinding": _VALIDATING,
    "MutatingAdmissionPolicy": _MUTATING,
    "MutatingAdmissionPolicyBinding": _MUTATING,
}
"""The release that introduced each version of a kind, and the release that removed it."""
_STABLE: Final = "v1"
_EVALUATED: Final = "it is evaluated all the same"


class ServedVersions(Struct, frozen=True):
    """The versions that a cluster serves, or that its release serves if it consists of files (`kinds` is None).

    `unknown` has the groups and group-versions whose kinds are not known.
    """

    rules: Minor
    kinds: tuple[Kind, ...] | None = None
    unknown: frozenset[str] = frozenset()

    def make_note(self, document: JsonObject) -> str:
        """The note about a manifest whose version is not served, or an empty string."""
        api_version, kind = as_text(document.get("apiVersion")), as_text(document.get("kind"))
        group, _, version = api_version.rpartition("/")
        if self.kinds is None:
            return self._note_for_release(kind, version) if group == GROUP and kind in _RELEASES else ""
        if self.unknown & {"/apis", group, api_version}:
            return ""
        served = [each.version for each in self.kinds if (each.group, each.kind) == (group, kind)]
        if version in served:
            return ""
        return _write_sentence(f"this cluster of Kubernetes {format_minor(self.rules)} does not serve", version, served)

    def _note_for_release(self, kind: str, version: str) -> str:
        release = f"Kubernetes {format_minor(self.rules)}"
        served = tuple(self._list_versions(kind))
        if version not in served:
            return _write_sentence(f"{release} does not serve", version, [each for each in served if each == _STABLE])
        if version != _STABLE:
            return f"{release} serves {version} of this kind only if --runtime-config enables it; {_EVALUATED}"
        return ""

    def _list_versions(self, kind: str) -> Iterator[str]:
        for version in VERSIONS:
            since, until = _RELEASES[kind][version]
            if since <= self.rules < until:
                yield version


def _write_sentence(refusal: str, version: str, served: Iterable[str]) -> str:
    others = ", ".join(dict.fromkeys(served))
    return (
        f"{refusal} {version} of this kind, but {others}; {_EVALUATED}"
        if others
        else (f"{refusal} {version} of this kind; {_EVALUATED}")
    )
