"""A seeded part of the comparison of Pod Security with a real API server; `make nightly` makes ten thousand comparisons."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from scanner.model.json import as_list, as_text, dig
from scanner.policies.pod_security.labels import Mode
from scanner.policies.pod_security.standards import STANDARDS, Level
from tests.cli.conftest import Assay
from tests.integration.apiserver import ApiServer
from tests.integration.pod_security import Comparison, Document, Objects, judging

SEED = int(os.environ.get("RANDOM_SEED", "20261127"))
COMPARISONS = 250


@pytest.mark.parametrize("configured", [False, True], ids=["labels", "configuration"])
def test_the_server_answers_what_pod_security_is_expected_to(assets: Path, tmp_path: Path, *, configured: bool) -> None:
    """Refusals and warnings have the same texts, and the pods of templates are refused where it is expected."""
    with judging(assets, tmp_path, configured=configured) as (server, language):
        comparison = Comparison(server, language, Random(SEED))
        comparison.run(COMPARISONS)

    assert [] == comparison.tally.differences
    assert comparison.tally.refused > COMPARISONS / 10
    assert comparison.tally.warned > COMPARISONS / 10


SHOPS = int(os.environ.get("SHOPS", "4"))
PODS_EACH = int(os.environ.get("PODS_EACH", "15"))


@pytest.fixture(scope="module")
def shops(assets: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """A server with Pod Security, and random pods and workloads in namespaces that demand nothing."""
    with judging(assets, tmp_path_factory.mktemp("shops"), configured=False) as (server, _):
        objects = Objects(Random(SEED))
        for shop in range(SHOPS):
            create(
                server,
                "/api/v1/namespaces",
                {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name(shop)}},
            )
            for number in range(PODS_EACH):
                place, document = objects.document()
                document["metadata"]["name"] = f"{document['kind'].lower()}-{number}"
                path, plural = place.split(" ")
                create(server, f"{path}/namespaces/{name(shop)}/{plural}", document)
        yield server


def name(shop: int) -> str:
    """The name of a namespace."""
    return f"shop-{shop}"


def create(server: ApiServer, path: str, document: Document) -> None:
    """Create an object; one that the API does not store is left out."""
    assert server.request("POST", path, document).status in (201, 422)


def test_raised_labels_refuse_what_a_scan_lists(shops: ApiServer, assay: Assay) -> None:
    """The pods that a scan lists as refused are those that the server warns of when the label is raised, reason by reason."""
    warned: dict[str, set[str]] = {}
    for shop in range(SHOPS):
        level = Level.RESTRICTED if shop % 2 else Level.BASELINE
        patch: Document = {"metadata": {"labels": {Mode.ENFORCE.level_key: level.value}}}
        path = f"/api/v1/namespaces/{name(shop)}"
        answer = shops.client.request("PATCH", path, patch, content_type="application/merge-patch+json")
        assert answer.status == 200
        # The first line names the namespace and the level; each further one has a pod, and how many others are like it.
        warned[name(shop)] = {reasons for line in answer.warnings()[1:] for _, _, reasons in [line.partition(": ")]}
    ran = assay("scan", "--kubeconfig", shops.kubeconfig, "-o", "json", "-q", "--db", "shops.db")
    listed: dict[str, dict[str, list[str]]] = {name(shop): {} for shop in range(SHOPS)}
    for finding in sorted(
        as_list(ran.report["findings"]), key=lambda each: order(as_text(dig(each, "check", "expression")))
    ):
        if dig(finding, "wouldDeny"):
            place, pod = (as_text(dig(finding, "object", key)) for key in ("namespace", "name"))
            reason = as_text(dig(finding, "message")).partition(" (")[0]
            listed[place].setdefault(pod, []).append(reason)

    assert warned == {place: {", ".join(reasons) for reasons in pods.values()} for place, pods in listed.items()}
    assert any(warned.values())


def order(check: str) -> int:
    """The place of a check in the texts of the server."""
    return [each.id for each in STANDARDS].index(check)


def test_verify_parity_agrees_about_pods_and_workloads(shops: ApiServer, assay: Assay) -> None:
    """A dry-run create of each object has the refusals and the warnings that are expected."""
    ran = assay("verify-parity", "--kubeconfig", shops.kubeconfig, "-o", "json", "-q", "--sample", "1000")

    assert (0, []) == (ran.code, ran.report["differences"])
    assert ran.report["agreed"]
