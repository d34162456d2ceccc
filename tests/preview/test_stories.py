"""Changes of rules that break clusters: the preview finds what they break before they are made, and names first what runs today."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from jsonschema import Draft202012Validator

from tests.command import assay_here
from tests.documents import Document, rule
from tests.preview.made import store
from tests.shop import bind, namespace, vap

SCHEMA: Final = json.loads((Path(__file__).parents[2] / "docs" / "preview.schema.json").read_text())
BARE: Final[Document] = {"containers": [{"name": "c", "image": "example.com/app:1"}]}
LIMITED: Final[Document] = {"containers": [{**BARE["containers"][0], "resources": {"limits": {"cpu": "2"}}}]}
LIMITS: Final = "object.spec.containers.all(c, has(c.resources) && has(c.resources.limits))"
NAMED: Final = re.compile(r"\b[A-Z]\w+ [\w-]+/[\w-]+")
ENFORCE: Final = "pod-security.kubernetes.io/enforce"


@dataclass(frozen=True)
class Told:
    """What a preview prints: the workloads that a terminal names after the change, in one line, the end, and the JSON report."""

    text: str
    verdict: str
    report: Any

    @property
    def first(self) -> str:
        """The workload that is named first."""
        named = NAMED.search(self.text)
        return named.group() if named else ""

    @property
    def workloads(self) -> list[tuple[str, int | None, int, list[str]]]:
        """Each workload of the report: its name, the replicas, those that run, and its risks as `recreate observed`."""
        return [
            (
                "/".join((each["workload"]["kind"], each["workload"]["name"])),
                each["replicas"],
                each["running"],
                [f"{risk['action']} {risk['certainty']}" for risk in each["risks"]],
            )
            for each in self.report["workloads"]
        ]


Tell = Callable[..., Told]


@pytest.fixture
def tell(tmp_path: Path) -> Tell:
    """Preview a change of a cluster with some documents; `files` are those that the flags name."""

    def told(documents: list[Document], *flags: str, files: Mapping[str, Document] | None = None) -> Told:
        for name, document in (files or {}).items():
            (tmp_path / name).write_text(json.dumps(document))
        (tmp_path / "cluster.yaml").write_text("\n---\n".join(map(json.dumps, documents)))
        text, rows = (
            assay_here("preview", "-q", "--against", "cluster.yaml", *flags, "-o", form, home=tmp_path)
            for form in ("table", "json")
        )
        assert (0, 0) == (text.code, rows.code), (text.stderr, rows.stderr, rows.stdout)
        Draft202012Validator(SCHEMA).validate(rows.report)
        _, workloads, *_, end, _ = (" ".join(part.split()) for part in text.stdout.decode().split("\n\n"))
        return Told(workloads, end, rows.report)

    return told


def team(name: str, **labels: str) -> list[Document]:
    """The namespace of a team, with its service account."""
    return [namespace(name, team=name, **labels), store("ServiceAccount", "v1", "default", name, {})]


def workload(kind: str, name: str, within: str, pods: int, spec: Document, **fields: Any) -> list[Document]:
    """A workload of a team with so many pods, all of which run; with none it sleeps."""
    template = {"metadata": {"labels": {"app": name}}, "spec": spec}
    body = {"replicas": pods, "selector": {"matchLabels": {"app": name}}, "template": template, **fields}
    documents = [store(kind, "apps/v1", name, within, {"spec": body})]
    if kind == "Deployment":
        documents += [store("ReplicaSet", "apps/v1", f"{name}-7d4", within, {"spec": body}, owned_by(documents[0]))]
    owner = documents[-1]
    names = [f"{owner['metadata']['name']}-{number}" for number in range(pods)]
    claims = [each["metadata"]["name"] for each in fields.get("volumeClaimTemplates", [])]
    return [*documents, *(pod(each, within, {**spec, "volumes": mount(claims, each)}, owner) for each in names)]


def mount(claims: list[str], name: str) -> list[Document]:
    """The volumes that the StatefulSet controller gives a pod of this name."""
    return [{"name": each, "persistentVolumeClaim": {"claimName": f"{each}-{name}"}} for each in claims]


def pod(name: str, within: str, spec: Document, owner: Document | None = None) -> Document:
    """A pod that runs, of a controller or of none."""
    metadata = owned_by(owner) if owner else {}
    return store("Pod", "v1", name, within, {"spec": spec}, metadata) | {"status": {"phase": "Running"}}


def owned_by(owner: Document) -> Document:
    """The metadata of an object that a controller owns."""
    names = {key: owner["metadata"][key] for key in ("name", "uid")}
    reference = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "controller": True, **names}
    return {"ownerReferences": [reference]}


PAYMENTS: Final = [*team("payments"), *workload("Deployment", "api", "payments", 3, BARE)]
"""A team whose only Deployment has three pods without limits."""
ONE: Final = "1 workload of 1 team could not start again"


def kyverno(action: str) -> Document:
    """The rule about limits as a policy of Kyverno."""
    match = {"resourceRules": [rule("pods")]}
    checks = [{"expression": LIMITS, "message": "limits says no"}]
    return {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": "ValidatingPolicy",
        "metadata": {"name": "limits"},
        "spec": {"matchConstraints": match, "validations": checks, "validationActions": [action]},
    }


FLIPS: Final[Mapping[str, tuple[list[Document], tuple[str, ...], list[str]]]] = {
    "ValidatingAdmissionPolicy": (
        [vap("limits", "pods", expression=LIMITS), bind("limits", "Audit")],
        ("--action", "limits=Deny"),
        [],
    ),
    "Kyverno": (
        [kyverno("Audit")],
        ("-f", "deny.json"),
        ["update stored", "edit stored"],
    ),
}
"""The rules, the flags of the change, and the risks besides, which autogen's rules about templates make."""


@pytest.mark.parametrize(("rules", "flags", "besides"), FLIPS.values(), ids=FLIPS)
def test_the_outage_is_found_before_the_flip(
    tell: Tell, rules: list[Document], flags: tuple[str, ...], besides: list[str]
) -> None:
    """Audit becomes Deny: every pod lives on, and none comes back. Payments run today, so they are first; what sleeps follows."""
    sleeping = [*team("analytics"), *workload("Deployment", "reports", "analytics", 0, BARE)]
    healthy = [*team("web"), *workload("Deployment", "front", "web", 2, LIMITED)]
    told = tell([*sleeping, *PAYMENTS, *healthy, *rules], *flags, files={"deny.json": kyverno("Deny")})

    assert ("Deployment payments/api", True) == (told.first, "payments, 3 of 3 replicas run" in told.text)
    assert "limits says no" in told.text
    assert [
        ("Deployment/api", 3, 3, ["recreate observed", *besides]),
        ("Deployment/reports", 0, 0, ["recreate template", *besides]),
    ] == told.workloads
    assert "2 workloads of 2 teams could not start again; 1 of them runs today." in told.verdict
    assert {"newlyDenied"} == {each["difference"] for each in told.report["objects"]}


def test_a_pod_of_a_stateful_set_that_can_never_come_back_is_found(tell: Tell) -> None:
    """The claims of a StatefulSet cannot be edited: no change of its template brings the pod back."""
    claim = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
    ledger = workload(
        "StatefulSet", "ledger", "payments", 3, LIMITED, serviceName="ledger", volumeClaimTemplates=[claim]
    )
    expression = "object.spec.volumes.all(v, !has(v.persistentVolumeClaim) || v.persistentVolumeClaim.claimName.startsWith('gold-'))"
    rules = [vap("claims", "pods", expression=expression), bind("claims", "Audit")]
    told = tell([*PAYMENTS, *ledger, *rules], "--action", "claims=Deny")

    assert [("StatefulSet/ledger", 3, 3, ["recreate observed"])] == told.workloads
    assert "StatefulSet payments/ledger" == told.first
    assert "claims says no" in told.text
    assert ONE in told.verdict


def test_a_team_that_a_label_brings_into_scope_is_named(tell: Tell) -> None:
    """The rule denies for the namespaces of production: one more is labelled so, and the team beside it is left alone."""
    match = {"namespaceSelector": {"matchLabels": {"tier": "prod"}}}
    other = [*team("web"), *workload("Deployment", "front", "web", 2, BARE)]
    rules = [vap("limits", "pods", expression=LIMITS, match=match), bind("limits")]
    told = tell([*other, *PAYMENTS, *rules], "--namespace-label", "payments=tier=prod")

    assert ("Deployment payments/api", True) == (told.first, "limits says no" in told.text)
    assert [("Deployment/api", 3, 3, ["recreate observed"])] == told.workloads
    assert ["payments"] * 3 == [each["namespace"] for each in told.report["objects"]]
    assert ["--namespace-label: Namespace payments"] == told.report["objects"][0]["policies"][0]["causes"]
    assert ONE in told.verdict


def test_a_param_that_is_tightened_names_what_exceeds_it(tell: Tell) -> None:
    """The policy and the binding stay: the cause is the field of the param, and the row names the param."""
    param: Document = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "sizes", "namespace": "payments"},
        "data": {"max": "4"},
    }
    policy = vap(
        "sizes",
        "pods",
        expression="object.spec.containers.all(c, int(c.resources.limits.cpu) <= int(params.data.max))",
        paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
    )
    ref = {"name": "sizes", "namespace": "payments", "parameterNotFoundAction": "Deny"}
    cluster = [*team("payments"), *workload("Deployment", "api", "payments", 3, LIMITED), param]
    tight = {"tight.json": {**param, "data": {"max": "1"}}}
    told = tell([*cluster, policy, bind("sizes", paramRef=ref)], "--param", "tight.json", files=tight)

    assert ("Deployment payments/api", True) == (told.first, "with payments/sizes: sizes says no" in told.text)
    assert [("Deployment/api", 3, 3, ["recreate observed"])] == told.workloads
    (cause,) = told.report["changes"]
    assert [("data.max", "4", "1")] == [(each["path"], each["before"], each["after"]) for each in cause["fields"]]
    assert ONE in told.verdict


def test_an_error_that_was_ignored_denies_after_the_change(tell: Tell) -> None:
    """With `Ignore` an expression that errs admits; with `Fail` it denies every pod on which it errs, with the error as the message."""
    expression = "object.spec.containers[0].resources.limits.cpu != '7'"
    before, after = (vap("limits", "pods", expression=expression, failurePolicy=each) for each in ("Ignore", "Fail"))
    healthy = [*team("web"), *workload("Deployment", "front", "web", 2, LIMITED)]
    told = tell([*healthy, *PAYMENTS, before, bind("limits")], "-f", "fail.json", files={"fail.json": after})

    message = f"expression '{expression}' resulted in error: no such key: limits"
    assert ("Deployment payments/api", True) == (told.first, message in told.text)
    assert [("Deployment/api", 3, 3, ["recreate observed"])] == told.workloads
    assert message == told.report["workloads"][0]["risks"][0]["decisions"][0]["message"]
    assert ONE in told.verdict


def test_the_runners_that_should_repair_the_rule_are_named(tell: Tell) -> None:
    """Runners of an operator, a runner without a controller, and those that start when a pipeline does: none could run the repair."""
    runner = {
        "apiVersion": "ci.example.com/v1",
        "kind": "Runner",
        "metadata": {"name": "builds", "uid": "uid-of-builds"},
    }
    runners = [pod("builds-0", "ci", BARE, runner), pod("shell", "ci", BARE)]
    sleeping = workload("Deployment", "agents", "ci", 0, BARE)
    rules = [vap("limits", "pods", expression=LIMITS), bind("limits", "Audit")]
    told = tell([*sleeping, *team("ci"), *runners, *rules], "--action", "limits=Deny")

    assert [
        ("Pod/shell", None, 1, ["recreate observed"]),
        ("Runner/builds", None, 1, ["recreate observed"]),
        ("Deployment/agents", 0, 0, ["recreate template"]),
    ] == told.workloads
    assert ["Pod ci/shell", "Runner ci/builds", "Deployment ci/agents"] == NAMED.findall(told.text)
    assert "no controller: nothing recreates it" in told.text
    assert "3 workloads of 1 team could not start again; 2 of them run today." in told.verdict


def test_a_raised_level_of_pod_security_names_what_runs_below_it(tell: Tell) -> None:
    """The pods of the probe live on below the level that their namespace demands; the check that they fail is a line."""
    probe = workload("Deployment", "probe", "payments", 2, {**BARE, "hostNetwork": True})
    told = tell([*PAYMENTS, *probe], "--namespace-label", f"payments={ENFORCE}=baseline")

    assert ["Deployment payments/probe"] == NAMED.findall(told.text)
    assert "enforce-baseline-latest): host namespaces (hostNetwork=true)" in told.text
    assert [("Deployment/probe", 2, 2, ["recreate observed"])] == told.workloads
    assert {"newlyDenied", "podsNewlyDenied", "newlyWarned"} == {each["difference"] for each in told.report["objects"]}
    assert ONE in told.verdict
