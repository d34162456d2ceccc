"""Policies for several versions of a custom resource that a webhook converts: the server asks it, and a scan asks the server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from scanner.model.json import JsonObject, as_list, as_object, as_text, dig
from tests.cli.conftest import Assay
from tests.cluster.test_definitions import definition, version
from tests.integration.apiserver import ApiServer, running
from tests.integration.converting import converting
from tests.integration.made import namespace
from tests.integration.manifests import apply, wait_until_enforced
from tests.scan.test_custom_versions import OWN, bound, changing, telling

HERE = "shop"
TOLD = {
    "old": ("v1", "Equivalent", "shop.example/v1 heading v1v2"),
    "new": ("v2", "Equivalent", "shop.example/v2 title v2v2"),
    "old-exact": ("v1", "Exact", "shop.example/v1 heading v1v1"),
    "any": ("*", "Equivalent", "shop.example/v2 title v2v2"),
}


def schema(name: str) -> JsonObject:
    """The schema of a version with one field."""
    spec: JsonObject = {"type": "object", "properties": {name: {"type": "string"}}}
    return {"type": "object", "properties": {"spec": spec}}


def cog(name: str, api_version: str, field: str) -> JsonObject:
    """An object in a version."""
    metadata = {"name": name, "namespace": HERE}
    return {"apiVersion": f"shop.example/{api_version}", "kind": "Cog", "metadata": metadata, "spec": {field: name}}


@pytest.fixture(scope="module")
def server(assets: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """A server with an object of each version; v1 is the stored one."""
    folder = tmp_path_factory.mktemp("webhook")
    with running(assets, folder) as server, converting(folder) as conversion:
        versions = [version("v1", storage=True, schema=schema("heading")), version("v2", schema=schema("title"))]
        apply(server, [namespace(HERE), definition(*versions, conversion=conversion)])
        apply(server, [cog("written-old", "v1", "heading"), cog("written-new", "v2", "title")])
        told = [telling(name, named, how) for name, (named, how, _) in TOLD.items()]
        bindings = [bound(manifest) for manifest in told]
        for manifest in bindings:
            manifest["spec"]["validationActions"] = ["Warn"]
        apply(server, [*told, *bindings])
        wait_until_enforced(server)
        yield server


def test_every_policy_reads_the_answer_of_the_webhook(server: ApiServer, assay: Assay) -> None:
    """In every version that an object was written in."""
    ran = assay("scan", "--kubeconfig", server.kubeconfig, "-n", HERE, "-o", "json", "-q")
    findings = [as_object(finding) for finding in as_list(ran.report["findings"])]

    assert {(policy, name, text) for policy, (*_, text) in TOLD.items() for name in ("written-old", "written-new")} == {
        (as_text(finding["policy"]), as_text(dig(finding, "object", "name")), as_text(finding["message"]))
        for finding in findings
    }
    assert [] == ran.report["gaps"]


def test_verify_parity_agrees_with_the_webhook(server: ApiServer, assay: Assay) -> None:
    """Every verdict is replayed as a dry run in the version of its request."""
    ran = assay("verify-parity", "--kubeconfig", server.kubeconfig, "-n", HERE, "-o", "json", "-q")

    assert (0, [], []) == (ran.code, ran.report["differences"], ran.report["gaps"])


def test_a_mutation_that_a_webhook_would_convert_back_is_a_gap(server: ApiServer, assay: Assay) -> None:
    """Only a server can ask the webhook about an object that is not stored. The gap names the remedy."""
    apply(server, [changing("mutates-old", "v1", OWN), bound(changing("mutates-old", "v1", OWN))])
    ran = assay("scan", "--kubeconfig", server.kubeconfig, "-n", HERE, "-o", "json", "-q", "--policy", "mutates-old")

    assert [True] == [
        "a webhook converts shop.example/v1/Cog" in as_text(dig(gap, "why")) for gap in as_list(ran.report["gaps"])
    ]
