"""What workloads of a cluster could no longer do, where one object has several requests and several pods."""

from __future__ import annotations

from typing import Any

import pytest

from scanner.preview.rule_change import RuleChange
from scanner.preview.rule_preview import PreviewResult, preview
from scanner.scan.documents import Manifest
from scanner.scan.options import Options
from tests.documents import Document
from tests.preview.made import RuleSet, make_cluster, store
from tests.scan.fakes import NOON
from tests.shop import bind, mutation, vap

LABELS = {space: {"tier": "prod"} for space in ("shop", "team", "kube-system")}
ACCOUNT = store("ServiceAccount", "v1", "default", "shop", {})
SPEC = {"containers": [{"name": "c", "image": "web:1"}]}
RUNS = {"status": {"phase": "Running"}}


def rules(*documents: Document) -> RuleSet:
    """Policies and bindings, with a param that no policy reads."""
    param = {"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "none", "namespace": "shop"}}
    return RuleSet(documents, param, LABELS)


def flip(policies: list[Document], objects: list[Document], name: str = "strict") -> PreviewResult:
    """Preview the flip of a binding from Audit to Deny."""
    cluster = make_cluster(rules(*policies), [ACCOUNT, *objects])
    return preview(cluster, RuleChange(actions={name: ("Deny",)}), Options(), NOON)


def pod(name: str, owner: Document | None = None, **metadata: Any) -> Document:
    """A running pod."""
    if owner:
        names = {key: owner["metadata"][key] for key in ("name", "uid")}
        reference = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "controller": True, **names}
        metadata["ownerReferences"] = [reference]
    return store("Pod", "v1", name, "shop", {"spec": SPEC}, metadata) | RUNS


def stateful(name: str = "db", **metadata: Any) -> Document:
    """A StatefulSet of three replicas."""
    template = {"metadata": {"labels": {"app": name}}, "spec": SPEC}
    spec = {"replicas": 3, "serviceName": name, "selector": {"matchLabels": {"app": name}}, "template": template}
    return store("StatefulSet", "apps/v1", name, "shop", {"spec": spec}, metadata)


def strict(*resources: str, group: str = "", expression: str = "false") -> list[Document]:
    """A policy that is bound with Audit."""
    return [vap("strict", *resources, group=group, expression=expression), bind("strict", "Audit")]


def describe(result: PreviewResult) -> list[tuple[str, list[str], int | None, int, bool]]:
    """Each workload with its risks, replicas, running pods, and whether it has a controller."""
    return [
        (
            each.workload.name,
            [*map(str, (one.action for one in each.risks))],
            each.replicas,
            each.running,
            each.has_controller,
        )
        for each in result.workloads
    ]


def test_a_stuck_workload_keeps_its_replicas_and_running_pods() -> None:
    """Its finalizer is a request of its own, beside those of its pods."""
    owner = stateful(finalizers=["example.com/keep"])
    policies = [
        vap("strict", "pods", expression="false"),
        bind("strict", "Audit"),
        vap("others", "statefulsets", group="apps", expression="has(object.metadata.finalizers)"),
        bind("others", "Audit"),
    ]
    cluster = make_cluster(rules(*policies), [ACCOUNT, owner, pod("db-0", owner), pod("db-1", owner)])
    result = preview(cluster, RuleChange(actions={"strict": ("Deny",), "others": ("Deny",)}), Options(), NOON)

    assert [("db", ["recreate", "finalize"], 3, 2, True)] == describe(result)


def test_a_stuck_pod_without_a_controller_is_named() -> None:
    """Nothing recreates it, whether it has a finalizer or not."""
    result = flip(strict("pods"), [pod("alone", finalizers=["example.com/keep"])])

    assert [("alone", ["recreate", "finalize"], None, 1, False)] == describe(result)


def test_all_running_pods_of_an_operators_resource_count() -> None:
    """One of them stands for all, on this page and the next."""
    owner = {"apiVersion": "example.com/v1", "kind": "Database", "metadata": {"name": "orders", "uid": "u"}}
    result = flip(strict("pods"), [pod(f"orders-{number}", owner) for number in range(12)])

    assert [("orders", ["recreate"], None, 12, True)] == describe(result)


@pytest.mark.parametrize("refused", ["db-0", "db-3", "db-6"])
@pytest.mark.parametrize("of_operator", [False, True], ids=["StatefulSet", "operator"])
def test_the_refused_one_of_pods_that_differ_is_named(refused: str, of_operator: bool) -> None:  # noqa: FBT001 - a parameter of the test
    """Pods of a StatefulSet have names and claims of their own, and an operator makes pods of several kinds; on any page."""
    operated = {"apiVersion": "example.com/v1", "kind": "Database", "metadata": {"name": "db", "uid": "u"}}
    owner = operated if of_operator else stateful()
    objects = [pod(f"db-{number}", owner) for number in range(7)]
    result = flip(
        strict("pods", expression=f"object.metadata.name != '{refused}'"),
        objects if of_operator else [owner, *objects],
    )

    assert [("db", ["recreate"], None if of_operator else 3, 7, True)] == describe(result)
    assert [refused] == [risk.object.name for each in result.workloads for risk in each.risks]


def test_a_label_of_one_pod_of_a_replica_set_is_no_risk_of_its_workload() -> None:
    """The next pod is made from the template, and has no such label: only the pod is newly denied."""
    template = {"metadata": {"labels": {"app": "web"}}, "spec": SPEC}
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    owner = store("ReplicaSet", "apps/v1", "web", "shop", {"spec": spec})
    objects = [owner, pod("web-a", owner), pod("web-b", owner, labels={"debug": "yes"})]
    expression = "!has(object.metadata.labels) || !('debug' in object.metadata.labels)"
    result = flip(strict("pods", expression=expression), objects)

    assert ([], ["web-b"]) == (describe(result), [each.object.name for each in result.objects])


def test_a_pod_that_another_policy_refuses_is_no_new_risk() -> None:
    """It could not start before the change either. Only a policy that denies counts."""
    objects = [stateful()]
    audited = flip([*strict("pods"), vap("other", "pods"), bind("other", "Audit")], objects)
    denied = flip([*strict("pods"), vap("other", "pods"), bind("other", "Deny")], objects)

    assert [("db", ["recreate"], 3, 0, True)] == describe(audited)
    assert [] == describe(denied)


def test_a_pod_whose_service_account_is_gone_is_no_new_risk() -> None:
    """The plug-in ServiceAccount refuses it by any rules."""
    without = [each for each in [ACCOUNT, stateful()] if each["kind"] != "ServiceAccount"]
    cluster = make_cluster(rules(*strict("pods")), without)
    result = preview(cluster, RuleChange(actions={"strict": ("Deny",)}), Options(), NOON)

    assert [] == describe(result)


def test_a_pod_of_a_template_has_the_defaults_of_a_pod() -> None:
    """A template is stored without `enableServiceLinks`; the pod that is made of it has the default when a policy reads it."""
    expression = "!has(object.spec.enableServiceLinks) || !object.spec.enableServiceLinks"
    result = flip(strict("pods", expression=expression), [stateful()])

    assert [("db", ["recreate"], 3, 0, True)] == describe(result)


NAMES_POD = "Object{metadata: Object.metadata{labels: {'of': object.metadata.name}}}"


def test_a_controllers_pod_has_no_name_when_mutating_policies_read_it() -> None:
    """The server makes the name after them, also when a living pod is created again. A StatefulSet gives its pods names."""
    template = {"metadata": {"labels": {"app": "web"}}, "spec": SPEC}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    replicated = store("ReplicaSet", "apps/v1", "web", "shop", {"spec": spec})
    pods = [pod("web-b2c4d", replicated, generateName="web-"), pod("db-0", stateful(), generateName="db-")]
    expression = "object.metadata.labels.of == object.metadata.name"
    policies = [*strict("pods", expression=expression), *mutation("m", NAMES_POD, "pods")]
    cluster = make_cluster(rules(*policies), [ACCOUNT, replicated, stateful(), *pods])
    added = RuleChange(
        manifests=tuple(Manifest("m.yaml", each) for each in policies if each["kind"].startswith("Mutating"))
    )
    without = make_cluster(rules(), [ACCOUNT, replicated, stateful(), *pods])

    assert [] == describe(preview(cluster, RuleChange(actions={"strict": ("Deny",)}), Options(), NOON))
    assert [("web", ["recreate"], 1, 1, True)] == describe(preview(without, added, Options(), NOON))


def of_daemon_set(generation: str) -> Document:
    """A DaemonSet whose template is of a generation, without `hostNetwork`."""
    template = {"metadata": {"labels": {"app": "agent"}}, "spec": SPEC}
    spec = {"selector": {"matchLabels": {"app": "agent"}}, "template": template, "updateStrategy": {"type": "OnDelete"}}
    stored = store("DaemonSet", "apps/v1", "agent", "shop", {"spec": spec})
    annotations = {"deprecated.daemonset.template.generation": generation}
    return {**stored, "metadata": {**stored["metadata"], "annotations": annotations}}


@pytest.mark.parametrize(("revision", "expected"), [("db-old", [("db", ["recreate"], 3, 1, True)]), ("db-new", [])])
def test_pods_of_an_earlier_template_do_not_show_the_next_ones(revision: str, expected: list[Any]) -> None:
    """A StatefulSet with OnDelete makes the next pod of its new template, which the rule refuses."""
    labels = {"app": "db", "safe": "yes", "controller-revision-hash": revision}
    owner = stateful() | {"status": {"updateRevision": "db-new"}}
    expression = "'safe' in object.metadata.labels"
    result = flip(strict("pods", expression=expression), [owner, pod("db-0", owner, labels=labels)])

    assert expected == describe(result)


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        ({"type": "OnDelete"}, []),
        ({"rollingUpdate": {"partition": 0}}, []),
        ({"rollingUpdate": {"partition": 1}}, [("db", ["recreate"], 3, 1, True)]),
    ],
)
def test_a_pod_of_an_earlier_template_is_no_risk_if_the_next_one_passes(
    strategy: Document, expected: list[Any]
) -> None:
    """A StatefulSet makes a pod below its partition of the earlier template again."""
    owner = stateful() | {"status": {"updateRevision": "db-new"}}
    owner["spec"]["updateStrategy"] = strategy
    owner["spec"]["template"]["metadata"]["labels"]["safe"] = "yes"
    living = pod("db-0", owner, labels={"app": "db", "controller-revision-hash": "db-old"})

    assert expected == describe(flip(strict("pods", expression="'safe' in object.metadata.labels"), [owner, living]))


@pytest.mark.parametrize(("generation", "expected"), [("1", [("agent", ["recreate"], None, 1, True)]), ("2", [])])
def test_a_daemon_set_tells_its_template_by_a_generation(generation: str, expected: list[Any]) -> None:
    """Its pods have the generation of theirs as a label."""
    labels = {"app": "agent", "safe": "yes", "pod-template-generation": generation}
    owner = of_daemon_set("2")
    expression = "'safe' in object.metadata.labels"
    result = flip(strict("pods", expression=expression), [owner, pod("agent-x", owner, labels=labels)])

    assert expected == describe(result)


def test_a_workload_that_a_mutating_policy_refuses_could_not_start_again() -> None:
    """A mutation that fails denies the request, as a check does."""
    policies = mutation(
        "m", "Object{metadata: Object.metadata{labels: {'of': object.metadata.labels['team']}}}", "pods"
    )
    added = RuleChange(manifests=tuple(Manifest("m.yaml", each) for each in policies))
    result = preview(make_cluster(rules(), [ACCOUNT, stateful()]), added, Options(), NOON)

    assert [("db", ["recreate"], 3, 0, True)] == describe(result)


def test_a_param_as_it_is_in_the_cluster_is_no_change() -> None:
    """Only the policy that reads it differs."""
    kind = {"apiVersion": "v1", "kind": "ConfigMap"}
    param = store("ConfigMap", "v1", "limit", "shop", {"data": {"max": "5"}})
    bare = {key: param[key] for key in ("apiVersion", "kind", "data")} | {
        "metadata": {"name": "limit", "namespace": "shop"}
    }
    policy = vap("strict", "pods", expression="params.data.max == '4'", paramKind=kind)
    ref = {"name": "limit", "namespace": "shop", "parameterNotFoundAction": "Deny"}
    cluster = make_cluster(rules(policy, bind("strict", paramRef=ref)), [ACCOUNT, param])
    changes = [
        preview(cluster, RuleChange(manifests=(Manifest("p.yaml", each),)), Options(), NOON).causes
        for each in (bare, {**bare, "data": {"max": "4"}})
    ]

    assert [[], ["data.max"]] == [[field.path for cause in causes for field in cause.fields] for causes in changes]


def with_template(kind: str, version: str, spec: Document) -> Document:
    """A workload named `web`, with an annotation that its ReplicaSets get, and one that they do not get."""
    annotations = {"team": "red", "deployment.kubernetes.io/revision": "3"}
    return store(kind, version, "web", "shop", {"spec": spec}, {"annotations": annotations})


TEMPLATE = {"metadata": {"labels": {"app": "web"}}, "spec": SPEC}
CRON_JOB = with_template(
    "CronJob",
    "batch/v1",
    {
        "schedule": "* * * * *",
        "jobTemplate": {
            "metadata": {"labels": {"made": "yes"}},
            "spec": {"template": {"spec": {**SPEC, "restartPolicy": "Never"}}},
        },
    },
)
DEPLOYMENT = with_template(
    "Deployment",
    "apps/v1",
    {
        "replicas": 8,
        "selector": {"matchLabels": {"app": "web"}},
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%"}},
        "template": TEMPLATE,
    },
)


@pytest.mark.parametrize(
    ("workload", "resources", "group", "expression", "action"),
    [
        (CRON_JOB, "jobs", "batch", "object.metadata.labels.made != 'yes'", "recreate"),
        (CRON_JOB, "jobs", "batch", "request.userInfo.username.endsWith(':cronjob-controller') == false", "recreate"),
        (CRON_JOB, "jobs", "batch", "object.metadata.ownerReferences[0].name != 'web'", "recreate"),
        (DEPLOYMENT, "replicasets", "apps", "!('pod-template-hash' in object.spec.selector.matchLabels)", "update"),
        (
            DEPLOYMENT,
            "replicasets",
            "apps",
            "request.userInfo.username.endsWith(':deployment-controller') == false",
            "update",
        ),
        (DEPLOYMENT, "replicasets", "apps", "object.spec.replicas != 2", "update"),
        (DEPLOYMENT, "replicasets", "apps", "object.metadata.annotations.team != 'red'", "update"),
        (
            DEPLOYMENT,
            "replicasets",
            "apps",
            "object.metadata.annotations['deployment.kubernetes.io/revision'] != '4'",
            "update",
        ),
    ],
)
def test_the_next_object_between_a_workload_and_its_pods_is_a_request(
    workload: Document, resources: str, group: str, expression: str, action: str
) -> None:
    """A CronJob whose Job is refused starts no pod; a Deployment whose ReplicaSet is refused cannot be rolled out."""
    result = flip(strict(resources, group=group, expression=expression), [workload])

    assert [("web", [action])] == [(name, actions) for name, actions, *_ in describe(result)]


@pytest.mark.parametrize("workload", [CRON_JOB, DEPLOYMENT], ids=["CronJob", "Deployment"])
def test_the_next_object_that_passes_is_no_risk(workload: Document) -> None:
    """A rule that it satisfies."""
    resources, group = ("jobs", "batch") if workload is CRON_JOB else ("replicasets", "apps")

    assert () == flip(strict(resources, group=group, expression="size(object.metadata.name) > 0"), [workload]).workloads


@pytest.mark.parametrize("revision", ["", "three", "9" * 5_000])
def test_the_annotation_of_a_revision_may_be_any_text(revision: str) -> None:
    """People can write it; what is no number counts as none, and no object is missing for it."""
    annotations = {"deployment.kubernetes.io/revision": revision}
    annotated = store(
        "Deployment", "apps/v1", "web", "shop", {"spec": DEPLOYMENT["spec"]}, {"annotations": annotations}
    )
    revised = "object.metadata.annotations['deployment.kubernetes.io/revision'] != '1'"
    result = flip(strict("replicasets", group="apps", expression=revised), [annotated])

    assert ([("web", ["update"])], ()) == ([(name, actions) for name, actions, *_ in describe(result)], result.gaps)


def test_a_note_names_the_webhooks_without_which_templates_were_decided() -> None:
    """A template that passes has no row, and a webhook could change its pod so that it does not."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    others = {**rule, "resources": ["services"]}
    webhooks = [
        {"name": name, "rules": [each]} for name, each in (("inject.example.com", rule), ("other.example.com", others))
    ]
    group = "admissionregistration.k8s.io/v1"
    configuration = store("MutatingWebhookConfiguration", group, "mesh", "", {"webhooks": webhooks})
    result = flip(strict("pods", expression="has(object.spec.containers)"), [DEPLOYMENT, configuration])
    without = flip(strict("services"), [DEPLOYMENT, configuration])

    assert ((), ()) == (result.workloads, without.notes)
    [note] = result.notes
    assert "without the webhooks that may change pods: inject.example.com of mesh. " in note


@pytest.mark.parametrize("expression", ["!request.dryRun", "request.options.fieldManager == 'argocd'"])
def test_what_the_client_of_a_request_chooses_is_undecided(expression: str) -> None:
    """Objects are compared as in a dry run, so a rule that leaves out dry runs would seem to change nothing."""
    owner = stateful()
    spec = strict("pods", expression="false")
    spec[0]["spec"]["matchConditions"] = [{"name": "client", "expression": expression}]
    result = flip(spec, [owner, pod("db-0", owner)])

    assert ["policy strict"] == [gap.where for gap in result.gaps]
    assert [False] == [each.is_refused for risks in result.workloads for each in risks.risks]
