"""Manifests of policies and bindings in which one field has some value, and what Assay makes of each.

Every field of four complete manifests, in every version that kube-apiserver 1.36 serves, is left out, misspelt and given values of
every JSON type.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product
from typing import Any, NamedTuple, TypeAlias

import orjson

from scanner.errors import InvalidManifest
from scanner.model.json import JsonObject
from scanner.policies.api_validation import Undecodable, unknown_fields
from scanner.policies.mutating import language as mutating
from scanner.policies.validating import language as validating

GROUP = "admissionregistration.k8s.io"
PLURALS = {
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
    "MutatingAdmissionPolicy": "mutatingadmissionpolicies",
    "MutatingAdmissionPolicyBinding": "mutatingadmissionpolicybindings",
}
SERVED = [
    *((kind, "v1") for kind in PLURALS),
    *((kind, version) for kind in PLURALS if kind.startswith("Mutating") for version in ("v1beta1", "v1alpha1")),
]
Document: TypeAlias = dict[str, Any]
Path: TypeAlias = tuple[str | int, ...]
ABSENT, MISSPELT = "absent", "misspelt"
"""Changes of a field that do not give it a value."""
VALUES: list[Any] = [
    *(
        None,
        "",
        0,
        1,
        -1,
        1.5,
        2**63,
        True,
        False,
        [],
        {},
        "x",
        "A b",
        "é",
        "*",
        "Fail",
        "fail",
        "a" * 300,
        "2026-01-01T00:00:00Z",
    ),
    *(
        [""],
        ["x"],
        ["x", "x"],
        ["*", "x"],
        [None],
        [1],
        [True],
        [{}],
        [[]],
        {"x": "y"},
        {"x": 1},
        {"x": None},
        {"X/y/z": "a b"},
    ),
]
TIMES = (
    *(
        "2026-13-01T00:00:00Z",
        "2026-02-29T00:00:00Z",
        "2024-02-29T00:00:00Z",
        "2026-01-00T00:00:00Z",
        "2026-01-01T24:00:00Z",
    ),
    *(
        "2026-01-01T00:60:00Z",
        "2026-01-01T00:00:60Z",
        "2026-01-01T00:00:00",
        "2026-01-01T00:00:00+01:00",
        "2026-01-01 00:00:00Z",
    ),
    *(
        "2026-01-01T00:00:00.5Z",
        "2026-01-01T00:00:00Zx",
        "2026-1-01T00:00:00Z",
        "2026-01-01",
        "0000-02-29T00:00:00Z",
        '"',
    ),
)
RULE: Document = {
    "apiGroups": ["apps"],
    "apiVersions": ["v1"],
    "operations": ["CREATE"],
    "resources": ["deployments", "deployments/scale"],
    "resourceNames": ["a"],
    "scope": "*",
}
SELECTOR: Document = {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}
MATCH: Document = {
    "resourceRules": [RULE],
    "excludeResourceRules": [RULE],
    "namespaceSelector": SELECTOR,
    "objectSelector": SELECTOR,
    "matchPolicy": "Equivalent",
}
OWNER: Document = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "o", "uid": "u"}
METADATA: Document = {
    "name": "p",
    "generateName": "p-",
    "namespace": "n",
    "uid": "u",
    "resourceVersion": "1",
    "generation": 1,
    "selfLink": "/p",
    "creationTimestamp": "2026-01-01T00:00:00Z",
    "deletionTimestamp": "2026-01-01T00:00:00Z",
    "deletionGracePeriodSeconds": 1,
    "labels": {"a": "b"},
    "annotations": {"a": "b"},
    "finalizers": ["example.com/a"],
    "ownerReferences": [{**OWNER, "controller": True, "blockOwnerDeletion": False}, OWNER],
    "managedFields": [
        {"manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {}}
    ],
}
POLICY: Document = {
    "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
    "matchConstraints": MATCH,
    "matchConditions": [{"name": "c", "expression": "true"}],
    "variables": [{"name": "v", "expression": "1"}],
    "failurePolicy": "Fail",
}
BINDING: Document = {
    "policyName": "p",
    "paramRef": {"name": "x", "namespace": "n", "parameterNotFoundAction": "Deny"},
    "matchResources": MATCH,
}
SPECS: dict[str, Document] = {
    "ValidatingAdmissionPolicy": {
        **POLICY,
        "validations": [{"expression": "true", "message": "m", "messageExpression": "'x'", "reason": "Invalid"}],
        "auditAnnotations": [{"key": "k", "valueExpression": "'x'"}],
    },
    "ValidatingAdmissionPolicyBinding": {**BINDING, "validationActions": ["Deny", "Audit"]},
    "MutatingAdmissionPolicy": {
        **POLICY,
        "mutations": [
            {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object{}"}},
            {"patchType": "JSONPatch", "jsonPatch": {"expression": "[JSONPatch{op: 'remove', path: '/x'}]"}},
        ],
        "reinvocationPolicy": "Never",
    },
    "MutatingAdmissionPolicyBinding": BINDING,
}
STATUS: Document = {
    "observedGeneration": 1,
    "typeChecking": {"expressionWarnings": [{"fieldRef": "f", "warning": "w"}]},
    "conditions": [{"type": "a", "status": "True", "reason": "R", "message": "", "lastTransitionTime": None}],
}
NAMES = ("a.static.k8s.io", "a.b", "A", "a_b", "-a", "a" * 254)


class Case(NamedTuple):
    """A manifest, and where it differs from a complete one."""

    where: str
    document: JsonObject


def cases() -> Iterator[Case]:
    """All of them."""
    for kind, version in SERVED:
        title, whole = f"{kind} {version}", _complete(kind, version)
        yield Case(title, whole)
        for path in _paths(whole):
            yield from _changes(title, whole, path)
        for name in NAMES:
            yield Case(f"{title} named {name:.20}", {**whole, "metadata": {"name": name}})
        if kind.endswith("Binding"):
            yield from _of_bindings(title, whole)


def _of_bindings(title: str, whole: Document) -> Iterator[Case]:
    """Params by labels instead of by name, and the names of a control plane's own manifests."""
    reference = {"selector": SELECTOR, "parameterNotFoundAction": "Allow"}
    selecting = _copy({**whole, "spec": {**whole["spec"], "paramRef": reference}})
    for path in _paths(selecting):
        if path[:3] == ("spec", "paramRef", "selector"):
            yield from _changes(f"{title} by labels", selecting, path)
    for name, policy in product(("b", "b.static.k8s.io"), ("p", "p.static.k8s.io")):
        for spec in (whole["spec"], {**whole["spec"], "paramRef": None}):
            document = {**whole, "metadata": {"name": name}, "spec": {**spec, "policyName": policy}}
            yield Case(f"{title} {name} of {policy}", document)


def _complete(kind: str, version: str) -> Document:
    status = {"status": STATUS} if kind == "ValidatingAdmissionPolicy" else {}
    return _copy(
        {"apiVersion": f"{GROUP}/{version}", "kind": kind, "metadata": METADATA, "spec": SPECS[kind], **status}
    )


def _copy(document: Document) -> Document:
    """A copy of which no two parts are one."""
    copied: Document = orjson.loads(orjson.dumps(document))
    return copied


def _paths(value: Any, path: Path = ()) -> Iterator[Path]:
    if len(path) > 1 or path in (("metadata",), ("spec",), ("status",)):
        yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from _paths(item, (*path, key))


def _changes(title: str, base: Document, path: Path) -> Iterator[Case]:
    where = f"{title} {'.'.join(map(str, path))}"
    for value in (*VALUES, *(TIMES if path[-1] == "creationTimestamp" else ())):
        yield Case(f"{where} = {value!r:.40}", _changed(base, path, value))
    if isinstance(path[-1], str):
        yield Case(f"{where} {ABSENT}", _changed(base, path, ABSENT))
        yield Case(f"{where} {MISSPELT}", _changed(base, path, MISSPELT))


def _changed(base: Document, path: Path, value: Any) -> Document:
    made = _copy(base)
    part: Any = made
    for step in path[:-1]:
        part = part[step]
    last = path[-1]
    if value is MISSPELT:
        part[str(last).capitalize()] = part.pop(last)
    elif value is ABSENT:
        del part[last]
    else:
        part[last] = value
    return made


class Reading(NamedTuple):
    """The result of reading a manifest: the refusal, empty when it is accepted, and the fields that are ignored."""

    refusal: str
    ignored: frozenset[str] = frozenset()


def reading(document: JsonObject) -> Reading:
    """Assay's result of reading a manifest in a file, in the words of a server."""
    kind, name = str(document["kind"]), _name(document)
    language = validating if kind.startswith("Validating") else mutating
    read = language.read_binding if kind.endswith("Binding") else language.read_policy
    try:
        read(document, source="file")
    except Undecodable as error:
        return Reading(str(error))
    except InvalidManifest as error:
        return Reading(f'{kind}.{GROUP} "{name}" is invalid: {error}')
    return Reading("", frozenset(unknown.path for unknown in unknown_fields(document)))


def _name(document: JsonObject) -> str:
    metadata = document.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return name if isinstance(name, str) else ""


def has_generated_name(document: JsonObject) -> bool:
    """Whether a server would make up a name, which a file that is read again and again cannot have."""
    metadata = document.get("metadata")
    return isinstance(metadata, dict) and bool(metadata.get("generateName")) and not _name(document)


def ignored_by(warnings: list[str]) -> frozenset[str]:
    """The fields that a server ignores according to its warnings."""
    return frozenset(match[1] for text in warnings if (match := re.fullmatch(r'unknown field "(.*)"', text)))
