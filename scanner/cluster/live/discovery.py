"""Reads the served kinds from the documents of the discovery endpoints.

Source of truth: aggregated discovery (`apidiscovery.k8s.io` v2 and v2beta1) and the older documents of `/api` and
`/apis`; a group-version that its server marks stale counts as unavailable, as in client-go, and so does one without resources
(`discovery/cached/memory`: "Got empty response"). A kind that is missing here is not listed, so an incomplete document is
a gap.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from scanner.model.json import Json, JsonObject, as_list, as_text, dig, texts
from scanner.model.outcome import Gap, GapKind
from scanner.model.release import Minor, minor_of
from scanner.model.resource import Kind
from scanner.scan.edges import Discovery

_STALE: Final = (
    "the server of this API group does not respond, so the kinds it serves are unknown: "
    "see `kubectl get apiservices`, and scan again when it responds"
)
_UNKNOWN: Final = "so the kinds it serves are unknown. Scan again, and see `kubectl api-resources`"
_NO_VERSIONS: Final = f"the discovery document names the group without any version, {_UNKNOWN}"
_EMPTY: Final = f"the discovery document names no resource of it, {_UNKNOWN}"
_BROKEN: Final = (
    "the discovery document describes some of its resources without their name, kind, scope or verbs, so they are unknown. "
    "Scan again, and see `kubectl api-resources`"
)
_NO_SEGMENT: Final = (
    "the discovery document names it, or some of its resources, with characters that no path of the API has, so they are unknown. "
    "Ask the owner of the API"
)
_SEGMENT: Final = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._~-]+")
"""A name that stands for itself in a URL: `IsValidPathSegmentName` of apimachinery allows characters that would have to be escaped."""
_ADMISSION: Final = "admissionregistration.k8s.io"
_NO_ADMISSION: Final = (
    "the server serves no {}, so the admission policies of the cluster are unknown. "
    "Check that the URL is that of a Kubernetes API server, and scan again"
)
_POLICIES: Final = ("validatingadmissionpolicies", "validatingadmissionpolicybindings")
_POLICIES_SINCE: Final[Minor] = (1, 30)
_LEGACY: Final = {"/api": ("APIVersions", "versions"), "/apis": ("APIGroupList", "groups")}
# Metrics that adapters compute for each request: they are not stored, and often there are none.
_MAY_BE_EMPTY: Final = frozenset({"custom.metrics.k8s.io", "external.metrics.k8s.io"})


class _ResourceEntry(NamedTuple):
    """A resource in either form of discovery; `namespaced` is None if the document does not have it."""

    plural: str
    kind: str
    namespaced: bool | None
    verbs: tuple[str, ...]


def is_aggregated(answer: JsonObject) -> bool:
    """Return whether a document is in the aggregated form."""
    return as_text(answer.get("kind")) == "APIGroupDiscoveryList"


def find_root_gaps(path: str, answer: JsonObject) -> tuple[Gap, ...]:
    """The gap of a document that cannot be that of `/api` or `/apis`, because it names no group."""
    kind, field = ("APIGroupDiscoveryList", "items") if is_aggregated(answer) else _LEGACY[path]
    if as_text(answer.get("kind")) == kind and as_list(answer.get(field)):
        return ()
    return (make_gap(path, f"the response is no discovery document with API groups, {_UNKNOWN}"),)


def report_missing_policies(kinds: Iterable[Kind], gaps: Iterable[Gap], server_version: str) -> tuple[Gap, ...]:
    """The gap of a server that serves no admission policies, unless another gap has the reason.

    Every server has webhook configurations in that group, and since 1.30 the policies as well.
    """
    served = {kind.plural for kind in kinds if kind.group == _ADMISSION}
    if any(gap.where.partition("/")[0] == _ADMISSION for gap in gaps):
        return ()
    if not served:
        return (make_gap(_ADMISSION, _NO_ADMISSION.format(_ADMISSION)),)
    if (minor_of(server_version) or (0, 0)) < _POLICIES_SINCE:
        return ()
    missing = [f"{plural}.{_ADMISSION}" for plural in _POLICIES if plural not in served]
    return (make_gap(_ADMISSION, _NO_ADMISSION.format(" and no ".join(missing))),) if missing else ()


def read_aggregated_kinds(answer: JsonObject) -> Discovery:
    """The listable kinds of an aggregated document, in its order: a group's preferred version first."""
    groups = as_list(answer.get("items"))
    return _join(discovery for group in groups for discovery in _read_aggregated_group(group, alone=len(groups) == 1))


def list_legacy_group_versions(core: JsonObject, groups: JsonObject) -> tuple[tuple[str, ...], tuple[Gap, ...]]:
    """The group-versions in the documents of `/api` and `/apis`, such as `apps/v1`, and a gap for each group without any.

    A group's preferred version comes first.
    """
    names = list(texts(core.get("versions")))
    gaps: list[Gap] = []
    gaps += [make_gap(name, _NO_SEGMENT) for name in names if name and not _is_group_version(name)]
    for group in as_list(groups.get("groups")):
        preferred = as_text(dig(group, "preferredVersion", "groupVersion"))
        served = [as_text(dig(version, "groupVersion")) for version in as_list(dig(group, "versions"))]
        if not all(served) or not served:
            gaps.append(make_gap(as_text(dig(group, "name")) or "/apis", _NO_VERSIONS))
        gaps += [make_gap(name, _NO_SEGMENT) for name in served if name and not _is_group_version(name)]
        names.extend((*(name for name in served if name == preferred), *(name for name in served if name != preferred)))
    return tuple(filter(_is_group_version, names)), tuple(gaps)


def read_legacy_kinds(group_version: str, answer: JsonObject) -> Discovery:
    """The listable kinds of one APIResourceList."""
    group, _, version = group_version.rpartition("/")
    if as_text(answer.get("groupVersion")) not in ("", group_version):
        return Discovery((), (make_gap(group_version, f"the response is for another group version, {_UNKNOWN}"),))
    items = [item for item in as_list(answer.get("resources")) if "/" not in as_text(dig(item, "name"))]
    return _select_listable(group, version, [_read_legacy_entry(item) for item in items])


def make_gap(group_version: str, why: str) -> Gap:
    """The gap of a group-version whose kinds are unknown."""
    return Gap(GapKind.DISCOVERY, group_version, why)


def _read_aggregated_group(group: Json, *, alone: bool) -> Iterator[Discovery]:
    """The core group, which has no name and a document of its own."""
    name = as_text(dig(group, "metadata", "name"))
    versions = as_list(dig(group, "versions"))
    if not versions or not (name or alone):
        yield Discovery((), (make_gap(name or "/apis", _NO_VERSIONS),))
        return
    for version in versions:
        if as_text(dig(version, "freshness")) == "Stale":
            yield Discovery((), (make_gap(_name_group_version(name, version), _STALE),))
        else:
            items = [item for item in as_list(dig(version, "resources")) if not _is_parent_only(item)]
            yield _select_listable(
                name, as_text(dig(version, "version")), [_read_aggregated_entry(item) for item in items]
            )


def _select_listable(group: str, version: str, entries: Iterable[_ResourceEntry]) -> Discovery:
    """The listable kinds among the resources of a group-version, and a gap if the list must be incomplete."""
    entries = tuple(entries)
    where = f"{group}/{version}" if group else version
    whole = [resource for resource in entries if version and all((resource.plural, resource.kind, resource.verbs))]
    fitting = [resource for resource in whole if _are_segments(*where.split("/", 1), resource.plural)]
    kinds = tuple(
        Kind(group, version, resource.kind, resource.plural, resource.namespaced)
        for resource in fitting
        if resource.namespaced is not None and "list" in resource.verbs
    )
    if not entries and group not in _MAY_BE_EMPTY:
        return Discovery((), (make_gap(where, _EMPTY),))
    if len(whole) < len(entries) or any(resource.namespaced is None for resource in whole):
        return Discovery(kinds, (make_gap(where, _BROKEN),))
    if len(fitting) < len(whole):
        return Discovery(kinds, (make_gap(where, _NO_SEGMENT),))
    return Discovery(kinds)


def _are_segments(*names: str) -> bool:
    """Return whether names can stand in the path of a request as they are."""
    return all(map(_SEGMENT.fullmatch, names))


def _is_group_version(name: str) -> bool:
    return _are_segments(*name.split("/", 1))


def _read_aggregated_entry(item: Json) -> _ResourceEntry:
    scope = {"Namespaced": True, "Cluster": False}.get(as_text(dig(item, "scope")))
    kind = as_text(dig(item, "responseKind", "kind"))
    return _ResourceEntry(as_text(dig(item, "resource")), kind, scope, texts(dig(item, "verbs")))


def _read_legacy_entry(item: Json) -> _ResourceEntry:
    namespaced = dig(item, "namespaced")
    scope = namespaced if isinstance(namespaced, bool) else None
    return _ResourceEntry(as_text(dig(item, "name")), as_text(dig(item, "kind")), scope, texts(dig(item, "verbs")))


def _is_parent_only(item: Json) -> bool:
    """Return whether an entry has subresources only: apiserver adds such an entry for a resource without anything else."""
    return bool(as_list(dig(item, "subresources"))) and not (
        dig(item, "responseKind", "kind") or as_list(dig(item, "verbs"))
    )


def _join(parts: Iterable[Discovery]) -> Discovery:
    parts = tuple(parts)
    return Discovery(
        tuple(kind for part in parts for kind in part.kinds), tuple(gap for part in parts for gap in part.gaps)
    )


def _name_group_version(group: str, version: Json) -> str:
    name = as_text(dig(version, "version"))
    return f"{group}/{name}" if group else name
