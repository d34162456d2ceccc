"""What `assay check` decides about an object as it is stored is what a scan finds for it, for all recorded policies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from scanner.cluster.definitions import builtin_kinds
from scanner.cluster.schemas import KnownSchemas, builtin_schemas
from scanner.model.json import dig
from scanner.model.resource import Kind, resource_of
from scanner.mutate.versions import list_views
from scanner.preview.requested import Refused, make_request
from tests.cli.conftest import Assay
from tests.conformance.cases import load, parameters

pytestmark = pytest.mark.long

KINDS = {(kind.api_version, kind.kind): kind for kind in builtin_kinds()}
SCHEMAS = KnownSchemas(builtin_schemas())
FINDINGS = 200
VERSIONED = ("HorizontalPodAutoscaler", "Event")
"""Kinds of several versions, whose objects are requested in each of them.

A manifest is one request, in its own version, and a policy with `matchPolicy: Exact` matches that version alone. A scan asks about
requests in the preferred version, and in another one if only that can reach a policy or a binding that is `Exact`.
"""
EFFECTS = ("refuses", "refusesPods", "warns", "audits")
DECISION = ("by", "binding", "message")
Answer: TypeAlias = "tuple[Any, ...]"


def as_stored(kind: Kind, document: Any, number: int) -> Any:
    """The object as a server stores it: with its defaults, and a uid; None for one that it refuses."""
    try:
        requested = make_request(resource_of(kind, document), None, SCHEMAS.schema(kind))
    except Refused:
        return None
    body: Any = requested.after_mutation(requested.resource.body).body
    metadata = {**body["metadata"], "uid": f"uid of {kind.kind} {number}", "resourceVersion": "7"}
    if kind.namespaced:
        metadata.setdefault("namespace", "default")
    return {**body, "metadata": metadata}


def is_comparable(document: Any, namespaces: Any) -> bool:
    """Leave out objects whose namespace no document describes: a scan of files knows its name alone."""
    described = {each["metadata"]["name"] for each in namespaces}
    return document["metadata"].get("namespace") in {None, *described}


def in_each_version(document: Any) -> list[Any]:
    """The object in each of its versions; the scan reads it in one."""
    kind = KINDS[document["apiVersion"], document["kind"]]
    others = {each for each in KINDS.values() if document["kind"] in VERSIONED and each.kind == kind.kind}
    return [view.body for view in list_views(document, kind, others - {kind}, relabels=False)]


def object_of(finding: Any) -> tuple[str, str, str]:
    """The kind, the namespace and the name of the object of a finding."""
    named = finding["object"]
    return named["kind"], named["namespace"], named["name"]


def select_objects(data: Any) -> list[Any]:
    """The recorded objects as stored, each name once."""
    documents: dict[tuple[str, Any, str], Any] = {}
    for number, case in enumerate(data["cases"]):
        kind = KINDS.get((case["object"]["apiVersion"], case["object"]["kind"]))
        stored = as_stored(kind, case["object"], number) if kind else None
        if stored and kind and is_comparable(stored, data["namespaces"]):
            metadata = stored["metadata"]
            documents[kind.kind, metadata.get("namespace"), metadata["name"]] = stored
    return list(documents.values())


def identify(document: Any) -> tuple[str, str, str]:
    """The kind, the namespace and the name of a document."""
    return document["kind"], document["metadata"].get("namespace", ""), document["metadata"]["name"]


def define(documents: list[Any]) -> list[Any]:
    """The definitions of the custom resources among some documents, whose schema allows everything."""
    kinds = {(each["apiVersion"], each["kind"]): each for each in documents}
    return [
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{kind.lower()}s.{api_version.partition('/')[0]}"},
            "spec": {
                "group": api_version.partition("/")[0],
                "names": {"kind": kind, "plural": f"{kind.lower()}s"},
                "scope": "Namespaced" if each["metadata"].get("namespace") else "Cluster",
                "versions": [
                    {
                        "name": api_version.partition("/")[2],
                        "served": True,
                        "storage": True,
                        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
                    }
                ],
            },
        }
        for (api_version, kind), each in kinds.items()
        if (api_version, kind) not in KINDS
    ]


def compare(
    assay: Assay, home: Path, rules: list[Any], objects: list[Any], operation: str = "update"
) -> tuple[set[Answer], set[Answer]]:
    """What a scan finds for stored objects, and what a check of the same objects decides, under the same rules."""
    (home / "cluster.yaml").write_text("\n---\n".join(map(json.dumps, [*rules, *objects])))
    (home / "rules.yaml").write_text("\n---\n".join(map(json.dumps, rules)))
    against = "cluster.yaml" if operation == "update" else "rules.yaml"
    requests = [each for body in objects for each in in_each_version(body)]
    (home / "objects.yaml").write_text("\n---\n".join(map(json.dumps, requests)))
    scan: Any = assay(
        "scan", "--from", "cluster.yaml", "--operation", operation, "-o", "json", "-q", "--db", "a.db"
    ).report
    check: Any = assay("check", "-f", "objects.yaml", "--against", against, "-o", "json").report
    wanted = {identify(each) for each in objects}
    ignoring = {each["metadata"]["name"] for each in rules if dig(each, "spec", "failurePolicy") == "Ignore"}
    found = {
        (*key, finding["policy"], finding["binding"], finding["message"])
        for finding in scan["findings"]
        if (key := object_of(finding)) in wanted
        and (finding["outcome"] == "violated" or finding["policy"] not in ignoring)
    }
    decided = {
        (*(each[name] for name in ("kind", "namespace", "name")), *(decision[name] for name in DECISION))
        for each in check["objects"]
        for decision in each["decisions"]
        if decision["effect"] in EFFECTS and not decision["message"].startswith("its pods: ")
    }
    return found, decided


@pytest.mark.parametrize("path", parameters("policies"))
def test_check_and_scan_agree_about_stored_objects(assay: Assay, home: Path, path: Path) -> None:
    """Each violation of each policy and binding, with its message, for updates that change nothing."""
    data = load(path)
    params = [each for each in data["params"] if (each["apiVersion"], each["kind"]) in KINDS]
    names = {identify(each) for each in params}
    objects = [each for each in select_objects(data) if identify(each) not in names]
    rules = [*data.get("definitions", ()), *data["policies"], *data["bindings"], *params, *data["namespaces"]]
    found, decided = compare(assay, home, rules, objects)

    assert set() == found ^ decided
    assert len(found) > FINDINGS


@pytest.mark.parametrize("path", parameters("matching"))
def test_check_and_scan_match_the_same_stored_objects(assay: Assay, home: Path, path: Path) -> None:
    """Under random rules, selectors, scopes, params, match conditions and failure policies."""
    data = load(path)
    bindings = [case[name] for case in data["cases"] for name in ("policy", "binding")]
    objects = [each for each in data["update"] if (each["apiVersion"], each["kind"]) in KINDS]
    rules = [*define(data["params"]), *bindings, *data["params"], *data["namespaces"]]
    found, decided = compare(assay, home, rules, objects)

    assert set() == found ^ decided
    assert len(found) > FINDINGS


def spread(pairs: list[tuple[str, Any]]) -> list[Any]:
    """Documents as stored in a namespace each, each name once."""
    stored: dict[tuple[str, str, str], Any] = {}
    for number, (namespace, document) in enumerate(pairs):
        kind = KINDS.get((document["apiVersion"], document["kind"]))
        placed = {**document, "metadata": {**document["metadata"], "namespace": namespace}}
        body = as_stored(kind, placed if kind and kind.namespaced else document, number) if kind else None
        if body:
            stored.setdefault(identify(body), body)
    return list(stored.values())


def name_space(name: str, **labels: str) -> Any:
    """A Namespace with labels."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


@pytest.mark.parametrize("path", parameters("kyverno"))
def test_check_and_scan_agree_about_policies_of_kyverno(assay: Assay, home: Path, path: Path) -> None:
    """All recorded validating policies on all recorded objects. Mutating ones are left out: a scan evaluates objects as they are."""
    suites = load(path)
    policies: dict[tuple[str, str], Any] = {}
    for number, suite in enumerate(suites):
        for policy in suite["policies"]:
            if policy["kind"] == "ValidatingPolicy":
                named = {**policy, "metadata": {**policy["metadata"], "name": f"{policy['metadata']['name']}-{number}"}}
                policies[named["kind"], named["metadata"]["name"]] = named
    pairs = [
        (each["metadata"].get("namespace") or "default", each)
        for suite in suites
        for each in suite["resources"]
        if each["kind"] != "Namespace"
    ]
    rules = [*policies.values(), *map(name_space, sorted({namespace for namespace, _ in pairs}))]
    found, decided = compare(assay, home, rules, spread(pairs))

    assert set() == found ^ decided
    assert len(found) > FINDINGS


@pytest.mark.parametrize("path", parameters("pod-security"))
def test_check_and_scan_agree_about_pod_security(assay: Assay, home: Path, path: Path) -> None:
    """All recorded objects in the recorded namespaces."""
    data = load(path)
    labels = data["namespaces"]["default"]
    pairs = []
    for case in data["cases"]:
        if isinstance(case.get("object"), int) and case.get("namespace") in labels:
            document = data["objects"][case["object"]]
            name = f"{document['metadata'].get('name', 'x')}-{case['object']}"
            pairs.append((case["namespace"], {**document, "metadata": {**document["metadata"], "name": name}}))
    rules = [name_space(name, **each) for name, each in labels.items()]
    found, decided = compare(assay, home, rules, spread(pairs), "create")

    assert set() == found ^ decided
    assert len(found) > FINDINGS
