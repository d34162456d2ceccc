"""Custom resources on a real server: what is left of a JSON patch is what was predicted.

One policy for all: the object says in its annotations what is patched, and how. Its definition has defaults at several depths,
nullable fields, fields of which the schema says nothing, an embedded object, lists of every type, and a status that is a
subresource or not.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from scanner.api import Auditor, InvocationResult
from scanner.cluster.live.cluster import LiveCluster
from scanner.model.json import Json, JsonObject, as_object, as_text, dig
from scanner.model.outcome import Errored, WouldChange
from scanner.model.resource import Kind
from scanner.mutate.difference import find_changes
from scanner.mutate.operations import PatchOperation, apply
from scanner.mutate.schema import Schemas
from scanner.policies.mutating.evaluator import write_refusal
from tests.integration.apiserver import ApiServer, running
from tests.integration.manifests import apply as store
from tests.mutate.test_custom import SPEC
from tests.scan.test_drift import binding, policy

SECONDS_TO_MUTATE = 45.0
LATER = 422
COUNTED = ("managedFields", "resourceVersion", "generation", "uid", "creationTimestamp")
VALUES = {
    "null": "dyn(null)",
    "text": "dyn('t')",
    "zero": "dyn(0)",
    "map": "dyn({})",
    "list": "dyn([])",
    "nulls": "dyn([null])",
    "null-map": "dyn({'m': null})",
    "deep": "dyn({'d': {'e': {}}})",
    "items": "dyn([{'name': dyn('p'), 'nope': dyn(null)}, {'name': dyn('q')}])",
}
PATHS = (
    *(f"/spec/{name}" for name in (*SPEC, "tags", "parts", "unknown")),
    *("/spec/deep/d", "/spec/embedded/metadata", "/spec/embedded/metadata/labels", "/spec/parts/0/qty"),
    *("/status", "/status/x", "/metadata/labels", "/metadata/labels/n", "/metadata/finalizers", "/metadata/unknown"),
    *("/apiVersion", "/unknown"),
)
GIVEN = "object.metadata.annotations"
PATCHES = policy(
    "patches",
    f"[JSONPatch{{op: 'add', path: {GIVEN}.path, value: {{{', '.join(f'{name!r}: {text}' for name, text in VALUES.items())}}}[{GIVEN}.value]}}]",
    matchConstraints={
        "resourceRules": [
            {"operations": ["UPDATE"], "apiGroups": ["example.com"], "apiVersions": ["*"], "resources": ["*"]}
        ]
    },
)
LISTS: dict[str, Json] = {
    "tags": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
    "parts": {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "items": {
            "type": "object",
            "required": ["name"],
            "properties": {"name": {"type": "string"}, "qty": {"type": "integer", "default": 1}},
        },
    },
}
STORED: Json = {
    "tags": ["a"],
    "parts": [{"name": "p", "qty": 2}],
    "embedded": {"apiVersion": "v1", "kind": "X", "metadata": {"name": "e"}},
}


def definition(kind: str, **more: Json) -> JsonObject:
    """A kind, with or without a status that is a subresource."""
    status: Json = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    spec: Json = {"type": "object", "properties": {**SPEC, **LISTS}}
    schema: Json = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": status}}}
    plural = f"{kind.lower()}s"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema, **more}],
        },
    }


@dataclass(frozen=True, slots=True)
class Stage:
    """A server, the objects that it has stored, and what predictions need to know of it."""

    server: ApiServer
    objects: dict[str, JsonObject]
    kinds: tuple[Kind, ...]
    schemas: Schemas


@pytest.fixture(scope="module")
def stage(assets: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Two kinds, an object of each, and the policy."""
    with running(assets, tmp_path_factory.mktemp("custom")) as server:
        things: list[JsonObject] = [
            {
                "apiVersion": "example.com/v1",
                "kind": kind,
                "metadata": {"name": "t", "namespace": "default", "labels": {"a": "b"}},
                "spec": STORED,
            }
            for kind in ("Thing", "Plain")
        ]
        store(server, [definition("Thing", subresources={"status": {}}), definition("Plain"), *things])
        store(server, [PATCHES, binding("patches")])
        objects = {kind: as_object(server.request("GET", path_of(kind)).body) for kind in ("Thing", "Plain")}
        _wait_until_mutating(server, objects["Plain"])
        live = LiveCluster(kubeconfig=str(server.kubeconfig))
        yield Stage(server, objects, live.discover().kinds, live.schemas())


def path_of(kind: str) -> str:
    """The path of the only object of a kind."""
    return f"/apis/example.com/v1/namespaces/default/{kind.lower()}s/t"


def asking(document: JsonObject, path: str, value: str) -> JsonObject:
    """The object with what is to be patched in its annotations."""
    metadata = as_object(document["metadata"])
    return {**document, "metadata": {**metadata, "annotations": {"path": path, "value": value}}}


def _wait_until_mutating(server: ApiServer, document: JsonObject) -> None:
    deadline = time.monotonic() + SECONDS_TO_MUTATE
    probe = asking(document, "/spec/text", "text")
    while dig(server.request("PUT", path_of("Plain"), probe, {"dryRun": "All"}).body, "spec", "text") is None:
        assert time.monotonic() < deadline, "the policy does not act"
        time.sleep(0.2)


@pytest.mark.parametrize("kind", ["Thing", "Plain"])
@pytest.mark.parametrize("value", [*VALUES])
def test_what_a_patch_leaves_is_what_was_predicted(stage: Stage, kind: str, value: str) -> None:
    """Defaults come back, what the schema does not know goes, and so does a status that is a subresource."""
    auditor = Auditor(
        policies=[PATCHES],
        bindings=[binding("patches")],
        kinds=stage.kinds,
        schemas=stage.schemas,
        kubernetes_version="1.36",
    )
    differing = {}
    for path in PATHS:
        document = asking(stage.objects[kind], path, value)
        answer = stage.server.request("PUT", path_of(kind), document, {"dryRun": "All"})
        ours = _outcome(auditor.evaluate(document, operation="UPDATE"), document)
        theirs = as_text(dig(answer.body, "message")) if answer.status != 200 else as_object(answer.body)
        if answer.status != LATER and not _is_same(ours, theirs):
            differing[path] = (ours, theirs)

    assert {} == differing


def _outcome(invocation_results: tuple[InvocationResult, ...], document: JsonObject) -> JsonObject | str:
    """The object after the mutation, or the refusal."""
    (invocation_result,) = invocation_results
    outcome = invocation_result.check_results[0].outcome
    if isinstance(outcome, Errored):
        return outcome.message if outcome.code == 500 else write_refusal(invocation_result.invocation, outcome)
    changes = outcome.patch if isinstance(outcome, WouldChange) else ()
    operations = [PatchOperation(change.op, change.path, change.value) for change in changes]  # type: ignore[arg-type]
    changed: Any = apply(operations, document)  # type: ignore[arg-type]
    return changed  # type: ignore[no-any-return]


def _is_same(ours: JsonObject | str, theirs: JsonObject | str) -> bool:
    if isinstance(ours, str) or isinstance(theirs, str):
        return ours == theirs
    return not find_changes(_plain(ours), _plain(theirs))


def _plain(document: JsonObject) -> Any:
    metadata = {name: value for name, value in as_object(document.get("metadata")).items() if name not in COUNTED}
    return {**document, "metadata": metadata}
