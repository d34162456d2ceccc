"""Assay's prediction of a mutation equals the server's answer to a dry-run update of the stored object.

The example cluster is stored on a real API server beside more than forty mutating policies. Each of its objects is sent back
as it is, once for each policy, and the answer compared with the prediction: the same object, or the same refusal.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby, islice
from pathlib import Path
from typing import Any

import pytest

from scanner.api import Auditor, InvocationResult
from scanner.cluster.live.cluster import LiveCluster
from scanner.model.json import JsonObject, as_object, as_text, dig
from scanner.model.outcome import Errored, WouldChange
from scanner.model.resource import Kind, UserInfo
from scanner.mutate.operations import PatchOperation, apply, is_same_json
from scanner.mutate.schema import Schemas
from scanner.policies.mutating.evaluator import write_refusal
from tests.conformance.mutations import agrees
from tests.integration import examples, mutations
from tests.integration.apiserver import ApiServer, running
from tests.integration.client import Answer
from tests.integration.fuzz.manifests import binding_named
from tests.integration.manifests import apply as store
from tests.integration.manifests import wait_until_enforced
from tests.integration.parity import stored, where_of

SECONDS_TO_MUTATE = 45.0
OF_A_KIND = 3
LATER = 422
"""Mutated, and then refused by the validation of the kind, not by a policy."""
BOOKKEEPING = ("managedFields", "resourceVersion", "generation")
COUNTER = "deprecated.daemonset.template.generation"


@dataclass(frozen=True, slots=True)
class Stage:
    """A server that holds objects and policies, and what predictions need to know of it."""

    server: ApiServer
    objects: tuple[JsonObject, ...]
    namespaces: tuple[JsonObject, ...]
    kinds: tuple[Kind, ...]
    schemas: Schemas


@pytest.fixture(scope="module")
def stage(assets: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A server of our own: its policies act on every object."""
    with running(assets, tmp_path_factory.mktemp("mutated")) as server:
        examined = (*examples.objects("after"), mutations.GADGETS, mutations.GADGET)
        store(server, examined)
        names = {where_of(document) for document in examined}
        objects = [document for document in stored(server) if where_of(document) in names]
        store(server, mutations.manifests())
        wait_until_enforced(server)
        _wait_until_mutating(server, next(document for document in objects if document["kind"] == "ConfigMap"))
        live = LiveCluster(kubeconfig=str(server.kubeconfig))
        yield Stage(
            server,
            tuple(_some(objects)),
            tuple(document for document in objects if document["kind"] == "Namespace"),
            live.discover().kinds,
            live.schemas(),
        )


def _some(documents: list[JsonObject]) -> Iterator[JsonObject]:
    """A few objects of each kind."""
    for _, group in groupby(
        sorted(documents, key=lambda document: as_text(document["kind"])), key=lambda document: document["kind"]
    ):
        yield from islice(group, OF_A_KIND)


def _wait_until_mutating(server: ApiServer, probe: JsonObject) -> None:
    """The plug-in for mutating policies reads them from streams of its own."""
    deadline = time.monotonic() + SECONDS_TO_MUTATE
    for name in ("label", "variables"):
        while _untouched(mutations.updated(server, probe, mutations.user_of(name)), probe):
            assert time.monotonic() < deadline, f"policy {name} does not act"
            time.sleep(0.2)


def _untouched(answer: Answer, before: JsonObject) -> bool:
    return answer.status == 200 and is_same_json(_compared(as_object(answer.body)), _compared(before))


@pytest.mark.parametrize("name", sorted(mutations.POLICIES))
def test_the_prediction_is_what_the_server_makes_of_the_object(stage: Stage, name: str) -> None:
    """Every object that the policy acts on comes out as predicted, or is refused in the predicted words."""
    auditor = Auditor(
        policies=[mutations.policy_of(name)],
        bindings=[binding_named(name)],
        namespaces=stage.namespaces,
        kinds=stage.kinds,
        user=UserInfo(mutations.user_of(name), groups=mutations.GROUPS),
        schemas=stage.schemas,
        kubernetes_version="1.36",
    )
    differing = {}
    for document in stage.objects:
        invocation_results = auditor.evaluate(document, operation="UPDATE")
        if not invocation_results:
            continue
        answer = mutations.updated(stage.server, document, mutations.user_of(name))
        if answer.status != LATER and not _as_predicted(invocation_results, document, answer):
            differing[where_of(document)] = (
                answer.status,
                dig(answer.body, "message"),
                invocation_results[0].check_results,
            )

    assert {} == differing


def _as_predicted(invocation_results: tuple[InvocationResult, ...], document: JsonObject, answer: Answer) -> bool:
    if answer.status != 200:
        return as_text(dig(answer.body, "message")) in set(_refusals(invocation_results))
    predicted, made, before = (
        _compared(result) for result in (_after(invocation_results, document), as_object(answer.body), document)
    )
    return (
        not [*_refusals(invocation_results)]
        and agrees(predicted, made, before)
        and is_same_json(made, before) is is_same_json(predicted, before)
    )


def _refusals(invocation_results: tuple[InvocationResult, ...]) -> Iterator[str]:
    for invocation_result in invocation_results:
        for check_result in invocation_result.check_results:
            if isinstance(check_result.outcome, Errored) and check_result.outcome.would_deny:
                yield check_result.outcome.message
                yield write_refusal(invocation_result.invocation, check_result.outcome)


def _after(invocation_results: tuple[InvocationResult, ...], document: JsonObject) -> JsonObject:
    mutated: Any = document
    for invocation_result in invocation_results:
        for check_result in invocation_result.check_results:
            if isinstance(check_result.outcome, WouldChange):
                patch = check_result.outcome.patch
                mutated = apply([PatchOperation(step.op, step.path, step.value) for step in patch], mutated)  # type: ignore[arg-type]
    return as_object(mutated)


def _compared(document: JsonObject) -> JsonObject:
    """An object without what a server counts and notes by itself."""
    metadata = {key: value for key, value in as_object(document["metadata"]).items() if key not in BOOKKEEPING}
    notes = as_object(metadata.get("annotations"))
    if isinstance(notes, Mapping) and COUNTER in notes:
        metadata["annotations"] = {key: value for key, value in notes.items() if key != COUNTER}
    return {**document, "metadata": metadata}
