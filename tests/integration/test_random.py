"""A seeded random set of policies, bindings and objects: a scan has the results of the server, for creates and updates.

The policies come in batches, so that the warnings of one request stay below what a server cuts. Each batch is compared
twice: the findings of two scans with the answers to writes that this module sends, and by `assay verify-parity`.
RANDOM_SEED and RANDOM_POLICIES choose another set, or a larger one, which RANDOM_BATCH divides more finely.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

import pytest

from scanner.model.json import JsonObject, as_list, as_object, as_text, dig
from scanner.model.policy import Operation
from tests.cli.conftest import Assay
from tests.integration import generated
from tests.integration.apiserver import ApiServer, running
from tests.integration.client import Answer
from tests.integration.manifests import apply, collection_path, delete, violations, wait_until_enforced
from tests.integration.parity import MOST_WARNED, Failure, copy_of, failure_of, stored, where_of

SEED = int(os.environ.get("RANDOM_SEED", "20261121"))
POLICIES = int(os.environ.get("RANDOM_POLICIES", "105"))
BATCH = int(os.environ.get("RANDOM_BATCH", "35"))
OPERATIONS: tuple[Operation, ...] = ("CREATE", "UPDATE")
NEW_EVENTS = "events.k8s.io/v1"
VERSIONED = ("HorizontalPodAutoscaler", "Event", "Gizmo")
REFUSED = re.compile(
    r".*: ValidatingAdmissionPolicy '(?P<policy>[^']*)'(?: with binding '(?P<binding>[^']*)')? denied request: (?P<message>.*)",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Results:
    """The results of writing one object: all warnings, and the denial that the server names."""

    warned: frozenset[Failure]
    refused: frozenset[Failure]


@dataclass(frozen=True, slots=True)
class Stored:
    """An object as the server returns it, and where others of its kind are created."""

    document: JsonObject
    collection: str

    @property
    def where(self) -> str:
        """Kind, namespace and name of the object."""
        return where_of(self.document)

    def written(self, server: ApiServer, operation: Operation) -> Answer:
        """The answer to a dry-run create of a copy, or to a dry-run update that changes nothing."""
        params = {"dryRun": "All"}
        if operation == "CREATE":
            return server.request("POST", self.collection, copy_of(self.document), params)
        name = as_text(dig(self.document, "metadata", "name"))
        return server.request("PUT", f"{self.collection}/{name}", self.document, params)


@pytest.fixture(scope="module")
def server(assets: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """A server of our own."""
    with running(assets, tmp_path_factory.mktemp("random")) as server:
        yield server


@pytest.fixture(scope="module")
def objects(server: ApiServer) -> list[Stored]:
    """The random objects, in the version that the server prefers."""
    documents = list(generated.objects(Random(SEED)))
    apply(server, [generated.definition(), *documents])
    ours = {where_of(document) for document in documents}
    created = (
        item
        for item in stored(server, generated.SPECIAL)
        if where_of(item) in ours and item["apiVersion"] != NEW_EVENTS
    )
    return [Stored(item, collection_path(server, item)) for item in created]


@pytest.fixture(scope="module", params=range(0, POLICIES, BATCH))
def batch(server: ApiServer, objects: list[Stored], request: pytest.FixtureRequest) -> Iterator[list[JsonObject]]:
    """Some of the policies with their bindings, enforced during the tests that use them."""
    first: int = request.param
    names = [f"p{number}" for number in range(first, min(first + BATCH, POLICIES))]
    documents = list(generated.policies(Random(SEED + first), names))
    apply(server, documents)
    wait_until_enforced(server)
    yield documents
    for document in reversed(documents):
        delete(server, document)


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One database for all scans, which is made once."""
    return tmp_path_factory.mktemp("database") / "assay.db"


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_scan_says_what_the_server_says(
    server: ApiServer,
    objects: list[Stored],
    batch: list[JsonObject],
    operation: Operation,
    database: Path,
    assay: Assay,
) -> None:
    """The same warnings about the same objects, refusals of the same objects, and the reason that the server names."""
    exact = exact_ones(batch)
    results = {target.where: answered(target, target.written(server, operation), exact) for target in objects}
    flags = ("-o", "json", "-q", "--operation", operation.lower(), "--db", database)
    ran = assay("scan", "--kubeconfig", server.kubeconfig, *flags)
    predicted = {where: result for where, result in expected(ran.report, exact).items() if where in results}

    nothing = Results(frozenset(), frozenset())
    print(figures(operation, batch, results))  # noqa: T201 - what `pytest -s` is for
    assert {where: result.warned for where, result in results.items() if result.warned} == {
        where: result.warned for where, result in predicted.items() if result.warned
    }
    plain = [where for where in results if where.split()[0] not in VERSIONED]
    assert {place for place in plain if results[place].refused} == {
        place for place in plain if predicted.get(place, nothing).refused
    }
    assert all(result.refused <= predicted.get(where, nothing).refused for where, result in results.items())
    assert any(result.warned for result in results.values())
    assert len(objects) >= 50


def test_verify_parity_finds_no_difference(server: ApiServer, batch: list[JsonObject], assay: Assay) -> None:
    """Every verdict that a client can notice agrees, the objects in other versions included."""
    ran = assay("verify-parity", "--kubeconfig", server.kubeconfig, "-o", "json", "-q", "--sample", "40")

    print({key: ran.report[key] for key in ("objects", "writes", "comparable", "agreed")})  # noqa: T201 - for `pytest -s`
    assert [] == ran.report["differences"]
    assert 0 == ran.code
    assert isinstance(ran.report["comparable"], int)
    assert ran.report["comparable"] >= 100


def answered(target: Stored, answer: Answer, exact: frozenset[str]) -> Results:
    """The results in an answer, without those of `exact` policies about a kind with several versions."""
    warnings, where = answer.warnings(), target.where
    assert sum(map(len, warnings)) < MOST_WARNED, f"the server may have cut the warnings about {where}"
    refusal = REFUSED.fullmatch(as_text(dig(answer.body, "message")))
    assert refusal or answer.status in (200, 201, 409), f"{where}: {answer.status} {answer.body}"
    refused = [Failure(where, refusal["policy"], refusal["binding"] or "", refusal["message"])] if refusal else []
    warned = [
        Failure(where, violation.policy, violation.binding, violation.message) for violation in violations(warnings)
    ]
    return Results(kept(warned, exact), kept(refused, exact))


def expected(report: JsonObject, exact: frozenset[str]) -> dict[str, Results]:
    """The results that a scan predicts of the server, by object."""
    warned: dict[str, list[Failure]] = {}
    refused: dict[str, list[Failure]] = {}
    lenient = {
        dig(policy, "name") for policy in as_list(report["policies"]) if dig(policy, "failurePolicy") == "Ignore"
    }
    for finding in map(as_object, as_list(report["findings"])):
        if finding["outcome"] == "errored" and finding["policy"] in lenient:
            continue
        failure = failure_of(finding)
        if finding["wouldDeny"]:
            refused.setdefault(failure.where, []).append(unbound(failure))
        elif "Warn" in as_list(finding["actions"]):
            warned.setdefault(failure.where, []).append(failure)
    return {
        where: Results(kept(warned.get(where, []), exact), kept(refused.get(where, []), exact))
        for where in {*warned, *refused}
    }


def unbound(failure: Failure) -> Failure:
    """A denial because of an error in the policy itself does not name a binding."""
    return replace(failure, binding="") if failure.message.startswith("failed to configure policy: ") else failure


def kept(failures: Iterable[Failure], exact: frozenset[str]) -> frozenset[Failure]:
    """Without what depends on the version that the request names."""
    return frozenset(
        failure for failure in failures if not (failure.policy in exact and failure.where.split()[0] in VERSIONED)
    )


def exact_ones(batch: Iterable[JsonObject]) -> frozenset[str]:
    """The policies that see a request in one version only."""
    return frozenset(
        as_text(dig(document, "metadata", "name"))
        for document in batch
        if dig(document, "spec", "matchConstraints", "matchPolicy") == "Exact"
    )


def figures(operation: Operation, batch: Sequence[JsonObject], results: Mapping[str, Results]) -> str:
    """A sentence with the numbers of compared policies, objects and results."""
    policies = sum(as_text(document["kind"]).endswith("Policy") for document in batch)
    warned, refused = (sum(len(getattr(result, name)) for result in results.values()) for name in ("warned", "refused"))
    return (
        f"\n{operation}: {policies} policies, {len(results)} objects, {warned} warnings and {refused} refusals compared"
    )
