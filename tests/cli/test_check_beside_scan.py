"""What `assay check` decides about an object as it is stored is what a scan finds for it, for all recorded policies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from scanner.cluster.definitions import builtin_kinds
from scanner.cluster.schemas import KnownSchemas, builtin_schemas
from scanner.model.resource import Kind, resource_of
from scanner.preview.requested import Refused, make_request
from tests.cli.conftest import Assay
from tests.conformance.cases import RECORDED, load

pytestmark = pytest.mark.long

KINDS = {(kind.api_version, kind.kind): kind for kind in builtin_kinds()}
SCHEMAS = KnownSchemas(builtin_schemas())
OBJECTS, FINDINGS = 60, 200
VERSIONED = ("HorizontalPodAutoscaler", "Event")
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
    """Leave out objects whose namespace no document describes, and kinds of several versions: a scan requests the preferred one."""
    described = {each["metadata"]["name"] for each in namespaces}
    return document["kind"] not in VERSIONED and document["metadata"].get("namespace") in {None, *described}


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
        if stored and kind and len(documents) < OBJECTS and is_comparable(stored, data["namespaces"]):
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
    (home / "objects.yaml").write_text("\n---\n".join(map(json.dumps, objects)))

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
