"""Kyverno's own limits of its webhook: resource filters, and the selectors of its webhook configurations.

Source of truth: `pkg/config` (`parseKinds`, `ToFilter`, `parseWebhooks`, `IsExcluded`), `ParseKindSelector` of `pkg/utils/kube`,
`WithFilter` of `pkg/webhooks/handlers` and `buildWebhookRules` of `pkg/controllers/webhook` of Kyverno 1.16 to 1.19, the defaults from
its Helm chart. The keys `matchConditions`, `webhookLabels` and `webhookAnnotations` exempt no object from ValidatingPolicies.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from msgspec import Struct

from scanner.model.json import Json, JsonObject, as_object, dig, text_map
from scanner.model.resource import Resource, UserInfo
from scanner.model.selector import EVERYTHING, Selector, parse_selector

NAMESPACE = NAME = "kyverno"
"""The default name and namespace of Kyverno's ConfigMap; an installation can have others."""
_REPORTS = ("AdmissionReport", "ClusterAdmissionReport", "BackgroundScanReport", "ClusterBackgroundScanReport")
_NEVER_ASKED = frozenset((*_REPORTS, "UpdateRequest"))
"""`ExcludeKyvernoResources`: kinds that the webhook admits with any configuration."""
_VERSION = re.compile(r"v[0-9]+((alpha|beta)[0-9]+)?|\*")
_ENTRY = re.compile(r"\[([^\[\]]*)\]")
_PARTS = 3


class Filter(Struct, frozen=True):
    """One entry of resourceFilters; each part is a pattern with `*` and `?`. `text` is the entry in the ConfigMap."""

    text: str
    group: str = ""
    version: str = ""
    kind: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""

    def matches(self, resource: Resource, namespace: str) -> bool:
        """Return whether the filter excludes an object; `namespace` is the request's.

        The namespace of a filter may also match a Namespace by its name.
        """
        kind = resource.kind
        parts = ((self.group, kind.group), (self.version, kind.version), (self.kind, kind.kind), (self.subresource, ""))
        if not all(_fits(pattern, text) for pattern, text in parts):
            return False
        if _fits(self.namespace, namespace) and _fits(self.name, resource.name):
            return True
        return _is_namespace(resource) and _fits(self.namespace, resource.name)


@dataclass(frozen=True, slots=True)
class Configuration:
    """Decides whether a request reaches Kyverno's policies. Patterns of users are pairs of key and pattern."""

    filters: tuple[Filter, ...] = ()
    namespace_selector: Selector = EVERYTHING
    object_selector: Selector = EVERYTHING
    excluded: tuple[tuple[str, str], ...] = ()
    included: tuple[tuple[str, str], ...] = ()

    def exempts(self, resource: Resource, namespace_labels: Mapping[str, str], /, *, server_alone: bool = False) -> str:
        """The setting that keeps requests for an object from the policies, such as a filter, or an empty string.

        With `server_alone` it is a selector of the webhooks: the API server does not call Kyverno, which has the filters.
        """
        if not self._selects(resource, namespace_labels):
            return "the namespaceSelector of Kyverno's webhooks"
        if not self.object_selector.matches(resource.labels):
            return "the objectSelector of Kyverno's webhooks"
        if server_alone:
            return ""
        namespace = resource.name if _is_namespace(resource) else resource.namespace
        filtering = next((candidate for candidate in self.filters if candidate.matches(resource, namespace)), None)
        if filtering is not None:
            return f"Kyverno's resourceFilters {filtering.text}"
        return "Kyverno, which evaluates no reports of its own" if resource.kind.kind in _NEVER_ASKED else ""

    def with_filters(self, filters: tuple[Filter, ...]) -> Configuration:
        """A copy with more filters."""
        return replace(self, filters=(*self.filters, *filters))

    def excludes(self, user: UserInfo) -> str:
        """The setting by which Kyverno admits every request of a user, or an empty string. Roles are unknown, and ignored."""
        if any(_concerns(key, pattern, user) for key, pattern in self.included):
            return ""
        return next((f"{key} {pattern}" for key, pattern in self.excluded if _concerns(key, pattern, user)), "")

    def _selects(self, resource: Resource, namespace_labels: Mapping[str, str]) -> bool:
        """Return whether the selectors match; a namespace selector reads a Namespace's own labels."""
        if _is_namespace(resource):
            return self.namespace_selector.matches(resource.labels)
        return not resource.namespace or self.namespace_selector.matches(namespace_labels)


NOTHING = Configuration()


def configuration_of(config_map: JsonObject) -> Configuration:
    """The configuration in a ConfigMap; values that Kyverno cannot read are left out."""
    data = text_map(config_map.get("data"))
    webhooks = _decoded(data.get("webhooks", ""))
    users = [pattern for key in ("excludeUsernames", "excludeGroups") for pattern in _patterns(key, data.get(key, ""))]
    return Configuration(
        filters=tuple(parse_filters(data.get("resourceFilters", ""))),
        namespace_selector=_selector(dig(webhooks, "namespaceSelector")),
        object_selector=_selector(dig(webhooks, "objectSelector")),
        excluded=tuple((key, pattern) for key, pattern in users if not pattern.startswith("!")),
        included=tuple((key, pattern[1:].strip()) for key, pattern in users if pattern.startswith("!")),
    )


def parse_filters(text: str) -> Iterator[Filter]:
    """The filters in a text such as `[Pod,kube-system,*][Node,*,*]`, in its order (`parseKinds`).

    Text outside of brackets is ignored; blanks inside are kept.
    """
    for content in _ENTRY.findall(text):
        parts = content.split(",")
        if len(parts) <= _PARTS and parts[0]:
            namespace, name = (*parts[1:], "", "")[:2]
            yield Filter(f"[{content}]", *kind_selector(parts[0]), namespace, name)


def is_filters(text: str) -> bool:
    """Return whether a text has only filters of three parts."""
    entries = _ENTRY.findall(text)
    return (
        bool(entries)
        and not _ENTRY.sub("", text).strip()
        and all(content.count(",") == _PARTS - 1 for content in entries)
    )


def kind_selector(text: str) -> tuple[str, str, str, str]:
    """Group, version, kind and subresource of `Kind`, `version/Kind`, `group/version/Kind`, `Kind/subresource` and so on.

    Mirrors `ParseKindSelector` of `pkg/utils/kube`; a missing part is `*`, a missing subresource is empty. All parts of any
    other text are empty.
    """
    *first, last = text.split("/")
    match (*first, *last.split(".")):
        case (kind,):
            return "*", "*", kind, ""
        case ("*", "*"):
            return "*", "*", "*", "*"
        case ("*", subresource) if subresource.lower() == subresource:
            return "*", "*", "*", subresource
        case (version, kind) if _VERSION.fullmatch(version):
            return "*", version, kind, ""
        case (kind, subresource):
            return "*", "*", kind, subresource
        case (version, kind, subresource) if _VERSION.fullmatch(version):
            return "*", version, kind, subresource
        case (group, version, kind):
            return group, version, kind, ""
        case (group, version, kind, subresource):
            return group, version, kind, subresource
        case _:
            return "", "", "", ""


def _patterns(key: str, text: str) -> Iterator[tuple[str, str]]:
    """The patterns of a comma-separated list; `!` marks a pattern that overrides the exclusions."""
    for part in (part.strip() for part in text.split(",")):
        if part.removeprefix("!").strip():
            yield key, part


def _concerns(key: str, pattern: str, user: UserInfo) -> bool:
    names: Iterable[str] = user.groups if key == "excludeGroups" else (user.username,)
    return any(_fits(pattern, name) for name in names)


def _decoded(text: str) -> Json:
    try:
        decoded: Json = json.loads(text)
    except ValueError:
        return None
    return as_object(decoded)


def _selector(value: Json) -> Selector:
    """A selector; if the API server cannot parse it, Kyverno has no webhook, and the selector is unknown."""
    selector = parse_selector(as_object(value))
    return EVERYTHING if selector.find_fault() else selector


def _is_namespace(resource: Resource) -> bool:
    return (resource.kind.group, resource.kind.version, resource.kind.kind) == ("", "v1", "Namespace")


def _fits(pattern: str, text: str) -> bool:
    return pattern == "*" or _expression(pattern)(text) is not None


@lru_cache(maxsize=1024)
def _expression(pattern: str) -> Callable[[str], re.Match[str] | None]:
    """`Match` of `ext/wildcard`: `*` is any text, `?` any single character."""
    parts = (".*" if mark == "*" else "." if mark == "?" else re.escape(mark) for mark in pattern)
    return re.compile("".join(parts), re.DOTALL).fullmatch


_CONTROLLERS = ("admission", "background", "cleanup", "reports")
_OF_THE_CHART = (
    *("[*/*,kyverno,*]", "[Event,*,*]", "[*/*,kube-system,*]", "[*/*,kube-public,*]", "[*/*,kube-node-lease,*]"),
    *(
        "[Node,*,*]",
        "[APIService,*,*]",
        "[TokenReview,*,*]",
        "[SubjectAccessReview,*,*]",
        "[SelfSubjectAccessReview,*,*]",
    ),
    *(
        "[Binding,*,*]",
        "[Pod/binding,*,*]",
        "[ReplicaSet,*,*]",
        "[EphemeralReport,*,*]",
        "[ClusterEphemeralReport,*,*]",
    ),
    *(
        f"[ClusterRole,*,kyverno:{controller}-controller{rest}]"
        for controller in _CONTROLLERS
        for rest in ("", ":core", ":additional")
    ),
    *(f"[ClusterRoleBinding,*,kyverno:{controller}-controller]" for controller in _CONTROLLERS),
)
"""`config.resourceFilters` of the chart, without those for subresources alone or that the first one contains."""
_SELECTOR_OF_THE_CHART: JsonObject = {
    "matchExpressions": [
        {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system", NAMESPACE]}
    ]
}
DEFAULT = Configuration(
    filters=tuple(parse_filters("".join(_OF_THE_CHART))),
    namespace_selector=parse_selector(_SELECTOR_OF_THE_CHART),
    excluded=(("excludeGroups", "system:nodes"),),
)
"""The configuration that Kyverno's Helm chart installs."""
