"""What one policy says about one object: conditions, variables, validations, messages, annotations, failure policy.

Rules: `docs/semantics/evaluation.md#configuration-errors`, `docs/semantics/evaluation.md#order`.
"""

from __future__ import annotations

from typing import Any

import pytest

from scanner.admission.context import EvaluationContext
from scanner.admission.dispatch import InvocationResult, evaluate_object
from scanner.model.outcome import CheckKind, CheckResult, Errored, Outcome, Passed, Skipped, SkipReason, Violated
from scanner.model.resource import resource_of
from scanner.policies.validating.bind import bind, read_binding, read_policy
from scanner.scan.param_table import ParamTable
from tests import documents
from tests.documents import CONFIG_MAPS, KINDS, PODS, Document, namespace, pod, thing

POD = pod("web", "shop", replicas=3, labels={"app": "web"})
SHOP = namespace("shop", team="a") | {"spec": {"finalizers": ["kubernetes"]}}
CONFIG = {"apiVersion": "v1", "kind": "ConfigMap"}


def invocation_results(
    spec: Document, binding: Document | None = None, *params: Document, **world: Any
) -> list[InvocationResult]:
    """What a policy on pods says about a pod, under one binding."""
    table = ParamTable(KINDS)
    for param in params:
        table.add(param)
    bound = bind(
        [read_policy(documents.policy("p", **spec))], [read_binding(binding or documents.binding("b", "p", "Audit"))]
    )
    given = {"namespaces": {"shop": SHOP}, **world}
    return list(evaluate_object(bound[0], resource_of(PODS, POD), PODS, EvaluationContext(table, **given)))


def check_results(**spec: Any) -> tuple[CheckResult, ...]:
    """The judgements of the only ruling."""
    (invocation_result,) = invocation_results({"validations": [], **spec})
    return invocation_result.check_results


def outcome(**validation: Any) -> Outcome:
    """The outcome of one validation."""
    spec = {key: validation.pop(key) for key in ("failurePolicy", "variables") if key in validation}
    (check_result,) = check_results(validations=[validation], **spec)
    return check_result.outcome


def test_true_passes_and_anything_else_does_not() -> None:
    """A validation that is not `true` is violated, whatever the failure policy is."""
    assert Passed() == outcome(expression="object.spec.replicas == 3")
    assert Violated("failed expression: object.spec.replicas == 4") == outcome(
        expression="object.spec.replicas == 4", failurePolicy="Ignore"
    )


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("", ("Invalid", 422)),
        ("Unauthorized", ("Unauthorized", 401)),
        ("Forbidden", ("Forbidden", 403)),
        ("RequestEntityTooLarge", ("RequestEntityTooLarge", 413)),
        ("Invalid", ("Invalid", 422)),
        ("Whatever", ("Whatever", 422)),
    ],
)
def test_the_reason_decides_the_code(reason: str, expected: tuple[str, int]) -> None:
    """As stored: an older server may have taken one that is refused today."""
    found = outcome(expression="false", reason=reason)
    assert isinstance(found, Violated)
    assert expected == (found.reason, found.code)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("object.spec.none == 1", "expression 'object.spec.none == 1' resulted in error: no such key: none"),
        (
            "nope",
            (
                "compilation error: compilation failed: ERROR: <input>:1:1: undeclared reference to 'nope' "
                "(in container '')\n | nope\n | ^"
            ),
        ),
        ("object.spec.replicas", "compilation error: must evaluate to bool but got dyn"),
        (
            "'a'.find('[') == ''",
            "compilation error: program instantiation failed: error parsing regexp: missing closing ]: `[`",
        ),
    ],
)
@pytest.mark.parametrize("failure_policy", ["Fail", "Ignore"])
def test_an_error_is_what_the_failure_policy_makes_of_it(expression: str, message: str, failure_policy: str) -> None:
    """Fail refuses as the actions of the binding say, Ignore admits; the text is kept either way."""
    fails = failure_policy == "Fail"
    found = outcome(expression=expression, failurePolicy=failure_policy)
    assert isinstance(found, Errored)
    assert (fails, False, message) == (found.would_deny, found.always, found.message)


@pytest.mark.parametrize(
    ("validation", "message"),
    [
        ({"messageExpression": "'no ' + object.metadata.name"}, "no web"),
        ({"messageExpression": "'  blanks \\t'", "message": "m"}, "blanks"),
        ({"messageExpression": "'a\\rb'", "message": "m"}, "a\rb"),
        ({"messageExpression": "'a\\nb'", "message": "m"}, "m"),
        ({"messageExpression": "'  '", "message": "m"}, "m"),
        ({"messageExpression": "object.spec.none", "message": "m"}, "m"),
        ({"messageExpression": "nope", "message": "m"}, "m"),
        ({"messageExpression": "1", "message": "m"}, "m"),
        ({"messageExpression": "dyn(1) == 1 ? dyn(null) : 'x'", "message": "m"}, "m"),
        ({"messageExpression": "string(authorizer == authorizer)", "message": "m"}, "m"),
        ({"messageExpression": f"'{'x' * 5120}'", "message": "m"}, "x" * 5120),
        ({"messageExpression": f"'{'x' * 5121}'", "message": "m"}, "m"),
        ({"messageExpression": f"'{'é' * 2560}'", "message": "m"}, "é" * 2560),
        ({"messageExpression": f"'{'é' * 2560}x'", "message": "m"}, "m"),
        ({"messageExpression": "", "message": "m"}, "m"),
        ({"messageExpression": "object.spec.none"}, "failed expression: false"),
        ({"message": "  m \n"}, "m"),
        ({"message": "two\nlines"}, "two\nlines"),
        ({"message": "  "}, "failed expression: false"),
        ({}, "failed expression: false"),
        ({"expression": "\n  false &&\n  true\n"}, "failed expression: false &&\n  true"),
    ],
)
def test_what_a_violation_says(validation: Document, message: str) -> None:
    """The messageExpression if it yields one usable line, else the message, else the expression itself."""
    found = outcome(**{"expression": "false", **validation})
    assert isinstance(found, Violated)
    assert message == found.message


def test_nothing_short_circuits() -> None:
    """Every validation and every annotation has its outcome, also after a failure."""
    validations = [{"expression": text} for text in ("false", "object.none", "true", "object.spec.none == 1")]
    annotations = [{"key": "k", "valueExpression": "'v'"}]
    found = check_results(validations=validations, auditAnnotations=annotations)
    assert [Violated, Errored, Passed, Errored, Passed] == [type(it.outcome) for it in found]
    assert [0, 1, 2, 3, 0] == [it.check.index for it in found]


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        (["true"], Violated),
        (["true", "object.spec.replicas == 3"], Violated),
        (["false"], Skipped),
        (["object.none", "false"], Skipped),
        (["false", "object.none.x"], Skipped),
        (["nope", "false"], Skipped),
        (["true", "object.none.x == 1"], Errored),
        (["nope"], Errored),
        (["namespaceObject.metadata.name == 'shop'"], Errored),
        (["namespaceObject == null"], Violated),
        (["variables.yes"], Violated),
        (["request.resource.resource == 'pods'"], Violated),
    ],
)
def test_match_conditions(conditions: list[str], expected: type[Outcome]) -> None:
    """One that is false beats every error; they see variables, and no namespace."""
    named = [{"name": f"c{index}", "expression": text} for index, text in enumerate(conditions)]
    found = check_results(
        validations=[{"expression": "false"}],
        matchConditions=named,
        variables=[{"name": "yes", "expression": "true"}],
    )
    assert [expected] == [type(it.outcome) for it in found]


def test_a_false_condition_skips_every_check() -> None:
    """And is named."""
    found = check_results(
        validations=[{"expression": "false"}] * 2,
        auditAnnotations=[{"key": "k", "valueExpression": "'v'"}],
        matchConditions=[{"name": "never", "expression": "false"}],
    )
    assert [Skipped(SkipReason.CONDITION_FALSE, "never")] * 3 == [it.outcome for it in found]


def test_erring_conditions_speak_for_the_whole_policy() -> None:
    """Different errors are listed in brackets, equal ones once."""
    texts = ("object.a == 1", "object.b == 1", "object.a == 1")
    conditions = [{"name": f"c{index}", "expression": text} for index, text in enumerate(texts)]
    (found,) = check_results(validations=[{"expression": "true"}] * 2, matchConditions=conditions)
    errors = [f"expression 'object.{key} == 1' resulted in error: no such key: {key}" for key in "ab"]
    assert (CheckKind.CONDITIONS, Errored(f"[{', '.join(errors)}]", would_deny=True)) == (
        found.check.kind,
        found.outcome,
    )
    (ignored,) = check_results(
        validations=[{"expression": "true"}], matchConditions=conditions[:1], failurePolicy="Ignore"
    )
    assert Errored(errors[0], would_deny=False) == ignored.outcome


@pytest.mark.parametrize(
    ("variables", "expression", "expected"),
    [
        ([("a", "1"), ("b", "variables.a + 1")], "variables.b == 2", Passed()),
        ([("broken", "object.none.x")], "true", Passed()),
        ([("broken", "nope")], "true", Passed()),
        (
            [("a", "object.z"), ("b", "variables.a")],
            "variables.b == 1",
            Errored(
                "expression 'variables.b == 1' resulted in error: composited variable \"b\" fails to evaluate: "
                'composited variable "a" fails to evaluate: no such key: z',
                would_deny=True,
            ),
        ),
        (
            [("a", "nope")],
            "variables.a == 1",
            Errored(
                "expression 'variables.a == 1' resulted in error: composited variable \"a\" fails to compile: "
                "compilation failed: ERROR: <input>:1:1: undeclared reference to 'nope' (in container '')\n | nope\n | ^",
                would_deny=True,
            ),
        ),
        ([("a", "1")], "has(variables.a)", Passed()),
    ],
)
def test_variables(variables: list[tuple[str, str]], expression: str, expected: Outcome) -> None:
    """Evaluated where they are used, and nowhere else; errors tell through which of them they came."""
    found = outcome(expression=expression, variables=[{"name": name, "expression": text} for name, text in variables])
    assert expected == found


@pytest.mark.parametrize(
    ("name", "readable"),
    [
        ("a_b", True),
        ("__x", True),
        ("x__", True),
        ("a____b", True),
        ("_____", True),
        ("a__b_c__d", True),
        ("a__dash__b", False),
        ("__namespace__", False),
        ("foo__bar__baz", False),
        ("a___b__c", False),
        ("a__1__b", False),
    ],
)
def test_variables_that_nobody_can_read(name: str, *, readable: bool) -> None:
    """A name that looks escaped is unescaped when it is looked up; kube-apiserver 1.36 answered so for each of these."""
    found = outcome(expression=f"variables.{name} == 1", variables=[{"name": name, "expression": "1"}])
    error = f"expression 'variables.{name} == 1' resulted in error: no such key: {name}"
    assert (Passed() if readable else Errored(error, would_deny=True)) == found


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("'v'", Passed("v")),
        ("'  v\\n '", Passed("v")),
        ("' '", Passed()),
        ("null", Passed()),
        ("object.metadata.name == 'web' ? 'yes' : ''", Passed("yes")),
        (f"'{'é' * 5120}x'", Passed("é" * 5120)),
        (f"'x{'é' * 5120}'", Passed("x" + "é" * 5119)),
        (
            "string(object.none)",
            Errored(
                "expression 'string(object.none)' resulted in error: no such key: none", would_deny=True, always=True
            ),
        ),
        (
            "1",
            Errored(
                "compilation error: must evaluate to one of [string null_type] but got int",
                would_deny=True,
                always=True,
            ),
        ),
        (
            "string(namespaceObject.metadata.labels.team)",
            Passed("a"),
        ),
    ],
)
def test_audit_annotations(expression: str, expected: Outcome) -> None:
    """Published when they are not blank, cut at 10240 bytes; an error refuses whatever the actions are."""
    (found,) = check_results(auditAnnotations=[{"key": "k", "valueExpression": expression}])
    assert expected == found.outcome


def test_failing_annotations_are_left_out_where_the_failure_policy_says_so() -> None:
    """The error is kept all the same."""
    (found,) = check_results(
        auditAnnotations=[{"key": "k", "valueExpression": "string(object.none)"}], failurePolicy="Ignore"
    )
    assert (False, False) == (found.outcome.would_deny, found.outcome.always)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("namespaceObject.metadata.labels.team == 'a'", Passed),
        ("namespaceObject.spec.finalizers == ['kubernetes']", Passed),
        ("has(dyn(namespaceObject).metadata.managedFields)", Violated),
        ("has(dyn(namespaceObject).apiVersion)", Violated),
    ],
)
def test_validations_see_a_part_of_the_namespace(expression: str, expected: type[Outcome]) -> None:
    """Without what only the server needs."""
    full = SHOP | {"metadata": {**SHOP["metadata"], "managedFields": [{"manager": "x"}]}}
    (invocation_result,) = invocation_results({"validations": [{"expression": expression}]}, namespaces={"shop": full})
    assert expected is type(invocation_result.check_results[0].outcome)


def bound_to(**reference: Any) -> Document:
    """A binding that only audits, with a reference to params."""
    return documents.binding("b", "p", "Audit", paramRef={"parameterNotFoundAction": "Deny", **reference})


def test_every_param_is_an_evaluation_of_its_own() -> None:
    """In the order of their names, each with its own outcome."""
    params = [
        thing(CONFIG_MAPS, name, "shop", metadata={"labels": {"a": "b"}}, data={"n": name}) for name in ("y", "x")
    ]
    spec = {"paramKind": CONFIG, "validations": [{"expression": "params.data.n == 'x'"}]}
    found = invocation_results(spec, bound_to(selector={"matchLabels": {"a": "b"}}), *params)
    assert [("x", Passed), ("y", Violated)] == [
        (it.invocation.param and it.invocation.param.name, type(it.check_results[0].outcome)) for it in found
    ]


@pytest.mark.parametrize(
    ("spec", "reference", "text"),
    [
        (
            {"paramKind": CONFIG},
            {"name": "none"},
            "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction",
        ),
        (
            {"paramKind": {"apiVersion": "x.io/v1", "kind": "Widget"}},
            {"name": "none"},
            "failed to configure policy: failed to find resource referenced by paramKind: 'x.io/v1, Kind=Widget'",
        ),
        (
            {"paramKind": CONFIG},
            {"selector": {"matchExpressions": [{"key": "a", "operator": "Like"}]}},
            'failed to configure binding: "Like" is not a valid label selector operator',
        ),
        (
            {"paramKind": CONFIG},
            {"name": "x", "selector": {}},
            "failed to configure binding: paramRef.name and paramRef.selector are mutually exclusive",
        ),
        ({"paramKind": CONFIG}, {}, "failed to configure binding: one of name or selector must be provided"),
        (
            {"matchConstraints": None},
            {"name": "x"},
            "failed to configure policy: policy contained no match constraints, a required field",
        ),
        (
            {
                "matchConstraints": {
                    **documents.ON_PODS,
                    "objectSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]},
                }
            },
            {"name": "x"},
            "failed to configure policy: values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty",
        ),
    ],
)
def test_a_configuration_error_denies_whatever_the_actions_are(spec: Document, reference: Document, text: str) -> None:
    """The binding only audits; one judgement speaks for the whole invocation."""
    (invocation_result,) = invocation_results({"validations": [{"expression": "true"}], **spec}, bound_to(**reference))
    assert [(CheckKind.CONFIGURATION, Errored(text, would_deny=True, always=True))] == [
        (it.check.kind, it.outcome) for it in invocation_result.check_results
    ]


def test_a_configuration_error_is_let_pass_where_the_failure_policy_says_so() -> None:
    """The server drops it silently; it is kept here as an error that admits."""
    spec = {"paramKind": CONFIG, "failurePolicy": "Ignore", "validations": [{"expression": "true"}]}
    (invocation_result,) = invocation_results(spec, bound_to(name="none"))
    assert [(False, False)] == [
        (it.outcome.would_deny, it.outcome.always)  # type: ignore[union-attr]
        for it in invocation_result.check_results
    ]


def test_a_failure_policy_that_nobody_knows_denies_in_its_own_words() -> None:
    """The API refuses it; a store that was written to behind its back may hold it."""
    spec = {"paramKind": CONFIG, "failurePolicy": "Perhaps", "validations": [{"expression": "true"}]}
    (invocation_result,) = invocation_results(spec, bound_to(name="none"))
    assert [Errored("unrecognized failure policy: 'Perhaps'", would_deny=True, always=True)] == [
        it.outcome for it in invocation_result.check_results
    ]


def test_a_missing_param_that_is_allowed_evaluates_nothing() -> None:
    """Not even audit annotations; the match is told all the same."""
    spec = {"paramKind": CONFIG, "auditAnnotations": [{"key": "k", "valueExpression": "'v'"}]}
    (invocation_result,) = invocation_results(
        {"validations": [], **spec}, bound_to(name="none", parameterNotFoundAction="Allow")
    )
    assert () == invocation_result.check_results


def test_without_a_reference_params_is_null() -> None:
    """Which is not the same as a param that is missing."""
    spec = {"paramKind": CONFIG, "validations": [{"expression": "params == null"}]}
    (invocation_result,) = invocation_results(spec)
    assert Passed() == invocation_result.check_results[0].outcome


def test_a_policy_without_a_kind_of_params_ignores_the_reference() -> None:
    """`params` is not even declared."""
    (invocation_result,) = invocation_results(
        {"validations": [{"expression": "params == null"}]}, bound_to(name="none")
    )
    (found,) = invocation_result.check_results
    assert isinstance(found.outcome, Errored)
    assert "undeclared reference to 'params'" in found.outcome.message
