"""`assay check` with files as the cluster: what admission would decide about manifests, and the exit codes of a gate."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from tests.cli.checked import first, list_objects, verdict
from tests.cli.conftest import Assay, Check
from tests.documents import Document, rule
from tests.shop import GROUP, bind, config_map, deployment, mutation, namespace, vap, webhook

FORMATS = ("table", "json", "markdown", "sarif", "junit")


def test_a_manifest_that_every_policy_admits_is_admitted(check: Check) -> None:
    """The request is a CREATE, and the exit code 0."""
    ran = check([vap("fine", "configmaps", expression="true"), bind("fine")], config_map())

    assert (0, "admitted") == verdict(ran)
    assert "CREATE" == first(ran)["operation"]


def test_without_a_policy_the_answer_says_so(check: Check) -> None:
    """No answer looks like one of policies that admit; a policy about another kind is none."""
    note = "no policy in force can match one of these objects"
    assert [note] == check([vap("other", "secrets"), bind("other")], config_map()).report["notes"]
    assert [] == check([vap("fine", "configmaps", expression="true"), bind("fine")], config_map()).report["notes"]


def test_rules_that_cannot_be_read_are_no_rules_without_a_match(check: Check) -> None:
    """A sentence that no policy matches would be a claim about policies that were not read."""
    ran = check([{"apiVersion": GROUP, "kind": "ValidatingAdmissionPolicy", "metadata": {}}], config_map())

    assert ran.report["gaps"]
    assert [] == ran.report["notes"]


def test_a_refusal_names_policy_message_and_line(check: Check) -> None:
    """The line is that of the field whose value decided."""
    policy = vap("sized", "configmaps", expression="object.data.size == 'small'")
    ran = check([policy, bind("sized")], config_map(data={"size": "huge"}))

    (decision,) = first(ran)["decisions"]
    assert (1, "refused") == verdict(ran)
    assert ("refuses", "sized", "sized says no") == (decision["effect"], decision["by"], decision["message"])
    assert '  "size": "huge"' == Path("app.yaml").read_text().splitlines()[decision["line"] - 1]


@pytest.mark.parametrize(
    ("action", "expected"), [("Warn", "admittedWithWarnings"), ("Audit", "admitted"), ("Deny", "refused")]
)
def test_the_action_of_the_binding_decides(check: Check, action: str, expected: str) -> None:
    """Only a denial fails the gate."""
    assert (int(action == "Deny"), expected) == verdict(
        check([vap("p", "configmaps"), bind("p", action)], config_map())
    )


def test_a_manifest_without_a_namespace_is_in_the_one_of_the_flag(check: Check) -> None:
    """Without -n that is `default`, as for kubectl."""
    cluster = [vap("p", "configmaps", match={"namespaceSelector": {"matchLabels": {"team": "a"}}}), bind("p")]
    labelled = ("--namespace-label", "default=team=b", "-n", "other", "--namespace-label", "other=team=a")
    default = check(cluster, config_map(namespace=""), flags=labelled[:2])
    other = check(cluster, config_map(namespace=""), flags=labelled)

    assert [("default", "admitted"), ("other", "refused")] == [
        (first(ran)["namespace"], first(ran)["verdict"]) for ran in (default, other)
    ]


def test_an_object_that_exists_is_updated(check: Check) -> None:
    """The stored object is oldObject, and fields that the manifest does not name stay."""
    expression = "oldObject.data.a == '1' && object.data.a == '2' && object.data.b == '1'"
    cluster = [vap("p", "configmaps", expression=expression), bind("p"), config_map(data={"a": "1", "b": "1"})]
    ran = check(cluster, config_map(data={"a": "2"}))

    assert ("UPDATE", "admitted") == (first(ran)["operation"], first(ran)["verdict"])


def test_a_label_that_kubectl_would_remove_is_missing(check: Check) -> None:
    """The manifest that was applied before had it. Labels that others set stay."""
    applied = json.dumps(config_map(metadata={"labels": {"team": "red"}}))
    note = {"kubectl.kubernetes.io/last-applied-configuration": applied}
    live = config_map(metadata={"labels": {"team": "red", "by": "x"}, "annotations": note})
    now = config_map(metadata={"labels": {"other": "1"}})

    def decide(expression: str) -> Any:
        return first(check([vap("p", "configmaps", expression=expression), bind("p"), live], now))["verdict"]

    assert "refused" == decide("'team' in object.metadata.labels")
    assert "admitted" == decide("'by' in object.metadata.labels && 'team' in oldObject.metadata.labels")


def test_an_update_is_matched_by_the_labels_of_the_old_object_too(check: Check) -> None:
    """A manifest cannot leave a policy by changing a label."""
    policy = vap("p", "configmaps", match={"objectSelector": {"matchLabels": {"guarded": "yes"}}})
    stored = config_map(metadata={"labels": {"guarded": "yes"}})
    ran = check([policy, bind("p"), stored], config_map(metadata={"labels": {"guarded": "no"}}))

    assert (1, "refused") == verdict(ran)


def test_policies_read_the_defaults_of_the_api(check: Check) -> None:
    """And quantities in the form that the API server writes."""
    expression = "object.spec.replicas == 1 && object.spec.template.spec.containers[0].resources.limits.memory == '1Gi'"
    container = {"name": "web", "image": "web:1", "resources": {"limits": {"memory": "1024Mi"}}}
    ran = check(
        [vap("p", "deployments", group="apps", expression=expression), bind("p")], deployment(containers=[container])
    )

    assert (0, "admitted") == verdict(ran)


def test_mutating_policies_come_first(check: Check) -> None:
    """A label that one adds satisfies a validating policy, and is shown as a change."""
    added = mutation("labelled", "Object{metadata: Object.metadata{labels: {'team': 'a'}}}", "configmaps")
    ran = check(
        [*added, vap("p", "configmaps", expression="object.metadata.labels.team == 'a'"), bind("p")], config_map()
    )

    assert (0, "admitted") == verdict(ran)
    assert (["/metadata/labels"], ["labelled"]) == (
        [change["path"] for change in first(ran)["changes"]],
        first(ran)["changedBy"],
    )


def test_a_result_that_depends_on_the_order_of_policies_is_undecided(check: Check) -> None:
    """An API server does not define the order."""
    cluster = [
        *mutation("one", "Object{data: {'by': 'one'}}", "configmaps"),
        *mutation("two", "Object{data: {'by': 'two'}}", "configmaps"),
    ]

    assert (3, "undecided") == verdict(check(cluster, config_map()))


def test_policies_of_kyverno_decide(check: Check) -> None:
    """As its webhook does."""
    policy: Document = {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": "ValidatingPolicy",
        "metadata": {"name": "kyverno"},
        "spec": {
            "validationActions": ["Deny"],
            "matchConstraints": {"resourceRules": [rule("configmaps")]},
            "validations": [{"expression": "has(object.data)", "message": "no data"}],
        },
    }

    assert (1, "refused") == verdict(check([policy], config_map()))


def test_pod_security_refuses_the_pods_of_a_template(check: Check) -> None:
    """The Deployment itself is admitted; the gate fails, because no pod would come up."""
    level = {"pod-security.kubernetes.io/enforce": "baseline", "pod-security.kubernetes.io/warn": "privileged"}
    ran = check(
        [namespace("guarded", **level)], {**deployment(hostPID=True), "metadata": {"name": "w", "namespace": "guarded"}}
    )

    (decision,) = first(ran)["decisions"]
    assert (1, "podsRefused") == verdict(ran)
    assert ["spec.template.spec.hostPID"] == decision["fields"][:1]


def test_policies_about_pods_refuse_those_of_a_template(check: Check) -> None:
    """The pods are created by the controller, in its name."""
    controller = "system:serviceaccount:kube-system:replicaset-controller"
    policy = vap("p", "pods", expression=f"request.userInfo.username != '{controller}'")
    ran = check([policy, bind("p")], deployment())

    assert (1, "podsRefused") == verdict(ran)
    assert ["its pods: p says no"] == [each["message"] for each in first(ran)["decisions"]]


def test_an_update_of_a_pod_that_changes_no_container_is_not_judged_by_pod_security(check: Check) -> None:
    """As on a server; another image is judged."""
    level = {"pod-security.kubernetes.io/enforce": "baseline"}
    container = {"name": "c", "image": "i:1", "securityContext": {"privileged": True}}
    pod: Document = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "guarded"},
        "spec": {"containers": [container]},
    }
    cluster = [namespace("guarded", **level), pod]
    relabelled = {**pod, "metadata": {**pod["metadata"], "labels": {"a": "b"}}}
    renewed = {**pod, "spec": {"containers": [{**container, "image": "i:2"}]}}

    assert ["admitted", "refused"] == [first(check(cluster, each))["verdict"] for each in (relabelled, renewed)]


def test_a_param_among_the_manifests_counts(check: Check) -> None:
    """Without it, the binding refuses every object."""
    policy = vap(
        "p", "secrets", paramKind={"apiVersion": "v1", "kind": "ConfigMap"}, expression="params.data.allow == 'yes'"
    )
    param_ref = {"name": "limits", "namespace": "shop", "parameterNotFoundAction": "Deny"}
    secret: Document = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "shop"}}
    cluster = [policy, bind("p", paramRef=param_ref)]

    assert [1, 0] == [
        check(cluster, secret).code,
        check(cluster, secret, config_map("limits", data={"allow": "yes"})).code,
    ]


def test_a_namespace_among_the_manifests_counts(check: Check) -> None:
    """Its labels decide about the objects in it."""
    policy = vap("p", "configmaps", match={"namespaceSelector": {"matchLabels": {"strict": "yes"}}})
    ran = check([policy, bind("p")], config_map(namespace="new"), namespace("new", strict="yes"))

    assert (1, "refused") == verdict(ran)


def define_widgets() -> Document:
    """The definition of Widgets, which have a size."""
    properties = {"spec": {"type": "object", "properties": {"size": {"type": "integer", "default": 3}}}}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"kind": "Widget", "plural": "widgets"},
            "scope": "Namespaced",
            "versions": [version],
        },
    }


def widget(**metadata: Any) -> Document:
    """A Widget in the shop."""
    named = {"name": "w", "namespace": "shop", **metadata}
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": named, "spec": {}}


def test_a_definition_among_the_manifests_counts(check: Check) -> None:
    """An object of its kind is read with the defaults of its schema."""
    cluster = [vap("p", "widgets", group="example.com", expression="object.spec.size == 3"), bind("p")]

    assert (0, "admitted") == verdict(check(cluster, widget(), define_widgets()))


def test_a_field_that_no_schema_has_is_validated_before_it_is_pruned(check: Check) -> None:
    """A mutating policy may add one to a custom resource: only what is stored has no unknown fields."""
    add = "[JSONPatch{op: 'add', path: '/spec/other', value: 'x'}]"
    mutating = mutation("m", "Object{}", "widgets", group="example.com")
    mutating[0]["spec"]["mutations"] = [{"patchType": "JSONPatch", "jsonPatch": {"expression": add}}]
    rule = vap("p", "widgets", group="example.com", expression="!has(object.spec.other)")
    cluster = [*mutating, rule, bind("p"), define_widgets()]

    assert (1, "refused") == verdict(check(cluster, widget()))
    assert (1, "refused") == verdict(check([*cluster, {**widget(uid="u1"), "spec": {"size": 4}}], widget()))


def test_the_metadata_of_a_custom_resource_is_validated_as_it_was_applied(check: Check) -> None:
    """An empty list and a null are there until the object is stored."""
    found = "has(object.metadata.finalizers) && object.metadata.labels.a == null"
    rule = vap("p", "widgets", group="example.com", expression=found)
    manifest = widget(finalizers=[], labels={"a": None})

    assert (0, "admitted") == verdict(check([rule, bind("p"), define_widgets()], manifest))


def test_a_kind_that_is_not_served_is_undecided(check: Check) -> None:
    """Exit code 3, which --allow-unjudged accepts."""
    widget: Document = {"apiVersion": "example.com/v1", "kind": "Deploymint", "metadata": {"name": "w"}}
    ran = check([], widget)

    assert (3, "undecided") == verdict(ran)
    assert first(ran)["decisions"][0]["message"].endswith("Did you mean Deployment?")
    assert 0 == check([], widget, flags=("--allow-unjudged",)).code


def test_a_webhook_that_matches_is_named(check: Check) -> None:
    """What its program decides is not known, so the object is undecided; another kind is not."""
    ran = check([webhook()], config_map())
    secret: Document = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "shop"}}

    assert (3, "opa.example.com") == (ran.code, first(ran)["decisions"][0]["by"])
    assert (0, "admitted") == verdict(check([webhook()], secret))


@pytest.mark.parametrize(
    ("configuration", "expected"), [("kyverno-resource-validating-webhook-cfg", "admitted"), ("other", "undecided")]
)
def test_a_webhook_that_has_a_name_of_kyverno_s_is_one_in_its_configuration_alone(
    check: Check, configuration: str, expected: str
) -> None:
    """It calls policies that were evaluated; elsewhere, the name is no promise."""
    assert expected == verdict(check([webhook("vpol.validate.kyverno.svc-fail", configuration)], config_map()))[1]


def test_a_refusal_stands_beside_what_is_undecided(check: Check) -> None:
    """The object is refused also if a webhook would admit it; 3 beats 1, because another object could be refused, too."""
    cluster = [webhook(), vap("p", "configmaps"), bind("p")]

    assert (3, "refused") == verdict(check(cluster, config_map()))
    assert 1 == check(cluster, config_map(), flags=("--allow-unjudged",)).code


def test_a_field_that_the_server_sets_is_undecided(check: Check) -> None:
    """A new object has no uid before the server makes one."""
    ran = check([vap("p", "configmaps", expression="has(object.metadata.uid)"), bind("p")], config_map())

    assert (3, "undecided") == verdict(ran)


def test_a_condition_that_is_false_is_decided_also_if_a_check_reads_what_the_server_sets(check: Check) -> None:
    """The policy does not apply to the object, so its checks read nothing."""
    policy = vap(
        "p",
        "configmaps",
        expression="!has(object.metadata.uid)",
        matchConditions=[{"name": "c", "expression": "object.metadata.name == 'other'"}],
    )

    assert (0, "admitted") == verdict(check([policy, bind("p")], config_map()))
    assert (3, "undecided") == verdict(check([policy, bind("p")], config_map("other")))


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("object == oldObject", (3, "undecided")),
        ("object.metadata == oldObject.metadata", (3, "undecided")),
        ("object.metadata.labels == oldObject.metadata.labels && oldObject == oldObject", (0, "admitted")),
    ],
)
def test_an_update_that_is_compared_with_its_field_managers_is_undecided(
    check: Check, expression: str, expected: tuple[int, str]
) -> None:
    """Each client writes an entry of its own into managedFields, also if it changes nothing else."""
    stored = config_map(metadata={"labels": {"a": "b"}, "uid": "u1"})
    ran = check([vap("p", "configmaps", expression=expression), bind("p"), stored], config_map())

    assert expected == verdict(ran)


@pytest.mark.parametrize(
    ("change", "expected"),
    [({"data": {"a": "c"}}, (3, "undecided")), ({"metadata": {"labels": {"c": "d"}}}, (0, "admitted"))],
)
def test_a_generation_that_an_update_raises_is_undecided(
    check: Check, change: Document, expected: tuple[int, str]
) -> None:
    """A policy that compares it with that of the old object would seem to admit every change."""
    rule = vap("p", "configmaps", expression="oldObject.metadata.generation == object.metadata.generation")
    stored = config_map(metadata={"uid": "u1", "generation": 3}, data={"a": "b"})

    assert expected == verdict(check([rule, bind("p"), stored], config_map(**change)))


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("!request.dryRun", (3, "undecided")),
        ("request.options.fieldManager == 'argocd'", (3, "undecided")),
        ("request.options.kind == 'CreateOptions'", (0, "admitted")),
        ("request.operation == 'CREATE' && request.name == 'settings'", (0, "admitted")),
    ],
)
def test_a_field_that_the_client_of_a_request_chooses_is_undecided(
    check: Check, expression: str, expected: tuple[int, str]
) -> None:
    """A dry run and an apply differ in them, and so do kubectl and a controller."""
    assert expected == verdict(check([vap("p", "configmaps", expression=expression), bind("p")], config_map()))


def test_a_condition_about_the_client_is_undecided(check: Check) -> None:
    """A policy that leaves out dry runs does not leave out the request that applies the manifest."""
    condition = {"name": "no-dry-run", "expression": "!request.dryRun"}
    ran = check([vap("p", "configmaps", matchConditions=[condition]), bind("p")], config_map())

    assert (3, "undecided") == verdict(ran)


def test_a_mutation_that_depends_on_the_client_is_undecided(check: Check) -> None:
    """What a mutating policy reads of the client decides about the object that validating policies read."""
    expression = "Object{metadata: Object.metadata{labels: {'dry': string(request.dryRun)}}}"

    assert (3, "undecided") == verdict(check(mutation("m", expression, "configmaps"), config_map()))


def test_a_new_daemon_set_has_the_annotation_of_the_server(check: Check) -> None:
    """It numbers the templates, and mutating policies read it before the first template is counted."""
    daemons = {**deployment(), "kind": "DaemonSet"}
    text = "object.metadata.annotations['deprecated.daemonset.template.generation']"
    count = mutation("m", f"Object{{metadata: Object.metadata{{labels: {{'n': {text}}}}}}}", "daemonsets", group="apps")
    rule = vap("p", "daemonsets", group="apps", expression=f"object.metadata.labels.n == '0' && {text} == '1'")

    assert (0, "admitted") == verdict(check([*count, rule, bind("p")], daemons))


def test_an_update_of_a_template_is_counted(check: Check) -> None:
    """By the annotation of a DaemonSet; another change of it is not."""
    name = "deprecated.daemonset.template.generation"
    stored = {**deployment(), "kind": "DaemonSet"}
    stored["metadata"] |= {"uid": "u1", "annotations": {name: "4"}}
    rule = vap("p", "daemonsets", group="apps", expression=f"object.metadata.annotations['{name}'] == '5'")
    other = {**deployment(hostNetwork=True), "kind": "DaemonSet"}

    assert (0, "admitted") == verdict(check([rule, bind("p"), stored], other))


def test_a_new_job_names_itself_in_the_labels_of_its_pods(check: Check) -> None:
    """The uid of the job, which is in others, is not known."""
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "once", "namespace": "shop"},
        "spec": {"template": {"spec": {"containers": [{"name": "a", "image": "a"}], "restartPolicy": "Never"}}},
    }
    label = "object.spec.template.metadata.labels"
    named = vap("p", "jobs", group="batch", expression=f"{label}['batch.kubernetes.io/job-name'] == 'once'")
    counted = vap("p", "jobs", group="batch", expression=f"'controller-uid' in {label}")

    assert (0, "admitted") == verdict(check([named, bind("p")], job))
    assert (3, "undecided") == verdict(check([counted, bind("p")], job))


def test_a_later_manifest_of_an_object_updates_it(check: Check) -> None:
    """Kubectl applies both, one after the other; a manifest that is refused changes nothing."""
    policy = vap("p", "configmaps", expression="oldObject == null || object.data.a <= oldObject.data.a + '0'")
    refused = vap("q", "configmaps", expression="object.data.a != '10'")
    manifests = [config_map(data={"a": value}) for value in ("1", "1", "10", "100")]
    ran = check([policy, bind("p"), refused, bind("q")], *manifests)

    assert [("CREATE", "admitted"), ("UPDATE", "admitted"), ("UPDATE", "refused"), ("UPDATE", "refused")] == [
        (each["operation"], each["verdict"]) for each in list_objects(ran)
    ]


def test_objects_with_one_generate_name_are_objects_of_their_own(check: Check) -> None:
    """The server makes another name for each."""
    generated = {**config_map(), "metadata": {"generateName": "settings-", "namespace": "shop"}}
    ran = check([vap("p", "configmaps", expression="oldObject == null"), bind("p")], generated, generated)

    assert [("CREATE", "admitted")] * 2 == [(each["operation"], each["verdict"]) for each in list_objects(ran)]


READS_NAME = "Object{metadata: Object.metadata{labels: {'of': object.metadata.name}}}"


def test_mutating_policies_read_no_name_that_the_server_makes(check: Check) -> None:
    """The server makes it after them: reading it is an error. Validating policies read it."""
    generated = {**config_map(), "metadata": {"generateName": "settings-", "namespace": "shop"}}
    named = vap("p", "configmaps", expression="object.metadata.name == request.name")

    assert (1, "refused") == verdict(check(mutation("m", READS_NAME, "configmaps"), generated))
    assert (0, "admitted") == verdict(check(mutation("m", READS_NAME, "configmaps"), config_map()))
    assert (0, "admitted") == verdict(check([named, bind("p")], generated))


@pytest.mark.parametrize(("kind", "expected"), [("ReplicaSet", "podsRefused"), ("StatefulSet", "admitted")])
def test_only_the_pods_of_a_stateful_set_have_names_when_they_are_mutated(
    check: Check, kind: str, expected: str
) -> None:
    """Other controllers leave the name to the server."""
    workload = deployment()
    workload = {**workload, "kind": kind, "spec": {**workload["spec"], "serviceName": "web"}}
    if kind == "ReplicaSet":
        del workload["spec"]["serviceName"]

    assert expected == first(check(mutation("m", READS_NAME, "pods"), workload))["verdict"]


def test_a_name_that_is_part_of_another_path_is_no_name(check: Check) -> None:
    """The API server refuses it, and its path would be that of the namespace."""
    ran = check([vap("p", "configmaps", expression="true"), bind("p")], config_map(".."), config_map())

    assert 1 == ran.code
    refused, admitted = list_objects(ran)
    assert ["metadata.name: Invalid value: may not be '..'"] == [each["message"] for each in refused["decisions"]]
    assert ("refused", "admitted") == (refused["verdict"], admitted["verdict"])


def test_unknown_labels_of_a_namespace_are_undecided(check: Check) -> None:
    """A namespace that no file describes may have the label that a policy selects by."""
    policy = vap("p", "configmaps", match={"namespaceSelector": {"matchLabels": {"strict": "yes"}}})

    assert (3, "undecided") == verdict(check([policy, bind("p")], config_map(namespace="unknown")))


def test_a_manifest_that_does_not_fit_its_schema_is_refused(check: Check) -> None:
    """By the API server, before any policy is asked."""
    broken = {**deployment(), "spec": {**deployment()["spec"], "replicas": "three"}}
    ran = check([vap("p", "deployments", group="apps", expression="true"), bind("p")], broken)

    assert (1, "refused") == verdict(ran)
    assert "the API server" == first(ran)["decisions"][0]["by"]


def test_a_file_of_another_tool_is_named(assay: Assay, home: Path) -> None:
    """It is no object of the cluster; without a sentence it would look like one that is admitted."""
    (home / "chart").mkdir()
    (home / "chart" / "Chart.yaml").write_text("apiVersion: v2\nname: shop\nversion: 1.0.0\n")
    (home / "chart" / "values.yaml").write_text("replicas: 3\n")
    (home / "chart" / "app.yaml").write_text(json.dumps(config_map()))
    (home / "cluster.yaml").write_text(json.dumps(namespace()))
    ran = assay("check", "-f", "chart", "--against", "cluster.yaml", "-o", "json")

    assert 0 == ran.code
    notes: Any = ran.report["notes"]
    chart, values, *_ = notes
    assert chart.startswith("not checked: chart/Chart.yaml, document 1: Helm reads this file")
    assert values.startswith("not checked: chart/values.yaml, document 1: these are values of a Helm chart")


def test_files_of_other_tools_alone_are_a_usage_error(assay: Assay, home: Path) -> None:
    """A gate that checked nothing must not pass."""
    (home / "kustomization.yaml").write_text("resources: [app.yaml]\n")
    (home / "cluster.yaml").write_text(json.dumps(namespace()))
    ran = assay("check", "-f", "kustomization.yaml", "--against", "cluster.yaml")

    assert 2 == ran.code
    assert "-f kustomization.yaml has no manifest" in ran.stderr
    assert "kustomize build" in ran.stderr


def test_a_template_that_is_not_rendered_is_a_gap(check: Check, home: Path, assay: Assay) -> None:
    """Not everything could be read, so nothing is claimed about the rest."""
    (home / "chart").mkdir()
    (home / "chart" / "app.yaml").write_text("kind: {{ .Values.kind }}\n")
    check([], config_map())
    ran = assay("check", "-f", "chart", "--against", "cluster.yaml", "-o", "json")

    assert (3, 1) == (ran.code, len(ran.report["gaps"]))  # type: ignore[arg-type]


@pytest.mark.parametrize("form", FORMATS)
def test_no_value_of_a_secret_is_in_any_output(check: Check, form: str) -> None:
    """Neither of the manifest nor of the stored object, also if a policy writes it into a message."""
    new, old = "bmV3LXNlY3JldA==", "b2xkLXNlY3JldA=="
    policy = vap("p", "secrets")
    texts = "string(object.data.token) + string(oldObject.data.token)"
    policy["spec"]["validations"] = [{"expression": "false", "messageExpression": texts}]
    stored: Document = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "s", "namespace": "shop"},
        "data": {"token": old},
    }
    marked = mutation(
        "marked", "Object{metadata: Object.metadata{annotations: {'was': oldObject.data.token}}}", "secrets"
    )
    ran = check([policy, bind("p"), *marked, stored], {**stored, "data": {"token": new}}, form=form)
    printed = ran.stdout.decode() + ran.stderr

    assert 1 == ran.code
    assert [] == [text for text in (new, old, "new-secret", "old-secret") if text in printed]


@pytest.mark.parametrize("form", FORMATS)
def test_no_environment_variable_is_in_any_output(check: Check, form: str) -> None:
    """A policy may write one into its message, the old one, too."""
    policy = vap("p", "deployments", group="apps")
    path = "spec.template.spec.containers[0].env[0].value"
    policy["spec"]["validations"] = [
        {"expression": f"object.{path} == ''", "messageExpression": f"object.{path} + ' ' + oldObject.{path}"}
    ]

    def with_value(value: str) -> Document:
        return deployment(
            containers=[{"name": "web", "image": "web:1", "env": [{"name": "DB_PASSWORD", "value": value}]}]
        )

    ran = check([policy, bind("p"), with_value("hunter2hunter2")], with_value("correct-horse"), form=form)
    printed = ran.stdout.decode() + ran.stderr

    assert 1 == ran.code
    assert [] == [text for text in ("hunter2hunter2", "correct-horse") if text in printed]


def test_the_formats_of_ci_show_the_refusal(check: Check) -> None:
    """A failure in JUnit, an error at a line in SARIF, a row in Markdown that is text and no markup."""
    cluster = [vap("p", "configmaps"), bind("p")]
    hostile = config_map("a|b<script>@team")
    junit = ET.fromstring(check(cluster, hostile, form="junit").stdout)  # noqa: S314 - our own output
    sarif = json.loads(check(cluster, hostile, form="sarif").stdout)
    markdown = check(cluster, hostile, form="markdown").stdout.decode()
    (result,) = sarif["runs"][0]["results"]

    assert ("1", 1) == (junit[0].attrib["failures"], len(list(junit.iter("failure"))))
    assert ("error", 1) == (result["level"], result["locations"][0]["physicalLocation"]["region"]["startLine"])
    assert "a\\|b&lt;script&gt;@&#8203;team" in markdown


def test_five_hundred_manifests_are_decided_one_by_one(check: Check) -> None:
    """Each has its answer, in the order of the files."""
    ran = check(
        [vap("p", "configmaps", expression="object.metadata.name != 'c7'"), bind("p")],
        *(config_map(f"c{n}") for n in range(500)),
    )
    objects: Any = ran.report["objects"]

    assert (1, 500) == (ran.code, len(objects))
    assert ["c7"] == [each["name"] for each in objects if each["verdict"] == "refused"]


@pytest.mark.parametrize(
    "flags",
    [
        (),
        ("-f", "nowhere.yaml"),
        ("-f", "app.yaml", "--against", "nowhere"),
        ("-f", "app.yaml", "--ask-server", "--against", "app.yaml"),
        ("-f", "-", "--against", "-"),
        ("-f", "app.yaml", "-o", "html"),
    ],
)
def test_a_mistake_is_a_usage_error(assay: Assay, home: Path, flags: tuple[str, ...]) -> None:
    """Nothing is printed on standard output."""
    (home / "app.yaml").write_text(json.dumps(config_map()))
    ran = assay("check", *flags)

    assert (2, b"") == (ran.code, ran.stdout)
