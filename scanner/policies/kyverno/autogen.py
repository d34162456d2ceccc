"""Rewrites a policy for Pods into variants for the controllers of Pods.

Source of truth: `pkg/cel/autogen` of Kyverno 1.18. The rewriting replaces text in the whole spec as JSON, messages, names and
literals included, because Kyverno does: a rewritten syntax tree would be more exact, and evaluate differently.

Rules: `docs/semantics/kyverno.md#autogen`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from scanner.model.json import Json, JsonObject, as_list, as_object, dig, texts

CONTROLLERS: dict[str, tuple[str, str]] = {
    "cronjobs": ("batch", "v1"),
    "daemonsets": ("apps", "v1"),
    "deployments": ("apps", "v1"),
    "jobs": ("batch", "v1"),
    "replicasets": ("apps", "v1"),
    "statefulsets": ("apps", "v1"),
}
"""Plural names with group and version."""
_TEMPLATES = {"defaults": "spec.template", "cronjobs": "spec.jobTemplate.spec.template"}
_KEPT = r"(?!\.namespace(?![A-Za-z0-9_]))"


@dataclass(frozen=True, slots=True)
class Variant:
    """One form in which a policy is evaluated: the empty name is the policy without rewriting."""

    name: str
    spec: JsonObject


def variants(spec: JsonObject) -> tuple[Variant, ...]:
    """The policy without rewriting, then its autogen variants, in the order of Kyverno's configurations."""
    return (Variant("", spec), *(Variant(name, rewritten) for name, rewritten in _generated(spec)))


def _generated(spec: JsonObject) -> Iterator[tuple[str, JsonObject]]:
    if not _about_pods_alone(spec):
        return
    chosen = _controllers(spec)
    for name, targets in (("cronjobs", chosen & {"cronjobs"}), ("defaults", chosen - {"cronjobs"})):
        if targets:
            yield name, rewrite({**spec, "matchConstraints": _constraints(spec, targets)}, name)


def _about_pods_alone(spec: JsonObject) -> bool:
    match = dig(spec, "matchConstraints")
    rules = as_list(dig(match, "resourceRules"))
    selector = as_object(dig(match, "objectSelector"))
    if any(selector.values()) or as_list(dig(match, "excludeResourceRules")) or len(rules) != 1:
        return False
    parts = (texts(dig(rules[0], part)) for part in ("apiGroups", "apiVersions", "resources"))
    return tuple(parts) == (("",), ("v1",), ("pods",)) and not as_list(dig(rules[0], "resourceNames"))


def _controllers(spec: JsonObject) -> set[str]:
    """The selected controllers: all of them unless there is a list; unknown names select nothing."""
    named = dig(spec, "autogen", "podControllers", "controllers")
    return set(CONTROLLERS) if named is None else set(CONTROLLERS) & set(texts(named))


def _constraints(spec: JsonObject, targets: set[str]) -> JsonObject:
    match = as_object(dig(spec, "matchConstraints"))
    operations = dig(as_list(match["resourceRules"])[0], "operations")
    grouped = groupby(sorted(targets, key=lambda name: (*CONTROLLERS[name], name)), key=CONTROLLERS.__getitem__)
    rules: list[Json] = [
        {"apiGroups": [group], "apiVersions": [version], "operations": operations, "resources": [*plurals]}
        for (group, version), plurals in grouped
    ]
    kept = {key: match[key] for key in ("namespaceSelector",) if key in match}
    return {**kept, "resourceRules": rules}


def rewrite(spec: JsonObject, variant: str) -> JsonObject:
    """The spec with every path into the Pod changed to a path into the Pod template of a variant.

    Mirrors the text replacement of `pkg/cel/autogen`. `spec` itself is not changed.
    """
    text = json.dumps(spec, ensure_ascii=False)
    template = _TEMPLATES[variant]
    for field in ("spec", "metadata"):
        for root in ("object", "oldObject"):
            text = re.sub(rf"{root}\.{field}{_KEPT}", f"{root}.{template}.{field}", text)
    rewritten: JsonObject = json.loads(text)
    return rewritten
