"""`assay preview` with files as the cluster: what a change of rules would change, its causes, its gates, and its two directions."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from tests.cli.conftest import Assay
from tests.documents import Document
from tests.shop import bind, config_map, mutation, namespace, vap

SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "preview.schema.json").read_text())
FORMATS = ("table", "json", "markdown", "html")
ENFORCE = "pod-security.kubernetes.io/enforce"
Save = Callable[..., str]
Preview = Callable[..., Any]


@pytest.fixture
def save(home: Path) -> Save:
    """Write documents into a file of the home; returns its name."""

    def write(name: str, *documents: Document) -> str:
        (home / name).write_text(yaml.safe_dump_all(documents))
        return name

    return write


@pytest.fixture
def preview(assay: Assay, save: Save) -> Preview:
    """Preview a change of the documents of a cluster; returns the JSON report."""

    def run(documents: list[Document], *flags: str) -> Any:
        save("cluster.yaml", namespace(), *documents)
        report: Any = assay("preview", "-q", "--against", "cluster.yaml", "-o", "json", *flags).report
        Draft202012Validator(SCHEMA).validate(report)
        return report

    return run


def pod(name: str = "web", **spec: Any) -> Document:
    """A Pod in the shop."""
    containers = [{"name": "c", "image": "web:1", **spec.pop("container", {})}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"containers": containers, **spec},
    }


def differences(report: Any) -> dict[str, str]:
    """The worst difference of each object."""
    return {f"{each['kind']}/{each['name']}": each["difference"] for each in report["objects"]}


def causes(report: Any) -> set[str]:
    """The causes of all differences."""
    return {cause for each in report["objects"] for one in each["policies"] for cause in one["causes"]}


STRICT = [vap("strict", "configmaps", expression="object.data.size == 'small'"), bind("strict", "Audit")]
BIG = config_map("big", data={"size": "big"})
SMALL = config_map("small", data={"size": "small"})


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (("--action", "strict=Deny"), "newlyDenied"),
        (("--action", "strict=Warn,Audit"), "newlyWarned"),
        (("--bind", "strict"), "newlyDenied"),
        (("--bind", "strict=Warn"), "newlyWarned"),
        (("--without", "strict"), "noLongerAudited"),
        (("--without", "ValidatingAdmissionPolicyBinding/strict"), "noLongerAudited"),
    ],
)
def test_a_flag_changes_what_becomes_of_an_object(preview: Preview, flags: tuple[str, str], expected: str) -> None:
    """The object that passes is not listed, and the cause names the flag."""
    report = preview([*STRICT, BIG, SMALL], *flags)

    assert {"ConfigMap/big": expected} == differences(report)
    assert 2 == report["examined"]
    assert all(cause.startswith(flags[0]) for cause in causes(report))


def test_a_policy_without_a_binding_gets_one(preview: Preview) -> None:
    """`--bind` puts it into force."""
    report = preview([vap("lax", "configmaps"), BIG], "--bind", "lax=Deny")

    assert {"ConfigMap/big": "newlyDenied"} == differences(report)
    assert "absent" == report["changes"][0]["fields"][0]["before"]


def test_the_values_of_both_sides_stand_beside_the_changed_field(preview: Preview, save: Save) -> None:
    """An expression that is tightened: the message, the deciding value, and the field of the file."""
    save("new.yaml", vap("strict", "configmaps", expression="object.data.size == 'tiny'"))
    report = preview([*STRICT[:1], bind("strict", "Deny"), SMALL], "-f", "new.yaml")
    (each,) = report["objects"]

    assert ("none", "denied") == (each["policies"][0]["before"]["effect"], each["policies"][0]["after"]["effect"])
    assert '"small"' == each["policies"][0]["after"]["findings"][0]["values"][0]["value"]
    assert ["spec.validations[0].expression"] == [field["path"] for field in report["changes"][0]["fields"]]


def test_a_param_tightened_denies(preview: Preview, save: Save) -> None:
    """The objects that the new value denies, because of the file of the param."""
    kind = {"apiVersion": "v1", "kind": "ConfigMap"}
    rules = [
        vap("limits", "pods", expression="object.spec.priority <= int(params.data.max)", paramKind=kind),
        bind("limits", paramRef={"name": "limit", "namespace": "shop", "parameterNotFoundAction": "Deny"}),
        config_map("limit", data={"max": "5"}),
    ]
    save("param.yaml", config_map("limit", data={"max": "2"}))
    report = preview([*rules, pod("low", priority=1), pod("high", priority=4)], "--param", "param.yaml")

    assert {"Pod/high": "newlyDenied"} == differences(report)
    assert {"param.yaml:3: ConfigMap limit"} == causes(report)


def test_a_label_of_a_namespace_raises_pod_security(preview: Preview) -> None:
    """A privileged pod is newly denied, a plain one is not."""
    privileged = pod("root", container={"securityContext": {"privileged": True}})
    report = preview([pod(), privileged], "--namespace-label", f"shop={ENFORCE}=baseline")

    assert {"Pod/root": "newlyDenied"} == differences(report)


def test_a_label_of_a_namespace_brings_a_team_into_scope(preview: Preview) -> None:
    """A policy that selects namespaces by label concerns the objects of the namespace that gets the label."""
    match = {"namespaceSelector": {"matchLabels": {"tier": "prod"}}}
    report = preview(
        [vap("strict", "configmaps", match=match), bind("strict"), BIG], "--namespace-label", "shop=tier=prod"
    )

    assert {"ConfigMap/big": "newlyDenied"} == differences(report)


def test_an_expression_that_errs_denies_with_fail(preview: Preview, save: Save) -> None:
    """A failurePolicy from Ignore to Fail."""
    erring = vap("strict", "configmaps", expression="object.data.none == 'x'", failurePolicy="Ignore")
    save("new.yaml", {**erring, "spec": {**erring["spec"], "failurePolicy": "Fail"}})
    report = preview([erring, bind("strict"), BIG], "-f", "new.yaml")

    assert {"ConfigMap/big": "newlyDenied"} == differences(report)
    assert "failed" == report["objects"][0]["policies"][0]["before"]["effect"]


def test_an_object_that_another_policy_denies_is_not_newly_denied(preview: Preview) -> None:
    """It is denied by one more policy, and the other one is named."""
    report = preview([*STRICT, vap("other", "configmaps"), bind("other"), BIG], "--action", "strict=Deny")

    assert {"ConfigMap/big": "alreadyDenied"} == differences(report)
    assert ["other"] == report["objects"][0]["deniedBeforeAndAfterBy"]


def test_a_mutation_that_changes_is_a_difference(preview: Preview, save: Save) -> None:
    """The patches of both sides."""
    label = 'Object{{metadata: Object.metadata{{labels: {{"team": "{}"}}}}}}'
    save("new.yaml", mutation("label", label.format("blue"), "configmaps")[0])
    report = preview([*mutation("label", label.format("red"), "configmaps"), BIG], "-f", "new.yaml")

    assert {"ConfigMap/big": "mutatedOtherwise"} == differences(report)


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_shows_hostile_names_as_text(assay: Assay, save: Save, form: str) -> None:
    """No control character and no markup of a message reaches the reader."""
    hostile = vap("strict", "configmaps")
    hostile["spec"]["validations"][0]["message"] = "\x1b[31m<script>alert(1)</script>|`x`"
    save("cluster.yaml", namespace(), hostile, bind("strict", "Audit"), BIG)
    ran = assay("preview", "-q", "--against", "cluster.yaml", "--action", "strict=Deny", "-o", form)

    assert 0 == ran.code
    assert "\x1b" not in ran.stdout.decode()
    assert form not in ("markdown", "html") or "<script>" not in ran.stdout.decode()


@pytest.mark.parametrize(
    ("flags", "code"),
    [
        (("--fail-on", "newly-denied"), 1),
        (("--fail-on", "newly-warned"), 1),
        (("--fail-on", "changed"), 1),
        ((), 0),
    ],
)
def test_a_gate_is_opt_in(assay: Assay, save: Save, flags: tuple[str, ...], code: int) -> None:
    """Without `--fail-on` a preview describes."""
    save("cluster.yaml", namespace(), *STRICT, BIG)
    assert code == assay("preview", "-q", "--against", "cluster.yaml", "--action", "strict=Deny", *flags).code


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ((), "nothing is changed"),
        (("--action", "none=Deny"), "no binding with actions has that name"),
        (("--action", "strict=Refuse"), "the actions are Deny, Warn, Audit"),
        (("--action", "strict=Deny,Warn"), "both Deny and Warn"),
        (("--action", "strict=Deny", "--action", "strict=Warn"), "strict has other actions already: Deny"),
        (("--bind", "strict", "--bind", "strict=Warn"), "strict has other actions already: Deny"),
        (("--namespace-label", f"shop={ENFORCE}=high"), "must be one of privileged, baseline, restricted"),
        (("--bind", "none"), "there is no such policy"),
        (("--without", "none"), "There are: strict"),
        (("--namespace-label", "none=a=b"), "namespace none is not in the cluster"),
        (("--param", "policy.yaml"), "name its file with -f"),
        (("-f", "map.yaml"), "no policy has params of this kind"),
        (("-f", "wrong.yaml"), "spec.validations"),
    ],
)
def test_a_change_of_nothing_is_an_error(assay: Assay, save: Save, flags: tuple[str, ...], words: str) -> None:
    """A typing error must not look like a change without consequences."""
    save("cluster.yaml", namespace(), *STRICT, BIG)
    save("policy.yaml", STRICT[0])
    save("map.yaml", SMALL)
    wrong = vap("strict", "configmaps")
    save("wrong.yaml", {**wrong, "spec": {**wrong["spec"], "validations": [{"message": "no expression"}]}})
    ran = assay("preview", "-q", "--against", "cluster.yaml", *flags)

    assert 2 == ran.code
    assert words in " ".join(ran.stderr.split())


def test_a_flag_that_is_given_twice_counts_once(assay: Assay, save: Save) -> None:
    """The policy is removed by the first one."""
    save("cluster.yaml", namespace(), *STRICT, BIG)
    ran = assay("preview", "-q", "--against", "cluster.yaml", "--without", "strict", "--without", "strict")

    assert 0 == ran.code, ran.stderr


def test_what_a_snapshot_withholds_is_undecided(assay: Assay, save: Save) -> None:
    """A check that may read the data of a Secret decides nothing: exit code 3, with every gate."""
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "s", "namespace": "shop"},
        "data": {"a": "Yg=="},
    }
    save(
        "cluster.yaml",
        namespace(),
        vap("strict", "secrets", expression="object.data.a == 'x'"),
        bind("strict", "Audit"),
        secret,
    )
    assay("scan", "-q", "--from", "cluster.yaml", "--snapshot", "one.snapshot")
    ran = assay("preview", "-q", "--against", "one.snapshot", "--action", "strict=Deny", "-o", "json")

    assert 3 == ran.code
    assert {"Secret/s": "undecided"} == differences(ran.report)


def test_a_kind_that_is_missing_from_a_snapshot_is_a_gap(assay: Assay, save: Save) -> None:
    """The scan that made it had no policy about Pods, and listed none."""
    save("cluster.yaml", namespace(), *STRICT, BIG, pod())
    save("new.yaml", vap("new", "pods"), bind("new"))
    assay("scan", "-q", "--from", "cluster.yaml", "--snapshot", "one.snapshot")
    ran = assay("preview", "-q", "--against", "one.snapshot", "-f", "new.yaml", "-o", "json")

    assert 3 == ran.code
    report: Any = ran.report
    assert "v1/Pod" == report["gaps"][0]["where"]


def test_a_scan_with_an_assumed_binding_names_the_preview(assay: Assay, save: Save) -> None:
    """The command that replaces the flag, which runs."""
    save("cluster.yaml", namespace(), vap("lax", "configmaps"), BIG)
    ran = assay("scan", "--from", "cluster.yaml", "--assume-bound", "lax=Warn")

    assert "Use instead: assay preview --bind lax=Warn --against cluster.yaml" in " ".join(ran.stderr.split())
    assert 0 == assay("preview", "-q", "--bind", "lax=Warn", "--against", "cluster.yaml").code


def test_a_cause_names_the_line_of_the_file(assay: Assay, home: Path, save: Save) -> None:
    """An editor and a comment on a pull request lead to it."""
    save("cluster.yaml", namespace(), pod("a"), vap("strict", "pods", expression="true"), bind("strict", "Deny"))
    changed = yaml.safe_dump(vap("strict", "pods", expression="false"))
    (home / "change.yaml").write_text(f"# The new rule.\n---\n{changed}")
    ran = assay("preview", "-q", "-f", "change.yaml", "--against", "cluster.yaml", "-o", "json")
    (cause,) = json.loads(ran.stdout)["changes"]
    (field,) = cause["fields"]

    line = next(number for number, text in enumerate(changed.splitlines(), 3) if "expression" in text)
    assert ("spec.validations[0].expression", line) == (field["path"], field["line"])
    text = assay("preview", "-q", "-f", "change.yaml", "--against", "cluster.yaml").stdout.decode()
    assert f"change.yaml:{line}: ValidatingAdmissionPolicy strict" in text


# Workloads: what they could no longer do.


def owned(kind: str, name: str, uid: str) -> dict[str, Any]:
    """The metadata of an object that a controller owns."""
    group = "batch/v1" if kind == "Job" else "apps/v1"
    return {"ownerReferences": [{"apiVersion": group, "kind": kind, "name": name, "uid": uid, "controller": True}]}


def workload(kind: str, name: str, uid: str, **metadata: Any) -> Document:
    """A workload of the group apps in the shop, with the template of a pod."""
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "c", "image": "web:1"}]}}
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": name}}, "template": template}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "shop", "uid": uid, **metadata},
        "spec": spec,
    }


def running(name: str, **metadata: Any) -> Document:
    """A Pod that runs."""
    living = pod(name, nodeName="n1")
    living["metadata"] |= {"uid": f"uid-{name}", **metadata}
    return living | {"status": {"phase": "Running"}}


LIMITS = vap("limits", "pods", expression="object.spec.containers.all(c, has(c.resources) && has(c.resources.limits))")
WEB = [
    workload("Deployment", "web", "d"),
    workload("ReplicaSet", "web-1", "r", **owned("Deployment", "web", "d")),
    running("web-1-a", **owned("ReplicaSet", "web-1", "r")),
]


def risks(report: Any) -> dict[str, list[str]]:
    """What each workload could no longer do, and how sure that is."""
    return {
        f"{each['workload']['kind']}/{each['workload']['name']}": [
            f"{risk['action']} {risk['certainty']}" for risk in each["risks"]
        ]
        for each in report["workloads"]
    }


def test_what_runs_and_could_not_start_again_is_first(preview: Preview) -> None:
    """A flip from Audit to Deny: a living pod of a Deployment, a pod without a controller, then a workload without pods."""
    documents = [*WEB, running("alone"), workload("StatefulSet", "db", "s"), LIMITS, bind("limits", "Audit")]
    report = preview(documents, "--action", "limits=Deny")

    assert [
        ("Deployment/web", ["recreate observed"]),
        ("Pod/alone", ["recreate observed"]),
        ("StatefulSet/db", ["recreate template"]),
    ] == list(risks(report).items())
    assert [(2, 1, True), (None, 1, False), (2, 0, True)] == [
        (each["replicas"], each["running"], each["hasController"]) for each in report["workloads"]
    ]


@pytest.mark.parametrize(
    ("flags", "user"),
    [
        ((), "system:serviceaccount:kube-system:replicaset-controller"),
        (("--controllers-as", "controller-manager"), "system:kube-controller-manager"),
    ],
)
def test_a_check_of_the_requester_is_decided_by_the_controller(
    preview: Preview, flags: tuple[str, ...], user: str
) -> None:
    """The pods of a Deployment are created by its controller, and not by the user of the preview."""
    strict = vap("limits", "pods", expression=f"request.userInfo.username != '{user}'")
    report = preview([*WEB, strict, bind("limits", "Audit")], "--action", "limits=Deny", *flags)

    assert {"Deployment/web": ["recreate observed"]} == risks(report)
    assert user == report["workloads"][0]["risks"][0]["user"]


def test_an_object_whose_finalizers_cannot_be_removed_is_stuck(preview: Preview) -> None:
    """The update without finalizers is refused, and so are edits. The controller updates the status alone."""
    stuck = workload("StatefulSet", "db", "s", finalizers=["example.com/keep"])
    strict = vap("labelled", "statefulsets", group="apps", expression="has(object.metadata.labels)")
    report = preview([stuck, strict, bind("labelled", "Audit")], "--action", "labelled=Deny")

    assert {"StatefulSet/db": ["finalize stored", "edit stored"]} == risks(report)


def test_a_deployment_cannot_scale_if_its_replica_set_cannot_be_updated(preview: Preview) -> None:
    """The Deployment controller updates the ReplicaSet, and nothing updates a ReplicaSet without a Deployment."""
    strict = vap("labelled", "replicasets", group="apps", expression="has(object.metadata.labels)")
    documents = [*WEB[:2], workload("ReplicaSet", "alone", "a"), strict, bind("labelled", "Audit")]

    found = risks(preview(documents, "--action", "labelled=Deny"))
    assert {"Deployment/web": ["update stored"], "ReplicaSet/alone": ["edit stored"]} == found


def test_a_policy_that_compares_with_the_old_object_lets_it_be_edited(preview: Preview) -> None:
    """A ratcheting rule denies a new object, and no update that leaves the old value."""
    expression = "has(object.metadata.labels) || (oldObject != null && !has(oldObject.metadata.labels))"
    strict = vap("labelled", "statefulsets", group="apps", expression=expression)
    documents = [workload("StatefulSet", "db", "s"), strict, bind("labelled", "Audit")]

    assert {} == risks(preview(documents, "--action", "labelled=Deny"))


def test_a_mutation_before_the_check_decides_about_new_pods(preview: Preview) -> None:
    """A mutating policy sets what the check wants, so the pods start again; without it they do not."""
    label = 'Object{metadata: Object.metadata{labels: {"team": "red"}}}'
    strict = vap("labelled", "pods", expression="has(object.metadata.labels) && 'team' in object.metadata.labels")
    documents = [
        workload("StatefulSet", "db", "s"),
        *mutation("label", label, "pods"),
        strict,
        bind("labelled", "Deny"),
    ]

    assert {} == risks(preview(documents, "--action", "labelled=Deny,Audit"))
    assert {"StatefulSet/db": ["recreate template"]} == risks(preview(documents, "--without", "label"))


def test_a_living_pod_has_what_a_policy_gave_it_that_goes(preview: Preview) -> None:
    """Without the mutating policy the next pod has no label: the template decides, and not the pod that runs."""
    label = 'Object{metadata: Object.metadata{labels: {"team": "red"}}}'
    strict = vap("labelled", "pods", expression="has(object.metadata.labels) && 'team' in object.metadata.labels")
    living = running("web-1-a", labels={"team": "red"}, **owned("ReplicaSet", "web-1", "r"))
    documents = [*WEB[:2], living, *mutation("label", label, "pods"), strict, bind("labelled", "Deny")]

    report = preview(documents, "--without", "label")
    assert {"Deployment/web": ["recreate template"]} == risks(report)
    assert 1 == report["workloads"][0]["running"]


@pytest.mark.parametrize(
    ("kind", "group", "spec", "expression"),
    [
        (
            "StatefulSet",
            "apps/v1",
            {"serviceName": "db"},
            "object.spec.hostname == 'w-0' && object.spec.subdomain == 'db'",
        ),
        ("StatefulSet", "apps/v1", {}, "object.metadata.labels['statefulset.kubernetes.io/pod-name'] == 'w-0'"),
        ("StatefulSet", "apps/v1", {"ordinals": {"start": 3}}, "object.metadata.name == 'w-3'"),
        (
            "StatefulSet",
            "apps/v1",
            {"volumeClaimTemplates": [{"metadata": {"name": "data"}}]},
            "object.spec.volumes[0].persistentVolumeClaim.claimName == 'data-w-0'",
        ),
        ("DaemonSet", "apps/v1", {}, "object.spec.tolerations.exists(t, t.key == 'node.kubernetes.io/disk-pressure')"),
        ("DaemonSet", "apps/v1", {}, "has(object.spec.affinity.nodeAffinity)"),
        ("Deployment", "apps/v1", {}, "'pod-template-hash' in object.metadata.labels"),
        ("Job", "batch/v1", {}, "'batch.kubernetes.io/job-tracking' in object.metadata.finalizers"),
        ("Job", "batch/v1", {}, "object.metadata.labels['job-name'] == 'w'"),
        ("Job", "batch/v1", {"completionMode": "Indexed"}, "object.spec.hostname == 'w-0'"),
    ],
)
def test_a_pod_of_a_template_has_what_its_controller_adds(
    preview: Preview, kind: str, group: str, spec: Document, expression: str
) -> None:
    """A rule that demands it denies no pod, and the opposite rule denies it."""
    made = workload(kind, "w", "u") | {"apiVersion": group}
    made["spec"] = {
        key: each for key, each in {**made["spec"], **spec}.items() if key != "selector" or group != "batch/v1"
    }
    rules = [vap("demands", "pods", expression=expression), vap("forbids", "pods", expression=f"!({expression})")]
    bound = [bind("demands", "Audit"), bind("forbids", "Audit")]

    assert {} == risks(preview([made, *rules, *bound], "--action", "demands=Deny"))
    assert {f"{kind}/w": ["recreate template"]} == risks(preview([made, *rules, *bound], "--action", "forbids=Deny"))


@pytest.mark.parametrize("stored", [{}, {"team": "red"}, {"team": "blue"}], ids=str)
def test_policies_that_set_a_field_in_turn_have_a_row(
    preview: Preview, assay: Assay, save: Save, stored: dict[str, str]
) -> None:
    """Both policies, the field and their values, also where the object has one of them now; in every format."""
    red, blue = (
        mutation(color, f'Object{{metadata: Object.metadata{{labels: {{"team": "{color}"}}}}}}', "configmaps")
        for color in ("red", "blue")
    )
    shared = {**BIG, "metadata": {**BIG["metadata"], "labels": stored}}
    save("blue.yaml", *blue)
    report = preview([*red, shared], "-f", "blue.yaml")
    texts = [
        assay("preview", "-q", "--against", "cluster.yaml", "-f", "blue.yaml", "-o", form).stdout.decode()
        for form in ("table", "markdown", "html")
    ]

    ((contested,),) = [each["contested"] for each in report["objects"]]
    values = {each["policy"]: each["value"] for each in contested["values"]}
    assert ("/metadata/labels/team", {"red": '"red"', "blue": '"blue"'}) == (contested["path"], values)
    assert ["is set in turn" in text for text in texts] == [True] * len(texts)


def test_policies_that_agree_about_a_field_have_no_row(preview: Preview, save: Save) -> None:
    """The same value twice, and fields of their own."""
    one, other = (
        mutation(name, f'Object{{metadata: Object.metadata{{labels: {{"team": "red", "{name}": "x"}}}}}}', "configmaps")
        for name in ("one", "other")
    )
    save("other.yaml", *other)
    report = preview([*one, BIG], "-f", "other.yaml")

    assert [[]] == [each["contested"] for each in report["objects"]]


def test_the_next_apply_restarts_pods_whose_template_would_change(preview: Preview, assay: Assay) -> None:
    """The Deployment has two replicas. A label of the Deployment itself restarts nothing."""
    label = 'Object{metadata: Object.metadata{labels: {"team": "red"}}}'
    inside = 'Object{spec: Object.spec{template: Object.spec.template{metadata: Object.spec.template.metadata{labels: {"t": "r"}}}}}'
    flags = ("--bind", "mark")
    reports = [
        preview([WEB[0], mutation("mark", expression, "deployments", group="apps")[0]], *flags)
        for expression in (inside, label)
    ]

    assert [(True, 2), (False, 2)] == [
        (each["restartsPods"], each["replicas"]) for report in reports for each in report["objects"]
    ]


RANGE: Document = {
    "apiVersion": "v1",
    "kind": "LimitRange",
    "metadata": {"name": "defaults", "namespace": "shop"},
    "spec": {"limits": [{"type": "Container", "default": {"memory": "64Mi"}, "defaultRequest": {"memory": "64Mi"}}]},
}
INJECTOR: Document = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "MutatingWebhookConfiguration",
    "metadata": {"name": "sidecars"},
    "webhooks": [
        {
            "name": "inject.example.com",
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
            "clientConfig": {"url": "https://127.0.0.1:1"},
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }
    ],
}


def test_a_limit_range_sets_what_the_check_wants(preview: Preview) -> None:
    """The plug-in LimitRanger changes a new pod before any policy reads it: the pods of the template start again."""
    documents = [workload("StatefulSet", "db", "s"), LIMITS, bind("limits", "Audit")]

    assert {"StatefulSet/db": ["recreate template"]} == risks(preview(documents, "--action", "limits=Deny"))
    assert {} == risks(preview([*documents, RANGE], "--action", "limits=Deny"))


def test_a_webhook_that_may_change_a_template_leaves_it_undecided(assay: Assay, save: Save) -> None:
    """What it would inject is not known. A living pod has it already, so its answer stays."""
    documents = [*WEB, workload("StatefulSet", "db", "s"), LIMITS, bind("limits", "Audit"), INJECTOR]
    save("cluster.yaml", *documents)
    ran = assay("preview", "-q", "--against", "cluster.yaml", "--action", "limits=Deny", "-o", "json")
    report = json.loads(ran.stdout)

    assert 3 == ran.code
    assert {"Deployment/web": ["recreate observed"], "StatefulSet/db": ["recreate template"]} == risks(report)
    assert [True, False] == [each["risks"][0]["refused"] for each in report["workloads"]]
    assert "the webhook, of sidecars, may change the Pod" in str(report["workloads"][1])


def test_each_team_gets_a_text(assay: Assay, save: Save) -> None:
    """By the labels of the workload, else of its namespace."""
    web = [{**each, "metadata": {**each["metadata"], "labels": {"team": "blue"}}} for each in WEB]
    documents = [*web, workload("StatefulSet", "db", "s"), LIMITS, bind("limits", "Audit")]
    save("cluster.yaml", namespace(team="red"), *documents)
    flags = ("--against", "cluster.yaml", "--action", "limits=Deny", "-o", "markdown", "--by", "owner")
    text = assay("preview", "-q", *flags).stdout.decode()

    assert ["### blue", "### red"] == [line for line in text.splitlines() if line.startswith("###")]
    assert "2 workloads of 2 teams could not start again; 1 of them runs today." in text
