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

KINDS = {(kind.api_version, kind.kind): kind for kind in builtin_kinds()}
SCHEMAS = KnownSchemas(builtin_schemas())
OBJECTS = 60
EFFECTS = {"Deny": "refuses", "Warn": "warns", "Audit": "audits"}


def as_stored(kind: Kind, document: Any) -> Any:
    """The object as a server stores it: with its defaults, and a uid; None for one that it refuses."""
    try:
        requested = make_request(resource_of(kind, document), None, SCHEMAS.schema(kind))
    except Refused:
        return None
    body: Any = requested.after_mutation(requested.resource.body).body
    metadata = {**body["metadata"], "uid": "6a1f6c5e-0000-4000-8000-000000000000", "resourceVersion": "7"}
    if kind.namespaced:
        metadata.setdefault("namespace", "default")
    return {**body, "metadata": metadata}


def object_of(finding: Any) -> tuple[str, str, str]:
    """The kind, the namespace and the name of the object of a finding."""
    named = finding["object"]
    return named["kind"], named["namespace"], named["name"]


@pytest.mark.parametrize("name", ["policies", "random"])
def test_check_and_scan_agree_about_stored_objects(assay: Assay, home: Path, name: str) -> None:
    """Each violation of each policy and binding, with its message, for updates that change nothing."""
    data = load(RECORDED / f"{name}.json.gz")
    documents: dict[tuple[str, str | None, str], Any] = {}
    for case in data["cases"]:
        kind = KINDS.get((case["object"]["apiVersion"], case["object"]["kind"]))
        stored = as_stored(kind, case["object"]) if kind else None
        if stored and kind and len(documents) < OBJECTS:
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
    found = {
        (*key, finding["policy"], finding["binding"], finding["message"])
        for finding in scan["findings"]
        if (key := object_of(finding)) in wanted and (finding["outcome"] == "violated" or finding["wouldDeny"])
    }
    decided = {
        (each["kind"], each["namespace"], each["name"], decision["by"], decision["binding"], decision["message"])
        for each in check["objects"]
        for decision in each["decisions"]
        if decision["effect"] in EFFECTS.values() and not decision["message"].startswith("its pods: ")
    }
    errors = {
        (finding["policy"], finding["binding"])
        for finding in scan["findings"]
        if finding["outcome"] == "errored" and not finding["wouldDeny"]
    }
    assert set() == {row for row in found ^ decided if (row[3], row[4]) not in errors}
    assert len(found) > OBJECTS
