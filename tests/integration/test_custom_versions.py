"""Policies for several versions of one custom resource, as a real API server combines them.

The definition has no webhook: the server changes the apiVersion alone. Both versions have a field and a default of their own.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from scanner.api import Auditor
from scanner.cluster.live.cluster import LiveCluster
from scanner.model.json import Json, JsonObject, as_list, as_object, as_text, dig
from scanner.model.resource import Kind, resource_of
from scanner.mutate.schema import Schemas
from scanner.mutate.storing import read_request
from scanner.policies.mutating.together import list_invocations, try_orders
from tests.cli.conftest import Assay
from tests.integration import mutations
from tests.integration.apiserver import ApiServer, running
from tests.integration.made import namespace
from tests.integration.manifests import apply, wait_until_enforced
from tests.scan.test_custom_versions import AGAIN, ALSO, NOTHING, OTHER, OWN, bound, changing, cog, defined, telling

HERE = "shop"
PATH = "/apis/shop.example"
SECONDS_TO_MUTATE = 45.0
ASKED = 8
FAILS = "[JSONPatch{op: 'remove', path: '/metadata/absent'}]"
READS = (
    "[JSONPatch{op: 'add', path: '/metadata/labels', value: {'fields': object.spec.map(key, key).sort().join('.') + '.' + "
    "object.apiVersion.split('/')[1]}}]"
)
TOLD: tuple[tuple[str, ...], ...] = (
    ("old", "v1", "Equivalent"),
    ("new", "v2", "Equivalent"),
    ("old-exact", "v1", "Exact"),
    ("new-exact", "v2", "Exact"),
    ("any", "*", "Equivalent"),
    ("bound-to-old", "v2", "Equivalent"),
    ("any-bound-to-old", "*", "Exact"),
    ("plain-in-new", "v1", "Exact", "plain"),
    ("another-in-new", "v1", "Exact", "another"),
)
BOUND_TO_OLD: Json = {
    "matchPolicy": "Exact",
    "resourceRules": [
        {"apiGroups": ["shop.example"], "apiVersions": ["v1"], "operations": ["*"], "resources": ["cogs"]}
    ],
}
SCENARIOS: dict[str, tuple[JsonObject, ...]] = {
    "one-in-old": (changing("a", "v1", OWN),),
    "reads-old": (changing("a", "v1", READS),),
    "reads-new": (changing("a", "v2", READS),),
    "both-in-new": (changing("a", "v2", OWN), changing("b", "v2", ALSO)),
    "both-in-old": (changing("a", "v1", OWN), changing("b", "v1", ALSO)),
    "own-and-other": (changing("a", "v2", OWN), changing("b", "v1", OTHER)),
    "other-is-nothing": (changing("a", "v2", OWN), changing("b", "v1", NOTHING)),
    "own-is-nothing": (changing("a", "v1", OWN), changing("b", "v2", NOTHING)),
    "again": (changing("a", "v2", ALSO, **AGAIN), changing("b", "v1", NOTHING)),
    "again-joined": (changing("a", "v2", ALSO, **AGAIN), changing("b", "v1", OTHER)),
    "both-again": (changing("a", "v2", ALSO, **AGAIN), changing("b", "v1", ALSO.replace("also", "too"), **AGAIN)),
    "three": (changing("a", "v2", OWN), changing("b", "v1", ALSO), changing("c", "v2", ALSO.replace("also", "third"))),
    "other-fails": (changing("a", "v2", OWN), changing("b", "v1", FAILS, failurePolicy="Ignore")),
    "other-denies": (changing("a", "v2", OWN), changing("b", "v1", FAILS)),
    "condition-of-other": (
        changing("a", "v2", OWN),
        changing("b", "v1", OTHER, matchConditions=[{"name": "x", "expression": "!has(object.metadata.labels)"}]),
    ),
}


def named(scenario: str, policies: tuple[JsonObject, ...]) -> Iterator[JsonObject]:
    """The policies of a scenario, for the object that bears its name alone."""
    for manifest in policies:
        name = f"{scenario}-{as_text(dig(manifest, 'metadata', 'name'))}"
        spec = as_object(manifest["spec"])
        own: Json = {"name": "its-own", "expression": f'object.metadata.name == "{scenario}"'}
        conditions = [own, *as_list(spec.get("matchConditions"))]
        yield {**manifest, "metadata": {"name": name}, "spec": {**spec, "matchConditions": conditions}}


@dataclass(frozen=True, slots=True)
class Stage:
    """A server, its kinds and its schemas."""

    server: ApiServer
    kinds: tuple[Kind, ...]
    schemas: Schemas

    @property
    def versions(self) -> tuple[Kind, Kind]:
        """The preferred version of cogs, and the other."""
        new, old = (kind for kind in self.kinds if kind.plural == "cogs")
        return new, old

    def cog(self, name: str, version: str = "v2") -> JsonObject:
        """An object as the server returns it in a version."""
        return as_object(self.server.request("GET", f"{PATH}/{version}/namespaces/{HERE}/cogs/{name}").body)


@pytest.fixture(scope="module")
def stage(assets: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A server with an object for each scenario; objects come first, and are stored as they are written."""
    with running(assets, tmp_path_factory.mktemp("custom-versions")) as server:
        objects = [_without_uid(cog(name, "v1", title=name, old="o", new="n")) for name in (*SCENARIOS, "plain")]
        apply(server, [namespace(HERE), defined(), *objects])
        manifests = [manifest for name, policies in SCENARIOS.items() for manifest in named(name, policies)]
        told = [telling(*named_so) for named_so in TOLD]
        for manifest in told:
            manifest["spec"]["matchConditions"] = [{"name": "plain", "expression": 'object.metadata.name == "plain"'}]
        apply(server, [*manifests, *told])
        apply(server, [_warning(bound(manifest)) for manifest in (*manifests, *told)])
        wait_until_enforced(server)
        live = LiveCluster(kubeconfig=str(server.kubeconfig))
        stage = Stage(server, live.discover().kinds, live.schemas())
        _wait_until_mutating(stage)
        yield stage


def _warning(manifest: JsonObject) -> JsonObject:
    """The binding, with a warning instead of a denial: every verdict is then in the response.

    Those of the policies that are bound to the old version alone are narrowed to it.
    """
    spec = as_object(manifest["spec"])
    if "validationActions" not in spec:
        return manifest
    to_old: JsonObject = (
        {"matchResources": BOUND_TO_OLD} if as_text(spec["policyName"]).endswith("bound-to-old") else {}
    )
    return {**manifest, "spec": {**spec, **to_old, "validationActions": ["Warn"]}}


def _without_uid(document: JsonObject) -> JsonObject:
    metadata = {key: value for key, value in as_object(document["metadata"]).items() if key != "uid"}
    return {**document, "metadata": metadata}


def _wait_until_mutating(stage: Stage) -> None:
    """The plug-in reads policies and bindings from streams of their own: the first and the last must have come."""
    deadline = time.monotonic() + SECONDS_TO_MUTATE
    for name in ("one-in-old", "three", "reads-new", "both-again"):
        while not _labels_after(stage, name):
            assert time.monotonic() < deadline, f"no policy acts on {name}"
            time.sleep(0.2)


def _labels_after(stage: Stage, name: str) -> JsonObject:
    """The labels in the response to a dry-run update that changes nothing."""
    return as_object(dig(mutations.updated(stage.server, stage.cog(name), "admin").body, "metadata", "labels"))


def predicted(stage: Stage, name: str) -> set[str]:
    """The labels, or the denial, for every order of the policies of a scenario."""
    policies = [*named(name, SCENARIOS[name])]
    auditor = Auditor(
        policies=policies,
        bindings=[bound(manifest) for manifest in policies],
        kinds=stage.kinds,
        schemas=stage.schemas,
        kubernetes_version="1.36",
    )
    new, old = stage.versions
    context = replace(auditor.context.replace_operations(("UPDATE",)), relabelled=frozenset({old}))
    schema = stage.schemas.schema(new)
    assert schema
    resource = resource_of(new, read_request(schema, stage.cog(name)))
    acting = [
        (policy, invocation_result)
        for policy in auditor.bound
        for invocation_result in list_invocations(policy, resource, new, context)
    ]
    return {answer.refusal or shown(answer.after) for answer in try_orders(acting)}


def shown(document: JsonObject) -> str:
    """The labels and the spec of an object."""
    labels = as_object(dig(document, "metadata", "labels"))
    return f"{document['apiVersion']} {sorted(labels.items())} {sorted(as_object(document['spec']).items())}"


def test_the_versions_differ_in_fields_and_defaults(stage: Stage) -> None:
    """Each list shows the fields of its version: no list of the other version can stand for it. A request adds the defaults."""
    assert ("v2", "v1") == tuple(kind.version for kind in stage.versions)
    assert ["new", "title"] == sorted(as_object(stage.cog("plain")["spec"]))
    written = as_object(mutations.updated(stage.server, stage.cog("plain"), "admin").body)
    assert ["new", "title", "weight"] == sorted(as_object(written["spec"]))
    assert ["colour", "new", "old", "title"] == sorted(as_object(stage.cog("plain", "v1")["spec"]))


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_server_combines_the_versions_as_predicted(stage: Stage, name: str) -> None:
    """Every response is that of an order of the policies."""
    expected = predicted(stage, name)
    document = stage.cog(name)
    responses = (mutations.updated(stage.server, document, "admin") for _ in range(ASKED))
    seen = {
        shown(as_object(answer.body)) if answer.status == 200 else as_text(dig(answer.body, "message"))
        for answer in responses
    }

    assert set() == seen - expected


def test_a_scan_finds_the_changes_in_every_version(stage: Stage, assay: Assay) -> None:
    """One policy in another version has the change that the server makes; where the order matters, the report says so."""
    ran = assay("scan", "--kubeconfig", stage.server.kubeconfig, "-n", HERE, "-o", "json", "-q")
    findings = [as_object(finding) for finding in as_list(ran.report["findings"])]
    ordered = {
        as_text(dig(finding, "object", "name")) for finding in findings if dig(finding, "drift", "orderMatters") is True
    }

    assert {name for name in SCENARIOS if len(predicted(stage, name)) > 1} == ordered
    assert [] == ran.report["gaps"]


def test_a_scan_reads_what_the_server_shows_to_each_policy(stage: Stage, assay: Assay) -> None:
    """The messages of all policies are the server's warnings to a no-op update in the version of each request."""
    ran = assay("scan", "--kubeconfig", stage.server.kubeconfig, "-n", HERE, "-o", "json", "-q")
    findings = [as_object(finding) for finding in as_list(ran.report["findings"])]
    violated = [finding for finding in findings if finding["outcome"] == "violated"]
    ours = {as_text(finding["policy"]): as_text(finding["message"]) for finding in violated}

    assert {
        "old": "shop.example/v1 new,title,weight v1v2",
        "new": "shop.example/v2 new,title,weight v2v2",
        "any": "shop.example/v2 new,title,weight v2v2",
        "old-exact": "shop.example/v1 colour,new,old,title v1v1",
        "new-exact": "shop.example/v2 new,title,weight v2v2",
        "bound-to-old": "shop.example/v2 colour,new,old,title v2v1",
        "any-bound-to-old": "shop.example/v1 colour,new,old,title v1v1",
        "plain-in-new": "shop.example/v2 new,title,weight v2v2",
        "another-in-new": "shop.example/v1 colour,new,old,title v1v1",
    } == ours
    assert len(TOLD) == len(violated)
    warned = [
        warning
        for version in ("v1", "v2")
        for warning in mutations.updated(stage.server, stage.cog("plain", version), "admin").warnings()
    ]
    assert [] == [message for message in ours.values() if not any(message in warning for warning in warned)]


def test_verify_parity_agrees_about_every_version(stage: Stage, assay: Assay) -> None:
    """Every verdict is replayed as a dry run in the version of its request."""
    ran = assay(
        "verify-parity", "--kubeconfig", stage.server.kubeconfig, "-n", HERE, "-o", "json", "-q", "--sample", "100"
    )

    assert (0, [], []) == (ran.code, ran.report["differences"], ran.report["gaps"])
