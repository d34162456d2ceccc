"""Generates the variants of a policy for Pods: for the controllers of Pods, and for other workloads that the policy names.

Source of truth: `pkg/cel/autogen` of Kyverno. The rewriting replaces text in the whole spec as JSON, messages, names and
literals included, because Kyverno does: a rewritten syntax tree would be more exact, and evaluate differently.

Rules: `docs/semantics/kyverno.md#autogen`.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import groupby
from typing import Final, NamedTuple, TypeAlias

from msgspec import Struct

from scanner.model.json import Json, JsonObject, as_list, as_object, dig, texts
from scanner.model.release import Minor
from scanner.model.resource import Kind
from scanner.policies.kyverno.releases import (
    AUTOGEN_WITH_NAMESPACE_SELECTOR,
    EXTRACTED_TEMPLATES,
    KEPT_NAMESPACE,
    NEWEST,
)

EXTRACTED: Final = "extract"
"""The variant that is not rewritten: the Pods of the templates in an object are evaluated (`ExtractionReplacementsRef`)."""
_TEMPLATES = {"defaults": "spec.template", "cronjobs": "spec.jobTemplate.spec.template"}
_NAMESPACE = r"(?!\.namespace(?![A-Za-z0-9_]))"
_PARTS = 3


class Target(NamedTuple):
    """A resource whose objects a variant evaluates. The core group is the empty string."""

    group: str
    version: str
    plural: str


Resolve: TypeAlias = Callable[[str], Target | None]
"""Returns the resource that the name of a controller alone means, or None."""
CONTROLLERS: Mapping[str, Target] = {
    "cronjobs": Target("batch", "v1", "cronjobs"),
    "daemonsets": Target("apps", "v1", "daemonsets"),
    "deployments": Target("apps", "v1", "deployments"),
    "jobs": Target("batch", "v1", "jobs"),
    "replicasets": Target("apps", "v1", "replicasets"),
    "statefulsets": Target("apps", "v1", "statefulsets"),
}
"""The controllers of Kubernetes by name."""
_KINDS: Mapping[str, str] = {
    "cronjobs": "CronJob",
    "daemonsets": "DaemonSet",
    "deployments": "Deployment",
    "jobs": "Job",
    "pods": "Pod",
    "replicasets": "ReplicaSet",
    "statefulsets": "StatefulSet",
}


class Variant(Struct, frozen=True):
    """One form in which a policy is evaluated: the empty name is the policy without rewriting."""

    name: str
    spec: JsonObject

    @property
    def extracts(self) -> bool:
        """Return whether the Pods of the templates in an object are evaluated instead of the object."""
        return self.name == EXTRACTED


def served_by(kinds: Iterable[Kind]) -> Resolve:
    """The resolution of names by the kinds of a cluster, each in its preferred version first (`RESTMapperBareNameResolver`).

    A name that several API groups serve means none of them.
    """
    targets: defaultdict[str, dict[str, Target]] = defaultdict(dict)
    for kind in kinds:
        targets[kind.plural].setdefault(kind.group, Target(kind.group, kind.version, kind.plural))

    def resolve(name: str) -> Target | None:
        groups = [*targets.get(name, {}).values()]
        return groups[0] if len(groups) == 1 else None

    return resolve


def unresolved(name: str) -> None:
    """No resource: without a cluster, a name alone means none."""
    del name


def anywhere(name: str) -> Target:
    """The resource of a name in any group: the resource that a name can mean in a cluster that is not known."""
    return Target("*", "*", name)


def variants(spec: JsonObject, release: Minor = NEWEST, resolve: Resolve = unresolved) -> tuple[Variant, ...]:
    """The policy without rewriting, then its autogen variants in a release of Kyverno, in the order of Kyverno's configurations."""
    return (Variant("", spec), *(Variant(name, rewritten) for name, rewritten in _generated(spec, release, resolve)))


def ignored(spec: JsonObject, release: Minor, resolve: Resolve) -> tuple[str, ...]:
    """The names of controllers for which the policy has no variant, although it could have one."""
    if not is_about_pods_alone(spec, release):
        return ()
    return tuple(name for name in _controllers(spec) if _target(name, release, resolve) is None)


def _generated(spec: JsonObject, release: Minor, resolve: Resolve) -> Iterator[tuple[str, JsonObject]]:
    if not is_about_pods_alone(spec, release):
        return
    chosen: defaultdict[str, set[Target]] = defaultdict(set)
    for name in _controllers(spec):
        if target := _target(name, release, resolve):
            chosen[_variant(name)].add(target)
    for variant, targets in sorted(chosen.items()):
        yield variant, rewrite({**spec, "matchConstraints": _constraints(spec, targets)}, variant, release)


def kind_of(plural: str) -> str:
    """The kind of Pods and of their controllers."""
    return _KINDS[plural]


def _variant(controller: str) -> str:
    if controller not in CONTROLLERS:
        return EXTRACTED
    return "cronjobs" if controller == "cronjobs" else "defaults"


def is_about_pods_alone(spec: JsonObject, release: Minor) -> bool:
    """Return whether a policy is one for Pods, of which a release of Kyverno makes variants (`CanAutoGen`)."""
    match = dig(spec, "matchConstraints")
    selectors = [as_object(dig(match, "objectSelector"))]
    if not AUTOGEN_WITH_NAMESPACE_SELECTOR.holds(release):
        selectors.append(as_object(dig(match, "namespaceSelector")))
    rules = as_list(dig(match, "resourceRules"))
    if any(any(selector.values()) for selector in selectors):
        return False
    if as_list(dig(match, "excludeResourceRules")) or len(rules) != 1:
        return False
    parts = (texts(dig(rules[0], part)) for part in ("apiGroups", "apiVersions", "resources"))
    return tuple(parts) == (("",), ("v1",), ("pods",)) and not as_list(dig(rules[0], "resourceNames"))


def _controllers(spec: JsonObject) -> Collection[str]:
    """The names of the controllers: those of Kubernetes unless there is a list."""
    named = dig(spec, "autogen", "podControllers", "controllers")
    return CONTROLLERS if named is None else dict.fromkeys(texts(named))


def _target(name: str, release: Minor, resolve: Resolve) -> Target | None:
    """The resource of a controller: one of Kubernetes, `RESOURCE.VERSION.GROUP`, or the resource that a name alone means."""
    if name in CONTROLLERS:
        return CONTROLLERS[name]
    if not EXTRACTED_TEMPLATES.holds(release):
        return None
    parts = name.split(".", _PARTS - 1)
    if len(parts) < _PARTS or not all(parts):
        return resolve(name)
    plural, version, group = parts
    return Target(group, version, plural)


def _constraints(spec: JsonObject, targets: Iterable[Target]) -> JsonObject:
    match = as_object(dig(spec, "matchConstraints"))
    operations = dig(as_list(match["resourceRules"])[0], "operations")
    rules: list[Json] = [
        {
            "apiGroups": [group],
            "apiVersions": [version],
            "operations": operations,
            "resources": [target.plural for target in of_version],
        }
        for (group, version), of_version in groupby(sorted(targets), key=lambda target: target[:2])
    ]
    kept = {key: match[key] for key in ("namespaceSelector",) if key in match}
    return {**kept, "resourceRules": rules}


def rewrite(spec: JsonObject, variant: str, release: Minor = NEWEST) -> JsonObject:
    """The spec with every path into the Pod changed to a path into the Pod template of a variant.

    Mirrors the text replacement of `pkg/cel/autogen`; there is none for extracted templates. `spec` itself is not changed.
    """
    if variant == EXTRACTED:
        return spec
    text = json.dumps(spec, ensure_ascii=False)
    template = _TEMPLATES[variant]
    kept = _NAMESPACE if KEPT_NAMESPACE.holds(release) else ""
    for field in ("spec", "metadata"):
        for root in ("object", "oldObject"):
            text = re.sub(rf"{root}\.{field}{kept}", f"{root}.{template}.{field}", text)
    rewritten: JsonObject = json.loads(text)
    return rewritten
