"""What a cluster serves, read from the answers of its discovery endpoints.

Source of truth: aggregated discovery (`apidiscovery.k8s.io` v2 and v2beta1) and the older documents of `/api` and
`/apis`; a group-version that its server marks stale counts as not answering, as in client-go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from scanner.model.json import Json, JsonObject, as_list, as_text, dig, texts
from scanner.model.outcome import Gap, GapKind
from scanner.model.resource import Kind
from scanner.scan import Discovery

ACCEPT: Final = (
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"
    "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,"
    "application/json"
)
_STALE: Final = (
    "the server behind this API group does not answer, so the kinds it serves are unknown: "
    "see `kubectl get apiservices`, and scan again when it is back"
)


def is_aggregated(answer: JsonObject) -> bool:
    """Whether the server answered in the aggregated form."""
    return as_text(answer.get("kind")) == "APIGroupDiscoveryList"


def aggregated_kinds(answer: JsonObject) -> Discovery:
    """The listable kinds of an aggregated answer, in its own order: a group's preferred version first."""
    kinds: list[Kind] = []
    gaps: list[Gap] = []
    for group in as_list(answer.get("items")):
        name = as_text(dig(group, "metadata", "name"))
        for version in as_list(dig(group, "versions")):
            if as_text(dig(version, "freshness")) == "Stale":
                gaps.append(unanswered(_group_version(name, version), _STALE))
            else:
                kinds.extend(_aggregated_version(name, version))
    return Discovery(tuple(kinds), tuple(gaps))


def legacy_group_versions(core: JsonObject, groups: JsonObject) -> tuple[str, ...]:
    """The group-versions that `/api` and `/apis` name, a group's preferred version first."""
    names = list(texts(core.get("versions")))
    for group in as_list(groups.get("groups")):
        preferred = as_text(dig(group, "preferredVersion", "groupVersion"))
        served = [as_text(dig(version, "groupVersion")) for version in as_list(dig(group, "versions"))]
        names.extend((*(name for name in served if name == preferred), *(name for name in served if name != preferred)))
    return tuple(name for name in names if name)


def legacy_kinds(group_version: str, answer: JsonObject) -> tuple[Kind, ...]:
    """The listable kinds of one APIResourceList."""
    group, _, version = group_version.rpartition("/")
    return tuple(
        Kind(group, version, kind, plural, dig(item, "namespaced") is True)
        for item in as_list(answer.get("resources"))
        if (plural := as_text(dig(item, "name")))
        and "/" not in plural
        and (kind := as_text(dig(item, "kind")))
        and _listable(item)
    )


def unanswered(group_version: str, why: str) -> Gap:
    """The gap of a group-version whose kinds are unknown."""
    return Gap(GapKind.DISCOVERY, group_version, why)


def _aggregated_version(group: str, version: Json) -> Iterator[Kind]:
    name = as_text(dig(version, "version"))
    for item in as_list(dig(version, "resources")):
        kind = as_text(dig(item, "responseKind", "kind"))
        plural = as_text(dig(item, "resource"))
        if kind and plural and _listable(item):
            yield Kind(group, name, kind, plural, as_text(dig(item, "scope")) == "Namespaced")


def _group_version(group: str, version: Json) -> str:
    name = as_text(dig(version, "version"))
    return f"{group}/{name}" if group else name


def _listable(item: Json) -> bool:
    return "list" in texts(dig(item, "verbs"))
