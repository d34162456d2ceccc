"""What decides a verdict turns a fix into `rulesChanged`; a text, an action or a patch release does not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from scanner.model.policy import Policy
from scanner.model.scans.cause import CauseKind
from scanner.store import SqlStore, open_store, upgrade
from tests.admission.test_cost_budget import TRUE
from tests.documents import KINDS, Document, binding, namespace, pod, policy
from tests.policies.kyverno.made import policy as kyverno_policy
from tests.policies.kyverno.test_scanned import KYVERNO
from tests.store.databases import KINDS as DATABASES
from tests.store.databases import database
from tests.store.made import CHECK, clock
from tests.store.made import policy as policy_of
from tests.store.scanned import Story, facts, versioned
from tests.store.test_endings import fixes
from tests.store.test_problems import Rules, passing
from tests.store.test_upgrade_at_once import fill

CHECKED = "!has(object.spec.hostNetwork) || object.spec.hostNetwork == false"
SPACES = (namespace("shop"),)
BROKEN, CORRECTED = versioned(pod(namespace="shop", hostNetwork=True), 1), versioned(pod(namespace="shop"), 2)
WEB, WHOLE = ("validation", "shop/web"), ("configuration", "shop/web")
FIXED = {("resolved", *WEB): ("fixed", "objectChanged")}
ANNOTATION = {"key": "who", "valueExpression": "'by ' + object.metadata.name"}


@pytest.fixture(params=DATABASES)
def old(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A database of an older version, of each kind: its second scan saw `a`."""
    with database(request.param, tmp_path) as url:
        fill(url, Path(__file__).parent / "old" / "0026.sql")
        yield url


def rules(validation: Document | None = None, bound: Document | None = None, **spec: Any) -> list[Document]:
    """A policy with a message, a reason and an audit annotation, and its binding."""
    of_policy = {"auditAnnotations": [ANNOTATION], **spec}
    checked = policy("p", **of_policy)
    checked["spec"]["validations"] = [
        {"expression": CHECKED, "message": "no host network", "reason": "Forbidden", **(validation or {})}
    ]
    made = binding("b", "p", "Audit")
    return [checked, {**made, "spec": {**made["spec"], **(bound or {})}}]


TEXTS = [
    pytest.param(rules({"message": "host network is not allowed"}), id="message"),
    pytest.param(rules({"reason": "Invalid"}), id="reason"),
    pytest.param(rules(bound={"validationActions": ["Deny"]}), id="actions: from Audit to Deny"),
    pytest.param(rules(bound={"validationActions": ["Warn", "Audit"]}), id="actions: a warning, too"),
    pytest.param(rules(auditAnnotations=[{**ANNOTATION, "valueExpression": "'name'"}]), id="value of an annotation"),
    pytest.param(rules(auditAnnotations=[{**ANNOTATION, "key": "name"}]), id="key of an annotation"),
    pytest.param(rules(auditAnnotations=[]), id="no annotation"),
    pytest.param(rules({"message": "no"}, {"validationActions": ["Deny"]}, auditAnnotations=[]), id="all of them"),
]
DECIDING = [
    pytest.param(rules({"expression": f"true && {CHECKED}"}), "policy", id="expression"),
    pytest.param(rules({"messageExpression": "'no host network'"}), "policy", id="expression of a message"),
    pytest.param(rules(failurePolicy="Ignore"), "policy", id="failure policy"),
    pytest.param(rules(variables=[{"name": "v", "expression": "1"}]), "policy", id="variable"),
    pytest.param(
        rules(matchConditions=[{"name": "m", "expression": "true"}]), "policy", id="match condition, always true"
    ),
    pytest.param(rules(bound={"matchResources": {"objectSelector": {}}}), "binding", id="match of the binding"),
    pytest.param(rules({"message": "no", "expression": f"true && {CHECKED}"}), "policy", id="a text as well"),
]


@pytest.mark.long
@pytest.mark.parametrize("later", TEXTS)
def test_an_object_that_is_corrected_on_the_day_of_enforcement_is_fixed(store: SqlStore, later: list[Document]) -> None:
    """Texts and actions decide no verdict, so only the object can be the cause; a difference of the scans has the texts as well."""
    story = Story(store)
    story.scan([*SPACES, BROKEN, *rules()])

    assert FIXED == facts(story.scan([*SPACES, CORRECTED, *later]))
    assert [(2, "p", 1, 1)] == fixes(store)
    diff = store.compare_scans("scan-1", "scan-2")
    [problem] = diff.list_problems(CauseKind.OBJECT_CHANGED, None)
    assert ("resolved", "fixed", ()) == (problem.change.value, problem.resolution, problem.cause.also)
    assert {CauseKind.POLICY, CauseKind.BINDING}.intersection(diff.rules_changed)
    assert diff.rules


@pytest.mark.parametrize(("later", "cause"), DECIDING)
def test_an_object_that_is_corrected_while_a_rule_changes_is_not_fixed(
    store: SqlStore, later: list[Document], cause: str
) -> None:
    """Nothing is known about the object. A reworded check is another finding, and its earlier one ends in the same way."""
    story = Story(store)
    story.scan([*SPACES, BROKEN, *rules()])

    assert {("resolved", *WEB): ("rulesChanged", cause)} == facts(story.scan([*SPACES, CORRECTED, *later]))
    assert [] == fixes(store)


@pytest.mark.parametrize(
    ("server", "assay", "expected"),
    [
        pytest.param("v1.36.9", "1.0", ("fixed", "objectChanged"), id="patch release"),
        pytest.param("v1.36.0-gke.100", "1.0", ("fixed", "objectChanged"), id="build of a vendor"),
        pytest.param("v1.37.0", "1.0", ("rulesChanged", "server"), id="minor release"),
        pytest.param("", "1.0", ("rulesChanged", "server"), id="no version"),
        pytest.param("v1.36.0", "1.0.1", ("rulesChanged", "assay"), id="patch release of Assay"),
    ],
)
def test_a_patch_release_of_the_server_decides_nothing(
    store: SqlStore, server: str, assay: str, expected: tuple[str, ...]
) -> None:
    """A release of Assay does: it may evaluate in another way."""
    story = Story(store)
    story.scan([*SPACES, BROKEN, *rules()], assay="1.0")

    corrected = story.scan([*SPACES, CORRECTED, *rules()], server=server, assay=assay)
    assert {("resolved", *WEB): expected} == facts(corrected)


@pytest.mark.parametrize(
    ("later", "cause"),
    [
        pytest.param(rules({"message": "host network is not allowed"}), "policy", id="message"),
        pytest.param(rules({"reason": "Invalid"}), "policy", id="reason"),
        pytest.param(rules(bound={"validationActions": ["Deny"]}), "binding", id="actions"),
    ],
)
def test_a_text_is_the_cause_of_a_changed_finding(store: SqlStore, later: list[Document], cause: str) -> None:
    """The object still fails, and the finding has another message, reason or action; so has the difference."""
    story = Story(store)
    story.scan([*SPACES, BROKEN, *rules()])

    assert {("open", *WEB): (cause,)} == facts(story.scan([*SPACES, BROKEN, *later]))
    if cause == "binding":
        [problem] = store.compare_scans("scan-1", "scan-2").list_problems(CauseKind.BINDING, None)
        assert "changed" == problem.change


@pytest.mark.parametrize("later", TEXTS)
def test_a_text_is_not_the_cause_of_a_new_finding(store: SqlStore, later: list[Document]) -> None:
    """An object that passed fails now, because it changed."""
    story = Story(store)
    story.scan([*SPACES, CORRECTED, *rules()])

    broken = versioned(BROKEN, 3)
    assert {("new", *WEB): ("objectChanged",)} == facts(story.scan([*SPACES, broken, *later]))


def test_a_report_names_the_kinds_of_rules_whose_texts_changed(store: SqlStore) -> None:
    """The banner is about all that changed: its reader decides what that means."""
    story = Story(store)
    story.scan([*SPACES, BROKEN, *rules()])

    assert (CauseKind.POLICY,) == story.scan([*SPACES, CORRECTED, *rules({"message": "no"})]).changed_rules


def test_an_annotation_that_was_corrected_is_no_fixed_object(store: SqlStore) -> None:
    """An annotation that fails denies its object: its expression decides about its own check."""
    story, failing = Story(store), {**ANNOTATION, "valueExpression": "object.metadata.labels.owner"}
    story.scan([*SPACES, versioned(CORRECTED, 1), *rules(auditAnnotations=[failing])])

    corrected = facts(story.scan([*SPACES, CORRECTED, *rules(auditAnnotations=[ANNOTATION])]))
    assert {("resolved", "auditAnnotation", "shop/web"): ("rulesChanged", "policy")} == corrected


def test_an_annotation_that_exhausts_the_budget_fixes_nothing(store: SqlStore) -> None:
    """The error about the whole invocation replaces the outcomes of all checks, and its end is no remediation."""
    dear = [{"key": f"k{place}", "valueExpression": f"string({TRUE})"} for place in range(12)]
    story = Story(store)
    story.scan([*SPACES, BROKEN, *rules()])

    exhausted = facts(story.scan([*SPACES, BROKEN, *rules(auditAnnotations=dear)]))
    again = facts(story.scan([*SPACES, CORRECTED, *rules()]))
    assert {("resolved", *WEB): ("rulesChanged", "policy"), ("new", *WHOLE): ("policy",)} == exhausted
    assert {("resolved", *WHOLE): ("rulesChanged", "policy")} == again


KYVERNO_RULE: Document = {"expression": CHECKED, "message": "no", "messageExpression": "'none'", "reason": "Forbidden"}


@pytest.mark.parametrize(
    ("changed", "spec", "expected"),
    [
        pytest.param({"message": "never"}, {}, ("fixed", "objectChanged"), id="message"),
        pytest.param({"messageExpression": "'never'"}, {}, ("fixed", "objectChanged"), id="expression of a message"),
        pytest.param({"reason": "Invalid"}, {}, ("rulesChanged", "policy"), id="reason"),
        pytest.param({}, {"validationActions": ["Deny"]}, ("rulesChanged", "policy"), id="actions"),
        pytest.param({}, {"auditAnnotations": [ANNOTATION]}, ("rulesChanged", "policy"), id="annotations"),
    ],
)
def test_of_policies_of_kyverno_messages_alone_are_texts(
    store: SqlStore, changed: Document, spec: Document, expected: tuple[str, ...]
) -> None:
    """Reasons, actions and annotations decide."""
    story = Story(store, kinds=(*KINDS, *KYVERNO))
    story.scan([*SPACES, BROKEN, kyverno_policy(KYVERNO_RULE, validationActions=["Audit"])])

    later = kyverno_policy({**KYVERNO_RULE, **changed}, **{"validationActions": ["Audit"], **spec})
    assert expected == facts(story.scan([*SPACES, CORRECTED, later]))["resolved", *WEB]


def test_a_message_that_does_not_compile_fixes_nothing(store: SqlStore) -> None:
    """Kyverno does not load the policy then, so that every object has an error instead; nor does its repair fix an object."""
    story, checked = Story(store, kinds=(*KINDS, *KYVERNO)), kyverno_policy(KYVERNO_RULE)
    story.scan([*SPACES, BROKEN, checked])

    broken = facts(story.scan([*SPACES, BROKEN, kyverno_policy({**KYVERNO_RULE, "messageExpression": "nothing"})]))
    repaired = facts(story.scan([*SPACES, CORRECTED, checked]))
    assert {("resolved", *WEB): ("rulesChanged", "policy"), ("new", *WHOLE): ("policy",)} == broken
    assert {("resolved", *WHOLE): ("rulesChanged", "policy")} == repaired


def edited(name: str, **validation: str) -> Policy:
    """The policy of the old database with another field of its check."""
    of_check = [{"expression": CHECK.expression, **validation}]
    return policy_of(
        name, digest=str(of_check), manifest={"metadata": {"name": name}, "spec": {"validations": of_check}}
    )


@pytest.mark.parametrize(
    ("later", "expected"),
    [
        pytest.param(policy_of("replicas"), ("fixed", "objectChanged"), id="nothing else changed"),
        pytest.param(edited("replicas", message="few"), ("fixed", "objectChanged"), id="another message"),
        pytest.param(edited("replicas", expression="true"), ("rulesChanged", "policy"), id="another expression"),
    ],
)
def test_the_day_of_an_upgrade_has_fixes(old: str, later: Policy, expected: tuple[str, str]) -> None:
    """Scans of an older version are compared by the manifests that they stored."""
    upgrade(old)
    with open_store(old, clock) as store:
        passing(Rules(own_policies=(later, policy_of("labels"))), store, 3)

        [stored] = store.read_scan("scan-3").resolved_findings()
        assert expected == (stored.resolution, stored.cause and stored.cause.kind.value)
