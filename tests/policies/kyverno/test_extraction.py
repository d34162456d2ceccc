"""The Pods of the templates in other workloads, and the results of a policy about Pods for them."""

from __future__ import annotations

from typing import Any, Final

import pytest

from scanner.api import Auditor, KyvernoContext
from scanner.audit.sensitive_fields import MASK
from scanner.cluster.definitions import builtin_kinds
from scanner.model.outcome import Errored, Passed, Skipped, SkipReason, Violated
from scanner.model.resource import Kind
from scanner.policies.kyverno.extraction import pod_templates
from scanner.policies.kyverno.modes import CONTROLLER
from tests.policies.kyverno.made import (
    NOW,
    check_results,
    exception,
    invocation_results,
    pod,
    policy,
    result,
)
from tests.policies.kyverno.test_scanned import KYVERNO, TEAM
from tests.scan.fakes import FakeCluster, scanned

JOB_SETS: Final = Kind("jobset.x-k8s.io", "v1alpha2", "JobSet", "jobsets", namespaced=True)
EXPLICIT: Final = "jobsets.v1alpha2.jobset.x-k8s.io"
TEMPLATE: Final = "spec.template"


def template(image: str = "nginx", **metadata: Any) -> Any:
    """A Pod template of one container."""
    body = {"spec": {"containers": [{"name": "main", "image": image}]}}
    return {"metadata": metadata, **body} if metadata else body


def job_set(*templates: Any, name: str = "training") -> Any:
    """A JobSet with a Job for each template."""
    jobs = [{"name": "job", "template": {"spec": {"template": each}}} for each in templates]
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": name, "namespace": "team"},
        "spec": {"replicatedJobs": jobs},
    }


def about(*validations: Any, controllers: Any = (EXPLICIT,), **spec: Any) -> Any:
    """A policy about Pods that names workloads."""
    return policy(*validations, autogen={"podControllers": {"controllers": [*controllers]}}, **spec)


def path(number: int) -> str:
    """The path of the template of a Job."""
    return f"spec.replicatedJobs[{number}].template.spec.template"


NO_LATEST: Final = {"expression": "object.spec.containers.all(one, one.image != 'bad')", "message": "a bad image"}
TRUSTED: Final = {
    "expression": "object.spec.containers.all(one, one.image.startsWith('ours/'))",
    "message": "a foreign image",
}


@pytest.mark.parametrize(
    ("expected", "spec"),
    [
        ([], None),
        ([], {"template": {"spec": {"containers": []}}}),
        ([], {"template": {"spec": {"containers": [{"name": "", "image": "a"}]}}}),
        ([], {"template": {"spec": {"containers": [{"name": "a"}]}}}),
        ([], {"template": {"spec": {"containers": ["a"]}}}),
        ([], {"template": {"metadata": "a", **template()}}),
        (["spec"], template()),
        (["spec.a", "spec.b[1][0].c"], {"b": [1, [{"c": template()}]], "a": template()}),
        (["spec.a"], {"a": {**template(), "inner": template()}}),
    ],
)
def test_a_template_is_a_part_of_the_spec_with_its_form(expected: list[str], spec: Any) -> None:
    """A container has a name and an image; metadata is an object; a template has no templates."""
    body = {"status": {"template": template()}, **({} if spec is None else {"spec": spec})}
    if expected == ["spec"]:
        body["spec"] = spec
    assert expected == [found.path for found in pod_templates(body)]


def test_deep_objects_are_searched() -> None:
    """The search needs no stack."""
    spec: Any = template()
    for _ in range(5_000):
        spec = {"a": spec}
    assert ["spec" + ".a" * 5_000] == [found.path for found in pod_templates({"spec": spec})]


def test_the_message_names_the_template() -> None:
    """The check is violated by the first template that does not pass it."""
    workload = job_set(template(), template("bad"), template("bad"))
    (checked,) = check_results(workload, about(NO_LATEST), kinds=(JOB_SETS,))
    assert Violated(f"a bad image (pod template at {path(1)})", "", 400) == checked.outcome


def test_each_check_has_the_first_template_that_does_not_pass_it() -> None:
    """Kyverno stops at the first of them."""
    workload = job_set(template(), template("ours/bad"), template("bad"))
    manifest = about(TRUSTED, {**NO_LATEST, "expression": "!object.spec.containers[0].image.endsWith('bad')"})
    results = check_results(workload, manifest, kinds=(JOB_SETS,))
    assert [path(0), path(1)] == [getattr(each.outcome, "message", "").rpartition(" at ")[2][:-1] for each in results]


def test_kyverno_reports_the_first_template_that_does_not_pass() -> None:
    """The other templates are not evaluated."""
    reported = result(
        job_set(template("ours/a"), template("bad")), about(TRUSTED, NO_LATEST), mode=CONTROLLER, kinds=(JOB_SETS,)
    )
    assert ("fail", f"a foreign image (pod template at {path(1)})", "0") == (
        reported.status,
        reported.message,
        reported.properties["cel.validationIndex"],
    )


def test_an_error_names_the_template() -> None:
    """An error of a validation has the path at its end, one of the conditions before its cause."""
    conditions = [{"name": "none", "expression": "object.spec.none == 1"}]
    validation = check_results(job_set(template()), about("object.spec.none == 1"), kinds=(JOB_SETS,))
    condition = check_results(job_set(template()), about("true", matchConditions=conditions), kinds=(JOB_SETS,))
    assert [
        f"error: no such key: none (pod template at {path(0)})",
        f"failed to load context: pod template at {path(0)}: no such key: none",
    ] == [getattr(each.outcome, "message", "") for each in (*validation, *condition)]


@pytest.mark.parametrize("failure_policy", ["Fail", "Ignore"])
def test_an_object_without_a_template_is_an_error(failure_policy: str) -> None:
    """It denies with any failure policy, and the other checks are not reached."""
    manifest = about(NO_LATEST, TRUSTED, failurePolicy=failure_policy)
    first, second = check_results(job_set(), manifest, kinds=(JOB_SETS,))
    text = "error: extraction mode: no pod template found in jobset.x-k8s.io/v1alpha2/JobSet"
    assert Errored(text, would_deny=True, reason="", code=400) == first.outcome
    assert isinstance(second.outcome, Skipped)


@pytest.mark.parametrize(
    ("expression", "labels"),
    [
        ("object.kind == 'Pod' && object.apiVersion == 'v1'", {}),
        ("object.metadata.name == 'training' && object.metadata.namespace == 'team'", {}),
        ("object.metadata.name == 'own' && object.metadata.namespace == 'else'", {"name": "own", "namespace": "else"}),
        ("object.metadata.labels.a == 'b'", {"labels": {"a": "b"}}),
        ("request.kind.kind == 'Pod' && request.resource.resource == 'pods'", {}),
        ("request.name == 'training' && request.namespace == 'team'", {}),
        ("dyn(request).object.kind == 'Pod'", {}),
        ("oldObject == null && request.operation == 'CREATE'", {}),
        ("namespaceObject.metadata.name == 'team'", {}),
    ],
)
def test_expressions_read_the_pod(expression: str, labels: Any) -> None:
    """The Pod has what the template has, and else the name and the namespace of the object."""
    (checked,) = check_results(job_set(template(**labels)), about(expression), kinds=(JOB_SETS,), namespaces=(TEAM,))
    assert Passed() == checked.outcome


def test_an_update_and_a_delete_have_the_old_pod() -> None:
    """An update that changes nothing has both Pods; a DELETE has no new one."""
    update = about("oldObject.kind == 'Pod' && object.kind == 'Pod'")
    delete = about("oldObject.kind == 'Pod' && object == null")
    for manifest, operation in ((update, "UPDATE"), (delete, "DELETE")):
        manifest["spec"]["matchConstraints"]["resourceRules"][0]["operations"] = [operation]
        (checked,) = check_results(job_set(template()), manifest, kinds=(JOB_SETS,), operation=operation)
        assert Passed() == checked.outcome


def test_an_exception_exempts_one_pod() -> None:
    """Its conditions read the Pod; another Pod still denies the object."""
    by_image = [{"name": "image", "expression": "object.spec.containers[0].image == 'bad'"}]
    exempting = exception(matchConditions=by_image)
    manifest = about({**NO_LATEST, "expression": "false"})
    (one,) = check_results(job_set(template("bad")), manifest, exceptions=(exempting,), kinds=(JOB_SETS,))
    (both,) = check_results(job_set(template("bad"), template()), manifest, exceptions=(exempting,), kinds=(JOB_SETS,))
    assert [("team/let-be", path(0)), ("", path(1))] == [
        (each.excepted_by, getattr(each.outcome, "message", "").rpartition(" at ")[2][:-1]) for each in (one, both)
    ]


def test_conditions_that_are_false_for_every_pod_skip_the_object() -> None:
    """One Pod that meets them is enough to evaluate the checks."""
    conditions = [{"name": "ours", "expression": "object.spec.containers[0].image == 'ours/a'"}]
    manifest = about("true", matchConditions=conditions)
    (none,) = check_results(job_set(template(), template()), manifest, kinds=(JOB_SETS,))
    (one,) = check_results(job_set(template(), template("ours/a")), manifest, kinds=(JOB_SETS,))
    assert [Skipped(SkipReason.CONDITION_FALSE, "ours"), Passed()] == [none.outcome, one.outcome]


@pytest.mark.parametrize(
    ("expected", "name"),
    [
        (True, EXPLICIT),
        (True, "jobsets"),
        (False, "jobset"),
        (False, "JobSet"),
        (False, "jobsets.v1alpha2"),
        (False, "jobsets.v1alpha1.jobset.x-k8s.io"),
        (False, "jobsets..jobset.x-k8s.io"),
        (False, "events"),
    ],
)
def test_a_workload_is_named_by_its_resource(*, expected: bool, name: str) -> None:
    """A name alone means the resource of the only group that serves it."""
    results = invocation_results(job_set(template("bad")), about(NO_LATEST, controllers=(name,)), kinds=(JOB_SETS,))
    assert expected == bool(results)


def test_a_name_alone_means_no_resource_without_a_cluster() -> None:
    """Kyverno's command line has no discovery, and needs the version and the group."""
    auditor = Auditor(
        policies=[about(NO_LATEST, controllers=("jobsets",))],
        bindings=(),
        kinds=(*builtin_kinds(), JOB_SETS),
        kyverno_context=KyvernoContext(NOW),
    )
    assert () == auditor.evaluate(job_set(template("bad")))


def test_an_ordinary_controller_can_be_evaluated_by_its_template_too() -> None:
    """`deployments.v1.apps` is no name of a controller of Kubernetes, so the Deployment has a Pod."""
    manifest = about("object.kind == 'Pod'", controllers=("deployments.v1.apps",))
    workload = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "team"}}
    (checked,) = check_results({**workload, "spec": {"template": template()}}, manifest)
    assert Passed() == checked.outcome


def _scanned(*documents: Any) -> Any:
    return scanned(FakeCluster([TEAM, *documents], kinds=(*builtin_kinds(), *KYVERNO, JOB_SETS)))


def test_a_scan_lists_the_named_workloads() -> None:
    """The finding is one about the workload."""
    scan = _scanned(about(NO_LATEST, controllers=("jobsets",)), job_set(template("bad")))
    (finding,) = scan.findings
    assert ("JobSet", "training", "autogen-extract") == (finding.kind, finding.name, finding.binding)
    assert "JobSet" in {line.kind for line in scan.end.coverage}


def test_evidence_is_that_of_the_pod() -> None:
    """The values that decided are named by their paths in the object."""
    scan = _scanned(about("object.spec.containers[0].image != 'bad'"), job_set(template(), template("bad")))
    (finding,) = scan.findings
    assert [(f"{path(1)}.spec.containers[0].image", '"bad"')] == [
        (reason.path, reason.value) for reason in finding.evidence.reasons if reason.path
    ]


def test_no_secret_of_a_pod_is_shown() -> None:
    """A message that quotes an environment variable with the name of a secret is masked, as for a Pod."""
    hidden = template()
    hidden["spec"]["containers"][0]["env"] = [{"name": "PASSWORD", "value": "hunter2hunter2"}]
    quoting = {"expression": "false", "messageExpression": "'it is ' + string(object.spec.containers[0].env[0].value)"}
    scan = _scanned(about(quoting), job_set(hidden), policy(quoting, name="pods"), {**pod(), "spec": hidden["spec"]})
    assert {"JobSet", "Pod"} == {finding.kind for finding in scan.findings}
    assert all(
        "hunter2" not in finding.outcome.message and MASK in finding.outcome.message for finding in scan.findings
    )


def test_a_name_that_kyverno_ignores_is_a_note() -> None:
    """An unknown name selects nothing, which is no error of the policy."""
    scan = _scanned(about("true", controllers=("Deployment", "deployments")))
    details = [health.detail for health in scan.end.health if "podControllers" in health.detail]
    assert ["autogen.podControllers names Deployment, which Kyverno 1.19 does not know and ignores"] == details
