"""What `assay check` decides about an object as it is stored is what a scan finds for it, for all recorded policies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from scanner.cluster.definitions import builtin_kinds
from scanner.cluster.schemas import KnownSchemas, builtin_schemas
from scanner.model.resource import Kind, resource_of
from scanner.mutate.versions import list_views
from scanner.preview.requested import Refused, make_request
from tests.cli.conftest import Assay
from tests.conformance.cases import RECORDED, load

pytestmark = pytest.mark.long

KINDS = {(kind.api_version, kind.kind): kind for kind in builtin_kinds()}
SCHEMAS = KnownSchemas(builtin_schemas())
OBJECTS, FINDINGS = 60, 200
VERSIONED = ("HorizontalPodAutoscaler", "Event")
"""Kinds of several versions, of which every recorded object is compared, requested in each of them.

A manifest is one request, in its own version, and a policy with `matchPolicy: Exact` matches that version alone. A scan asks about
requests in every version, because any client may write any of them.
"""
EFFECTS = ("refuses", "warns", "audits")


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


def test_check_and_scan_agree_about_stored_objects(assay: Assay, home: Path) -> None:
    """Each violation of each policy and binding, with its message, for updates that change nothing."""
    data = load(RECORDED / "policies.json.gz")
    documents: dict[tuple[str, Any, str], Any] = {}
    for number, case in enumerate(data["cases"]):
        kind = KINDS.get((case["object"]["apiVersion"], case["object"]["kind"]))
        stored = as_stored(kind, case["object"], number) if kind else None
        compares = len(documents) < OBJECTS or case["object"]["kind"] in VERSIONED
        if stored and kind and compares and is_comparable(stored, data["namespaces"]):
            metadata = stored["metadata"]
            documents[kind.kind, metadata.get("namespace"), metadata["name"]] = stored
    params = [each for each in data["params"] if (each["apiVersion"], each["kind"]) in KINDS]
    names = {(each["kind"], each["metadata"].get("namespace"), each["metadata"]["name"]) for each in params}
    objects = [each for key, each in documents.items() if key not in names]
    cluster = [
        *data.get("definitions", ()),
        *data["policies"],
        *data["bindings"],
        *params,
        *data["namespaces"],
        *objects,
    ]
    (home / "cluster.yaml").write_text("\n---\n".join(map(json.dumps, cluster)))
    requests = [each for body in objects for each in in_each_version(body)]
    (home / "objects.yaml").write_text("\n---\n".join(map(json.dumps, requests)))

    scan: Any = assay(
        "scan", "--from", "cluster.yaml", "--operation", "update", "-o", "json", "-q", "--db", "a.db"
    ).report
    check: Any = assay("check", "-f", "objects.yaml", "--against", "cluster.yaml", "-o", "json").report

    wanted = {(each["kind"], each["metadata"].get("namespace", ""), each["metadata"]["name"]) for each in objects}
    ignoring = {each["metadata"]["name"] for each in data["policies"] if each["spec"].get("failurePolicy") == "Ignore"}
    found = {
        (*key, finding["policy"], finding["binding"], finding["message"])
        for finding in scan["findings"]
        if (key := object_of(finding)) in wanted
        and (finding["outcome"] == "violated" or finding["policy"] not in ignoring)
    }
    decided = {
        (each["kind"], each["namespace"], each["name"], decision["by"], decision["binding"], decision["message"])
        for each in check["objects"]
        for decision in each["decisions"]
        if decision["effect"] in EFFECTS and not decision["message"].startswith("its pods: ")
    }
    assert set() == found ^ decided
    assert len(found) > FINDINGS
