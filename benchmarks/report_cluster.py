"""A cluster of which every object violates policies of ordinary length: texts, annotations and evidence as reports show them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import orjson

from benchmarks.bulk import written_objects
from benchmarks.objects import namespaces
from scanner.model.json import Json, JsonObject

POLICIES: Final = 20
_PAGE: Final = 500
_VERSION: Final = "admissionregistration.k8s.io/v1"
_SEVERITIES: Final = ("critical", "high", "medium", "low")
_ACTIONS: Final = ("Deny", "Warn", "Audit")


def write_cluster(folder: Path, findings: int) -> None:
    """Write config maps of which each violates every policy once, their namespaces, and the policies."""
    folder.mkdir()
    dice = random.Random(1)
    for number, items in enumerate(_pages(dice, findings // POLICIES)):
        _write(folder / f"page-{number:05}.json", items)
    _write(folder / "namespaces.json", [made.body for made in namespaces()])
    _write(folder / "policies.json", policies())


def policies() -> list[JsonObject]:
    """The policies and their bindings."""
    return [document for number in range(POLICIES) for document in _policy(number)]


def _pages(dice: random.Random, objects: int) -> Iterator[list[JsonObject]]:
    for start in range(0, objects, _PAGE):
        yield written_objects(dice, range(start, min(start + _PAGE, objects)))


def _write(path: Path, items: list[JsonObject]) -> None:
    path.write_bytes(orjson.dumps({"apiVersion": "v1", "kind": "List", "items": items}))


def _policy(number: int) -> list[JsonObject]:
    name = f"config-{number:02}.example.com"
    rules: list[Json] = [
        {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["configmaps"]}
    ]
    validations: list[Json] = [
        {"expression": "size(object.metadata.name) <= 253", "message": "The name is too long."},
        {
            "expression": f"has(object.metadata.labels) && 'policy-{number:02}' in object.metadata.labels",
            "messageExpression": f"'The config map ' + object.metadata.name + ' has no label policy-{number:02}'",
            "reason": "Forbidden",
        },
        {
            "expression": "!has(object.data) || object.data.all(key, size(object.data[key]) < 100000)",
            "message": "A value is longer than 100,000 characters: put it into a volume.",
        },
    ]
    annotations: JsonObject = {
        "assay.dev/severity": _SEVERITIES[number % len(_SEVERITIES)],
        "assay.dev/title": f"Config maps need the label policy-{number:02}",
        "assay.dev/description": "A config map without this label is not found by the team that has to keep it. " * 2,
        "assay.dev/remediation": f"Set the label policy-{number:02} in the chart that makes the config map.",
    }
    spec: JsonObject = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": rules},
        "matchConditions": [{"name": "not-system", "expression": "object.metadata.namespace != 'kube-system'"}],
        "validations": validations,
    }
    bound: JsonObject = {"policyName": name, "validationActions": [_ACTIONS[number % len(_ACTIONS)]]}
    return [
        _document("ValidatingAdmissionPolicy", {"name": name, "annotations": annotations}, spec),
        _document("ValidatingAdmissionPolicyBinding", {"name": name}, bound),
    ]


def _document(kind: str, metadata: JsonObject, spec: JsonObject) -> JsonObject:
    return {"apiVersion": _VERSION, "kind": kind, "metadata": metadata, "spec": spec}
