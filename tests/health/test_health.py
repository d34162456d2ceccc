"""Policy health: problems of policies and bindings, with any objects."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from scanner.model.scans.health import Health
from scanner.model.scans.scan import ScanState
from scanner.scan.documents import Manifest
from scanner.scan.options import Options
from tests.documents import CONFIG_MAPS, Document, binding, namespace, pod, policy, rule, thing
from tests.scan.fakes import FakeCluster, scanned

CONFIG = {"apiVersion": "v1", "kind": "ConfigMap"}
GONE = "2026-03-01T12:00:00Z"


def health(*documents: Document, options: Options | None = None) -> list[Health]:
    """The health of policies and bindings in a cluster with two pods."""
    chosen = replace(options or Options(), allow_empty=True)
    scan = scanned(FakeCluster([namespace("default"), pod("web"), pod("api"), *documents]), chosen)
    assert ScanState.COMPLETE == scan.scan.state
    return list(scan.end.health)


def entries(*documents: Document) -> list[tuple[str, str, str]]:
    """Kind, binding and detail of each health entry."""
    return [(str(problem.kind), problem.binding, problem.detail) for problem in health(*documents)]


def on_server(document: Document, *, generation: int = 2, **status: Any) -> Document:
    """A policy as a server stores it."""
    return {**document, "metadata": {**document["metadata"], "generation": generation}, "status": status}


def test_nothing_is_wrong_with_what_works() -> None:
    """A bound policy that compiles and matches has no health entry."""
    assert [] == health(policy("p", "true"), binding("b", "p"))


@pytest.mark.parametrize(
    ("documents", "expected"),
    [
        (
            [policy("p", "true")],
            (
                "unbound",
                "",
                "no binding names it: the server never evaluates it; preview it with `assay preview --bind p`",
            ),
        ),
        (
            [binding("b", "gone")],
            ("danglingBinding", "b", "the policy does not exist: the server ignores this binding"),
        ),
        (
            [policy("p", "true", paramKind={"apiVersion": "x.io/v1", "kind": "Widget"}), binding("b", "p")],
            (
                "paramKindNotServed",
                "",
                "failed to find resource referenced by paramKind: 'x.io/v1, Kind=Widget'",
            ),
        ),
        (
            [
                policy("p", "true", paramKind=CONFIG),
                binding("b", "p", paramRef={"name": "c", "namespace": "default", "parameterNotFoundAction": "Deny"}),
            ],
            ("paramNotFound", "b", "ConfigMap default/c does not exist: the binding denies every object it matches"),
        ),
        (
            [
                policy("p", "true", paramKind=CONFIG, failurePolicy="Ignore"),
                binding(
                    "b",
                    "p",
                    paramRef={
                        "selector": {"matchLabels": {"a": "b"}},
                        "namespace": "default",
                        "parameterNotFoundAction": "Deny",
                    },
                ),
            ],
            (
                "paramNotFound",
                "b",
                (
                    "no ConfigMap in namespace default has the labels that it selects: "
                    "an error for every object it matches, which failurePolicy Ignore lets pass"
                ),
            ),
        ),
        (
            [
                policy("p", "true", paramKind=CONFIG),
                binding("b", "p", paramRef={"name": "c", "parameterNotFoundAction": "Allow"}),
            ],
            (
                "paramNotFound",
                "b",
                "there is no param for 2 of 2 objects that it matched: they were not evaluated",
            ),
        ),
        (
            [
                policy("p", "true", matchConstraints={"resourceRules": [rule("pods"), rule("widgets", group="x.io")]}),
                binding("b", "p"),
            ],
            (
                "matchesNoServedKind",
                "",
                "spec.matchConstraints.resourceRules[1] matches no kind that the cluster serves and lists",
            ),
        ),
        (
            [policy("p", "true"), binding("b", "p", matchResources={"resourceRules": [rule("gadgets")]})],
            (
                "matchesNoServedKind",
                "b",
                "spec.matchResources.resourceRules[0] matches no kind that the cluster serves and lists",
            ),
        ),
        (
            [
                policy(
                    "p",
                    "true",
                    matchConstraints={
                        "resourceRules": [
                            rule("pods"),
                            rule("validatingadmissionpolicies", group="admissionregistration.k8s.io"),
                        ]
                    },
                ),
                binding("b", "p"),
            ],
            (
                "matchesNoServedKind",
                "",
                "spec.matchConstraints.resourceRules[1] matches only kinds that are exempt from policies",
            ),
        ),
        (
            [policy("p", "true", matchConstraints={"resourceRules": [rule("nodes")]}), binding("b", "p")],
            ("matchedNoObject", "b", "every kind of the scan was listed"),
        ),
        (
            [policy("p", "object.spec.replicas > 1", failurePolicy="Ignore"), binding("b", "p")],
            ("hiddenErrors", "b", "2 checks failed to evaluate, and failurePolicy Ignore lets the objects pass"),
        ),
        (
            [
                policy("p", "true", matchConstraints={"resourceRules": [rule("pods", operations=["DELETE"])]}),
                binding("b", "p"),
            ],
            ("notAuditable", "", "its rules name only DELETE: no write of a stored object"),
        ),
        (
            [policy("p", "true", matchConstraints={"resourceRules": [rule("pods/exec")]}), binding("b", "p")],
            ("notAuditable", "", "its rules name only subresources: no list shows their objects"),
        ),
    ],
)
def test_each_problem_is_reported(documents: list[Document], expected: tuple[str, str, str]) -> None:
    """Each problem is reported once, with its policy or binding."""
    assert expected in entries(*documents)


def test_objects_without_a_param_are_counted() -> None:
    """A binding with params from the object's namespace evaluates only in namespaces with a param."""
    there = [namespace("other"), pod("far", "other"), thing(CONFIG_MAPS, "c", "other")]
    bound = binding("b", "p", paramRef={"name": "c", "parameterNotFoundAction": "Allow"})
    assert [
        ("paramNotFound", "b", "there is no param for 2 of 3 objects that it matched: they were not evaluated")
    ] == entries(*there, policy("p", "true", paramKind=CONFIG), bound)


def test_an_expression_that_does_not_compile_is_reported_with_its_path() -> None:
    """The server stores such a policy, and every evaluation is an error."""
    ((kind, _, detail), *_) = entries(policy("p", "params.x"), binding("b", "p"))
    assert "doesNotCompile" == kind
    assert detail.startswith(
        "spec.validations[0].expression: compilation failed: ERROR: <input>:1:1: undeclared reference to 'params'"
    )


def test_a_rule_on_a_subresource_is_about_a_kind_that_is_served() -> None:
    """A rule on a subresource beside a rule on its objects is no problem."""
    spec = {"matchConstraints": {"resourceRules": [rule("pods"), rule("pods/exec")]}}
    assert [] == health(policy("p", "true", **spec), binding("b", "p"))


WARNING = {
    "fieldRef": "spec.validations[0].expression",
    "warning": "/v1, Kind=Pod: ERROR: <input>:1:12: undefined field 'x'\n | object.spec.x\n | ...........^\n",
}


def test_type_warnings_of_the_server_are_shown() -> None:
    """The warnings are those of the current generation."""
    checked = on_server(policy("p", "true"), observedGeneration=2, typeChecking={"expressionWarnings": [WARNING]})
    text = WARNING["warning"].strip()
    assert [("typeWarning", "", f"spec.validations[0].expression: {text}")] == entries(checked, binding("b", "p"))


def test_type_warnings_of_an_older_generation_are_not_shown() -> None:
    """The warnings may be obsolete; the stale status is reported instead."""
    stale = on_server(policy("p", "true"), observedGeneration=1, typeChecking={"expressionWarnings": [WARNING]})
    assert [
        ("staleStatus", "", "its types were checked as of generation 1, and it is at 2: the warnings are not shown")
    ] == entries(stale, binding("b", "p"))


def test_a_policy_that_no_controller_has_checked_is_reported() -> None:
    """The types of such a policy are not checked."""
    assert [
        (
            "staleStatus",
            "",
            "no controller has checked its types yet (its generation is 2): is kube-controller-manager well?",
        )
    ] == entries(on_server(policy("p", "true")), binding("b", "p"))


def test_a_mutating_policy_has_no_status_that_could_be_stale() -> None:
    """The API of mutating policies has no status, and no controller checks types."""
    mutating = on_server(
        {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "MutatingAdmissionPolicy",
            "metadata": {"name": "m"},
            "spec": {
                "failurePolicy": "Fail",
                "reinvocationPolicy": "Never",
                "matchConstraints": policy("p", "true")["spec"]["matchConstraints"],
                "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object{}"}}],
            },
        }
    )
    bound = {**binding("b", "m"), "kind": "MutatingAdmissionPolicyBinding", "spec": {"policyName": "m"}}
    assert [] == entries(mutating, bound)


def test_a_false_status_condition_is_reported() -> None:
    """The entry has the server's reason; a true condition has no entry."""
    conditions = [
        {"type": "Ready", "status": "False", "reason": "Broken", "message": "oops"},
        {"type": "Fine", "status": "True"},
    ]
    conditioned = on_server(policy("p", "true"), observedGeneration=2, conditions=conditions)
    assert [("statusCondition", "", "Ready is False (Broken: oops)")] == entries(conditioned, binding("b", "p"))


@pytest.mark.parametrize(
    ("repeats", "expected"),
    [
        (30, []),
        (
            120,
            [
                (
                    "nearCostLimit",
                    "",
                    "an evaluation used 85% of what it may cost; beyond that the API server calls it an error",
                )
            ],
        ),
    ],
)
def test_cost_near_the_limit_is_reported(repeats: int, expected: list[tuple[str, str, str]]) -> None:
    """The cost is no error yet: a slightly larger object exceeds the limit."""
    slow = "lists.range(1000).all(a, [" + ",".join(["1"] * repeats) + "].all(b, b + a >= 0))"
    assert expected == entries(policy("p", slow), binding("b", "p"))


def test_the_status_of_a_policy_that_nothing_binds_is_shown_too() -> None:
    """A binding may put the policy into force later."""
    stale = on_server(policy("p", "true"), observedGeneration=1)
    assert ["staleStatus", "unbound"] == [kind for kind, _, _ in entries(stale)]


def test_a_policy_on_its_way_out_is_evaluated_until_it_is_gone() -> None:
    """The server evaluates policies and bindings until they are deleted."""
    leaving, last = policy("p", "false"), binding("b", "p")
    for document in (leaving, last):
        document["metadata"]["deletionTimestamp"] = GONE
    scan = scanned(FakeCluster([namespace("default"), pod("web"), leaving, last]))
    assert 1 == len(scan.findings)
    assert [("note", "p", ""), ("note", "p", "b")] == scan.health


@pytest.mark.parametrize(
    ("first", "other", "expected"),
    [
        ({}, {}, [("duplicateBinding", "b")]),
        ({"paramRef": {"name": "x"}}, {}, [("duplicateBinding", "b")]),
        ({"matchResources": {}}, {}, [("duplicateBinding", "b")]),
        ({}, {"matchResources": {"namespaceSelector": {"matchLabels": {"a": "b"}}}}, [("shadowedBinding", "b")]),
        ({"matchResources": {"objectSelector": {"matchLabels": {"a": "b"}}}}, {}, [("shadowedBinding", "a")]),
        ({"validationActions": ["Deny", "Audit"]}, {"validationActions": ["Audit"]}, [("shadowedBinding", "b")]),
        ({"validationActions": ["Deny"]}, {"validationActions": ["Warn"]}, []),
        (
            {"matchResources": {"namespaceSelector": {"matchLabels": {"a": "b"}}}},
            {"matchResources": {"namespaceSelector": {"matchLabels": {"a": "c"}}}},
            [],
        ),
    ],
)
def test_bindings_that_add_nothing(first: Document, other: Document, expected: list[tuple[str, str]]) -> None:
    """Two bindings are equal, or one covers the other."""
    labelled = pod("both", labels={"a": "b"})
    spaces = [namespace("default", a="b"), namespace("other", a="c"), pod("x", "other")]
    documents = [policy("p", "true"), binding("a", "p", **first), binding("b", "p", **other)]
    scan = scanned(FakeCluster([*spaces, labelled, *documents]))
    assert expected == [(str(problem.kind), problem.binding) for problem in scan.end.health]


def test_bindings_with_other_params_are_not_the_same() -> None:
    """Each binding has its own param."""
    references = [{"name": name, "namespace": "default", "parameterNotFoundAction": "Deny"} for name in ("x", "y")]
    bindings = [binding(f"b{index}", "p", paramRef=reference) for index, reference in enumerate(references)]
    params = [thing(CONFIG_MAPS, name, "default") for name in ("x", "y")]
    assert [] == health(policy("p", "true", paramKind=CONFIG), *bindings, *params)


def test_a_preview_says_that_nothing_binds_the_policy() -> None:
    """Without the note, its findings would look like those of admission."""
    options = Options(assume_bound=(("p", "Deny"),))
    assert ["no binding names it: the server never evaluates it; this scan previews it"] == [
        problem.detail for problem in health(policy("p", "true"), options=options)
    ]


def test_a_file_that_was_never_on_a_server_has_no_status() -> None:
    """A policy without a status has no health entry."""
    manifests = (
        Manifest("f.yaml, document 1", policy("new", "true")),
        Manifest("f.yaml, document 2", binding("new", "new")),
    )
    assert [] == health(options=Options(manifests=manifests))
