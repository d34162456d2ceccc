"""Assay predicts the object that a real server stores when a field is missing.

A PUT takes the way that a mutated object takes: decoding, defaults, the registry of the kind. Which fields are left out or emptied
is drawn by a seed; the server decides which of the requests are valid.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from scanner.cluster.definitions import builtin_kinds
from scanner.cluster.schemas import builtin_schemas
from scanner.model.json import Json, JsonObject, as_object, as_text, dig
from scanner.mutate.decoding import decode_strictly
from scanner.mutate.difference import find_changes
from scanner.mutate.operations import PatchOperation, apply
from scanner.mutate.registry import prepare_second_pass, store_update
from scanner.mutate.walk import apply_within, drop_members
from tests.integration.apiserver import ApiServer, running
from tests.integration.storable import STORABLE

SEED = 13
FOR_EACH_OBJECT = 4
AT_LEAST = 120
KINDS = {(kind.group, kind.version, kind.kind): kind for kind in builtin_kinds()}
IDENTITY = ("name", "namespace", "uid", "resourceVersion", "managedFields", "generation")
BOOKKEEPING = ("managedFields", "resourceVersion", "generation")
COUNTER = "deprecated.daemonset.template.generation"
NEEDED = ("namespaces/default", "namespaces/kube-system")
EXPLAINED = ("timeAdded", "targetCPUUtilizationPercentage")
"""Members that the server fills with the time of the request, and one that it stores otherwise when a mutation removes it.

`convert_into` has the rule: after a mutation the request's own object keeps its metric; the mutation fuzz holds it.
"""


def test_the_server_stores_what_is_predicted(assets: Path, tmp_path: Path) -> None:
    """The server stores removed and emptied fields as Assay predicts, for every kind."""
    with running(assets, tmp_path) as server:
        wait_for_namespaces(server)
        differences = [text for manifest in STORABLE for text in compared(server, manifest)]
    assert AT_LEAST < len(differences)
    assert [] == [text for text in differences if text]


def wait_for_namespaces(server: ApiServer) -> None:
    """The server makes its namespaces after it is ready."""
    deadline = time.monotonic() + 30
    while any(server.request("GET", f"/api/v1/{path}").status != 200 for path in NEEDED):
        assert time.monotonic() < deadline
        time.sleep(0.1)


def compared(server: ApiServer, manifest: JsonObject) -> Iterator[str]:
    """For each edit that the server takes, the difference between its answer and ours, empty when there is none."""
    path = collection(manifest)
    created = server.request("POST", path, manifest)
    assert created.status == 201, created.body
    name = as_text(dig(manifest, "metadata", "name"))
    live = as_object(server.request("GET", f"{path}/{name}").body)
    choice = random.Random(f"{SEED} {manifest['kind']} {name}")
    for edit in choice.sample(sorted(edits(live), key=str), FOR_EACH_OBJECT):
        edited: JsonObject = apply([edit], live)  # type: ignore[arg-type, assignment]
        answer = server.request("PUT", f"{path}/{name}", edited, {"dryRun": "All"})
        if answer.status == 200 and edit.path.rpartition("/")[2] not in EXPLAINED:
            yield text_of(edit, live, edited, as_object(answer.body))


def collection(manifest: JsonObject) -> str:
    """The path of a kind's objects in the namespace `default`."""
    kind = KINDS[group_version_kind(manifest)]
    root = f"/apis/{manifest['apiVersion']}" if kind.group else "/api/v1"
    return f"{root}{'/namespaces/default' if kind.namespaced else ''}/{kind.plural}"


def group_version_kind(document: JsonObject) -> tuple[str, str, str]:
    """By which kinds and schemas are found."""
    group, _, version = as_text(document["apiVersion"]).rpartition("/")
    return group, version, as_text(document["kind"])


def edits(live: JsonObject) -> Iterator[PatchOperation]:
    """Every member removed or emptied, but those that say which object it is."""
    for path, value in members(
        drop_members(
            apply_within("metadata", lambda metadata: drop_members(metadata, *IDENTITY))(live), "apiVersion", "kind"
        ),
        "",
    ):
        yield PatchOperation("remove", path)
        empty = type(value)() if isinstance(value, dict | list | str | int) else None
        yield PatchOperation("replace", path, empty)


def members(value: Json, path: str) -> Iterator[tuple[str, Json]]:
    """The paths of all that is in a value."""
    inside = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    for name, member in inside:
        place = f"{path}/{str(name).replace('~', '~0').replace('/', '~1')}"
        yield place, member
        yield from members(member, place)


def text_of(edit: PatchOperation, live: JsonObject, edited: JsonObject, answer: JsonObject) -> str:
    """The differences as text, empty when there are none."""
    schema = builtin_schemas()[group_version_kind(live)]
    ours = comparable(
        store_update(schema, live, prepare_second_pass(schema, live, decode_strictly(schema, edited, live)))
    )
    changes = find_changes(ours, comparable(answer))  # type: ignore[arg-type]
    return f"{live['kind']} {edit.op} {edit.path}: {changes}" if changes else ""


def comparable(document: JsonObject) -> JsonObject:
    """A document without what every write counts or dates."""
    annotations = drop_members(as_object(dig(document, "metadata", "annotations")), COUNTER)
    metadata = drop_members(as_object(document["metadata"]), "annotations", *BOOKKEEPING)
    return {**document, "metadata": {**metadata, **({"annotations": annotations} if annotations else {})}}
