"""The table of sources of refusals equals what was installed on real clusters: a vendor's, one with Kyverno, and one with Gatekeeper.

No controller runs: their definitions and objects are small ones of our own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from scanner.model.json import Json, JsonObject
from tests.cli.conftest import Assay
from tests.command import Ran
from tests.integration.apiserver import ApiServer, running
from tests.integration.definitions import DEFINITIONS, FREE, definition
from tests.integration.made import ADMISSION, binding, labelled, may, namespace, policy
from tests.integration.manifests import apply
from tests.policies.kyverno.made import policy as kyverno_policy

AUDITOR = "auditor"
CONSTRAINTS = "constraints.gatekeeper.sh"
OF_KYVERNO = (
    ("policies.kyverno.io", "MutatingPolicy", "mutatingpolicies", "Cluster"),
    ("policies.kyverno.io", "ImageValidatingPolicy", "imagevalidatingpolicies", "Cluster"),
    ("kyverno.io", "ClusterPolicy", "clusterpolicies", "Cluster"),
    ("kyverno.io", "CleanupPolicy", "cleanuppolicies", "Namespaced"),
)


def vendors() -> list[JsonObject]:
    """A policy with the marks of Gateway API, one of the user's own, and a webhook whose server is not there."""
    name = "safe-upgrades.gateway.networking.k8s.io"
    marks: Json = {
        "gateway.networking.k8s.io/bundle-version": "v1.5.0",
        "gateway.networking.k8s.io/channel": "standard",
    }
    marked: JsonObject = {**policy(name, "configmaps"), "metadata": {"name": name, "annotations": marks}}
    rule: Json = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["DELETE"], "resources": ["configmaps"]}
    unseen = policy("unseen", "configmaps", matchConstraints={"resourceRules": [rule]})
    quota: Json = {"hard": {"pods": "10"}}
    limits: Json = {"limits": [{"type": "Container", "default": {"cpu": "1"}}]}
    return [
        namespace("shop"),
        labelled("ConfigMap", "own", "plain", namespace="shop"),
        labelled("ResourceQuota", "none", "small", namespace="shop", spec=quota),
        labelled("ResourceQuota", "none", "smaller", namespace="shop", spec=quota),
        labelled("LimitRange", "none", "usual", namespace="shop", spec=limits),
        marked,
        binding(name),
        policy("own", "configmaps"),
        binding("own"),
        policy("idle", "configmaps"),
        unseen,
        binding("unseen"),
        webhooks("broken", called("broken.example.com")),
    ]


def called(name: str, **fields: Any) -> JsonObject:
    """A webhook about a kind that is not there, whose server is not there either."""
    rule = {"apiGroups": ["example.com"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["widgets"]}
    client = {"service": {"namespace": "nowhere", "name": "nothing"}}
    common = {"sideEffects": "None", "admissionReviewVersions": ["v1"], "clientConfig": client}
    return {"name": name, "rules": [rule], **common, **fields}


def webhooks(name: str, *hooks: JsonObject) -> JsonObject:
    """A configuration of validating webhooks."""
    return {
        "apiVersion": ADMISSION,
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [*hooks],
    }


def custom(group: str, kind: str, name: str, *, place: str = "", **fields: Any) -> JsonObject:
    """An object of a custom kind."""
    version = "v1beta1" if group == CONSTRAINTS else "v1"
    metadata: Any = {"name": name, **({"namespace": place} if place else {})}
    return {"apiVersion": f"{group}/{version}", "kind": kind, "metadata": metadata, **fields}


def constraint_definition(kind: str, fields: Any = None) -> Any:
    """The definition of a kind of constraints."""
    return definition(CONSTRAINTS, ("v1beta1",), kind, kind.lower(), "Cluster", fields or {"spec": FREE})


def generated(kind: str, name: str) -> list[JsonObject]:
    """A policy as Gatekeeper generates from a template, and its binding for a constraint."""
    of_params: Json = {"apiVersion": f"{CONSTRAINTS}/v1beta1", "kind": kind}
    reference: Json = {"name": name, "parameterNotFoundAction": "Allow"}
    made = f"gatekeeper-{kind.lower()}"
    return [
        policy(made, "configmaps", expression="params != null", paramKind=of_params),
        binding(made, paramRef=reference),
    ]


def static(directory: Path) -> list[str]:
    """The flags with which an API server reads a policy from a file, which is written to a directory."""
    name = "no-labels.static.k8s.io"
    files = directory / "static"
    files.mkdir()
    tie = binding(name, validationActions=["Deny"])
    documents = [policy(name, "configmaps"), tie]
    (files / "policies.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": documents}))
    configuration: Any = {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyConfiguration",
        "staticManifestsDir": str(files),
    }
    plugin = {"name": "ValidatingAdmissionPolicy", "configuration": configuration}
    path = directory / "admission.json"
    whole = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration", "plugins": [plugin]}
    path.write_text(json.dumps(whole))
    return [f"--admission-control-config-file={path}", "--feature-gates=ManifestBasedAdmissionControlConfig=true"]


def scan(server: ApiServer, assay: Assay, *flags: str, user: str = "admin", output: str = "json") -> Ran:
    """Scan into a database of the test's own."""
    return assay("scan", "--kubeconfig", server.kubeconfig_for(user), "--db", "assay.db", "-o", output, "-q", *flags)


def states(ran: Ran) -> dict[str, tuple[str, int, int]]:
    """The state of each source, with the numbers of its judged and named objects."""
    report: Any = ran.report
    return {source["name"]: (source["state"], source["judged"], source["named"]) for source in report["sources"]}


def parts(ran: Ran, name: str) -> list[tuple[str, int | None, str]]:
    """The parts of a source: what, number, state."""
    report: Any = ran.report
    return [
        (part["what"], part["number"], part["state"])
        for source in report["sources"]
        if source["name"] == name
        for part in source["parts"]
    ]


@pytest.fixture(scope="module")
def vendor(assets: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """A cluster with a vendor's policy, quotas and a broken webhook."""
    with running(assets, tmp_path_factory.mktemp("vendor")) as server:
        apply(server, [*vendors(), *may(AUDITOR, "reads", "configmaps", "namespaces")])
        yield server


@pytest.fixture(scope="module")
def kyverno(assets: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """A cluster with Kyverno's definitions, and objects of most of them."""
    with running(assets, tmp_path_factory.mktemp("kyvernos")) as server:
        kinds = [
            definition(group, ("v1",), kind, plural, scope, {"spec": FREE}) for group, kind, plural, scope in OF_KYVERNO
        ]
        apply(server, [namespace("team"), *(definition(*fields) for fields in DEFINITIONS[:2]), *kinds])
        validate: Any = {"spec": {"rules": [{"name": "r", "validate": {"failureAction": "Enforce"}}]}}
        apply(
            server,
            [
                kyverno_policy("true", name="owned"),
                *(custom("policies.kyverno.io", "MutatingPolicy", f"m{number}", spec={}) for number in range(3)),
                custom("kyverno.io", "ClusterPolicy", "older", **validate),
                custom("kyverno.io", "CleanupPolicy", "old", place="team", spec={}),
            ],
        )
        yield server


@pytest.fixture(scope="module")
def gatekeeper(assets: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """A cluster with Gatekeeper's constraints, a policy that it generated, and a policy in a file of the API server."""
    directory = tmp_path_factory.mktemp("gatekeeper")
    with running(assets, directory, flags=static(directory)) as server:
        apply(server, [namespace("shop"), constraint_definition("NeedsLabel"), constraint_definition("AllowedRepo")])
        constraint: Any = {"spec": {"enforcementAction": "dryrun"}}
        apply(
            server,
            [
                custom(CONSTRAINTS, "NeedsLabel", "owner", spec={}),
                custom(CONSTRAINTS, "NeedsLabel", "team", **constraint),
                custom(CONSTRAINTS, "AllowedRepo", "ours", spec={"enforcementAction": "deny"}),
                *generated("NeedsLabel", "owner"),
            ],
        )
        yield server


def test_the_cluster_of_a_vendor(vendor: ApiServer, assay: Assay) -> None:
    """Judged policies, one that no stored object shows, a webhook that does not answer, and limits."""
    ran = scan(vendor, assay)

    assert {
        "validatingAdmissionPolicies": ("named", 2, 1),
        "mutatingAdmissionPolicies": ("none", 0, 0),
        "podSecurity": ("none", 0, 0),
        "podSecurityDefaults": ("notVisible", 0, 0),
        "controlPlanePolicies": ("notVisible", 0, 0),
        "webhooks": ("named", 0, 1),
        "quotasAndLimitRanges": ("named", 0, 3),
    } == states(ran)
    assert [("ResourceQuota", 2, "named"), ("LimitRange", 1, "named")] == parts(ran, "quotasAndLimitRanges")
    assert "1 of them refuses what a program does not answer" in str(ran.report["outside"])


def test_the_terminal_names_what_was_not_judged(vendor: ApiServer, assay: Assay) -> None:
    """In one line, and the verdict speaks of judged policies alone."""
    shown = scan(vendor, assay, "--policy", "own", output="table").stdout.decode()

    (line,) = (line for line in shown.splitlines() if line.startswith("Sources"))
    assert "not judged: 1 webhook configuration, 3 quotas and limit ranges; not visible: ValidatingAdm" in line


def test_the_vendor_of_a_policy_is_shown_with_its_mark(vendor: ApiServer, assay: Assay) -> None:
    """In JSON, in the summary and in the list of policies."""
    report: Any = scan(vendor, assay).report
    shown = assay("report", "last", "--db", "assay.db").stdout.decode()
    listed = assay("policies", "--db", "assay.db").stdout.decode()

    mark = "annotated with gateway.networking.k8s.io/bundle-version=v1.5.0"
    found = [policy["vendor"] for policy in report["policies"] if policy["vendor"]]
    assert [{"name": "Gateway API", "mark": mark}] == found
    assert "Vendors   1 bound policy was installed by a vendor" in shown
    assert f"Gateway API ({mark})" in listed


def test_a_source_that_may_not_be_listed_is_not_visible(vendor: ApiServer, assay: Assay) -> None:
    """With the right that would show it; the scan is complete as far as quotas and webhooks go."""
    ran = scan(vendor, assay, user=AUDITOR)

    report: Any = ran.report
    shown = {source["name"]: source["shownBy"] for source in report["sources"]}
    assert ("notVisible", "notVisible", "notVisible") == tuple(
        states(ran)[name][0] for name in ("validatingAdmissionPolicies", "webhooks", "quotasAndLimitRanges")
    )
    assert "the right to list resourcequotas; the right to list limitranges" == shown["quotasAndLimitRanges"]
    assert "the right to list validatingwebhookconfigurations.admissionregistration.k8s.io" in shown["webhooks"]
    assert "resourcequotas" not in str(report["gaps"])


def test_generated_roles_grant_these_rights(vendor: ApiServer, assay: Assay) -> None:
    """`assay rbac generate` grants them, as optional ones."""
    printed = assay("rbac", "generate", "--kubeconfig", vendor.kubeconfig).stdout.decode()

    assert ("resourcequotas" in printed, "limitranges" in printed) == (True, True)


def test_the_kinds_of_kyverno(kyverno: ApiServer, assay: Assay) -> None:
    """Each kind that the cluster serves, with its number; those that are evaluated are judged."""
    ran = scan(kyverno, assay)

    assert ("named", 1, 5) == states(ran)["kyverno"]
    assert [
        ("bound policies", 1, "judged"),
        ("CleanupPolicy (kyverno.io)", 1, "named"),
        ("ImageValidatingPolicy (policies.kyverno.io)", 0, "none"),
        ("ClusterPolicy of kyverno.io", 1, "named"),
        ("MutatingPolicy (policies.kyverno.io)", 3, "named"),
    ] == parts(ran, "kyverno")


def test_the_constraints_of_gatekeeper(gatekeeper: ApiServer, assay: Assay) -> None:
    """The policy that Gatekeeper generated is judged, and so is the constraint that it has as param."""
    ran = scan(gatekeeper, assay)

    assert [
        ("admission policies with constraints as params (gatekeeper-needslabel)", 1, "judged"),
        ("AllowedRepo (constraints.gatekeeper.sh)", 1, "named"),
        ("NeedsLabel (constraints.gatekeeper.sh)", 1, "judged"),
        ("NeedsLabel (constraints.gatekeeper.sh)", 1, "named"),
    ] == parts(ran, "gatekeeper")
    assert ("named", 2, 2) == states(ran)["gatekeeper"]


def test_policies_of_the_control_plane(gatekeeper: ApiServer, assay: Assay) -> None:
    """The API server refuses by a policy that its API does not list. It is judged when its file is added."""
    refused = gatekeeper.request(
        "POST", "/api/v1/namespaces/shop/configmaps", labelled("ConfigMap", "no-labels.static.k8s.io", "a")
    )
    hidden = scan(gatekeeper, assay)
    added = scan(gatekeeper, assay, "-f", str(gatekeeper.directory / "static" / "policies.json"))

    assert (422, "no-labels.static.k8s.io" in str(refused.body)) == (refused.status, True)
    assert "static.k8s.io" not in str(hidden.report["policies"])
    assert ("notVisible", 0, 0) == states(hidden)["controlPlanePolicies"]
    assert ("judged", 1, 0) == states(added)["controlPlanePolicies"]


def test_hostile_sources(assets: Path, tmp_path: Path, assay: Assay) -> None:
    """Imitated kinds, one with another shape; webhooks without a rule, and 500 of them: counted, and no error."""
    with running(assets, tmp_path) as server:
        text = {"type": "string"}
        imitated = [
            constraint_definition("ValidatingWebhookConfiguration", {"spec": text}),
            definition(
                "policies.kyverno.io", ("v1",), "ValidatingPolicy", "validatingpolicies", "Cluster", {"spec": text}
            ),
            definition("policies.kyverno.io", ("v1",), "Surprise", "surprises", "Namespaced", {"spec": text}),
        ]
        apply(server, [namespace("shop"), *imitated])
        many = [webhooks(f"hook-{number}", called(f"h{number}.example.com")) for number in range(500)]
        apply(
            server,
            [
                custom(CONSTRAINTS, "ValidatingWebhookConfiguration", "guard", spec="deny"),
                custom("policies.kyverno.io", "ValidatingPolicy", "odd", spec="deny"),
                custom("policies.kyverno.io", "Surprise", "odd", place="shop", spec="5 objects"),
                webhooks("empty", called("no-rule.example.com", rules=[])),
                webhooks("nothing"),
                *many,
            ],
        )
        ran = scan(server, assay, "--html", "pages")

    found = states(ran)
    assert [
        ("ValidatingWebhookConfiguration", 500, "named"),
        ("ValidatingWebhookConfiguration", 2, "none"),
        ("MutatingWebhookConfiguration", 0, "none"),
    ] == parts(ran, "webhooks")
    assert [("ValidatingWebhookConfiguration (constraints.gatekeeper.sh)", 1, "named")] == parts(ran, "gatekeeper")
    assert ("Surprise (policies.kyverno.io)", 1, "named") in parts(ran, "kyverno")
    assert ("named", 0, 2) == found["kyverno"]
