"""The example cluster and its policies, as a real API server can store them.

Left out is what no server would take: files called `broken-*` and `hostile-*`. Policies of versions that Kubernetes
1.36 no longer serves are stored as v1, whose fields are the same, and every binding has the action Warn.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from scanner.cluster.files.manifests import read_documents
from scanner.model.json import JsonObject, as_object, as_text

FOLDER = Path(__file__).parents[2] / "examples"
_ADMISSION = "admissionregistration.k8s.io"
_UNSTORABLE = ("broken-", "hostile-")


def objects(state: str) -> list[JsonObject]:
    """The objects of the state `before` or `after`."""
    return [*_documents(FOLDER / "cluster" / state)]


def policies() -> list[JsonObject]:
    """The policies, their params, and the bindings that only warn."""
    return [_storable(document) for document in _documents(FOLDER / "policies")]


def _documents(folder: Path) -> Iterator[JsonObject]:
    for path in sorted(folder.iterdir()):
        if not path.name.startswith(_UNSTORABLE):
            yield from (document.body for document in read_documents(path)[0])


def _storable(document: JsonObject) -> JsonObject:
    if not as_text(document["apiVersion"]).startswith(_ADMISSION):
        return document
    served: JsonObject = {**document, "apiVersion": f"{_ADMISSION}/v1"}
    if not as_text(document["kind"]).endswith("Binding"):
        return served
    return {**served, "spec": {**as_object(document["spec"]), "validationActions": ["Warn"]}}
