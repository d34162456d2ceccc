"""The results of one policy for one object: conditions, variables, validations, messages, annotations, failure policy.

Rules: `docs/semantics/evaluation.md#configuration-errors`, `docs/semantics/evaluation.md#order`.
"""

from __future__ import annotations

from typing import Any

import pytest

from scanner.admission.context import EvaluationContext
from scanner.admission.dispatch import InvocationResult, evaluate_object
from scanner.model.outcome import CheckKind, CheckResult, Errored, Outcome, Passed, Skipped, SkipReason, Violated
from scanner.model.resource import resource_of
from scanner.policies.validating.language import bind, read_binding, read_policy
from scanner.scan.param_table import ParamTable
from tests import documents
from tests.documents import CONFIG_MAPS, KINDS, PODS, Document, namespace, pod, thing

POD = pod("web", "shop", replicas=3, labels={"app": "web"})
SHOP = namespace("shop", team="a") | {"spec": {"finalizers": ["kubernetes"]}}
CONFIG = {"apiVersion": "v1", "kind": "ConfigMap"}


def invocation_results(
    spec: Document, binding: Document | None = None, *params: Document, **context: Any
) -> list[InvocationResult]:
    """The results of a policy on pods for a pod, under one binding."""
    table = ParamTable(KINDS)
    for param in params:
        table.add(param)
    bound = bind(
        [read_policy(documents.policy("p", **spec))], [read_binding(binding or documents.binding("b", "p", "Audit"))]
    )
    given = {"namespaces": {"shop": SHOP}, **context}
    return list(evaluate_object(bound[0], resource_of(PODS, POD), PODS, EvaluationContext(table, **given)))


def check_results(**spec: Any) -> tuple[CheckResult, ...]:
    """The check results of the only invocation."""
    (invocation_result,) = invocation_results({"validations": [], **spec})
    return invocation_result.check_results


def outcome(**validation: Any) -> Outcome:
    """The outcome of one validation."""
    spec = {key: validation.pop(key) for key in ("failurePolicy", "variables") if key in validation}
    (check_result,) = check_results(validations=[validation], **spec)
    return check_result.outcome


def test_true_passes_and_anything_else_does_not() -> None:
    """A validation that is not `true` is violated with any failure policy."""
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
    """The reason counts as stored: an older server may have accepted a reason that is refused today."""
    result = outcome(expression="false", reason=reason)
    assert isinstance(result, Violated)
    assert expected == (result.reason, result.code)


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
    """Fail denies if the binding's actions deny, Ignore admits; the text is kept in both cases."""
    fails = failure_policy == "Fail"
    result = outcome(expression=expression, failurePolicy=failure_policy)
    assert isinstance(result, Errored)
    assert (fails, False, message) == (result.would_deny, result.always, result.message)


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
def test_the_message_of_a_violation(validation: Document, message: str) -> None:
    """The message is a messageExpression of one usable line, else the message, else the expression."""
    result = outcome(**{"expression": "false", **validation})
    assert isinstance(result, Violated)
    assert message == result.message


def test_nothing_short_circuits() -> None:
    """Every validation and every annotation has an outcome, also after a failure."""
    validations = [{"expression": text} for text in ("false", "object.none", "true", "object.spec.none == 1")]
    annotations = [{"key": "k", "valueExpression": "'v'"}]
    results = check_results(validations=validations, auditAnnotations=annotations)
    assert [Violated, Errored, Passed, Errored, Passed] == [type(result.outcome) for result in results]
    assert [0, 1, 2, 3, 0] == [result.check.index for result in results]


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
    """A false condition has precedence over errors; conditions read variables, and no namespace."""
    named = [{"name": f"c{index}", "expression": text} for index, text in enumerate(conditions)]
    results = check_results(
        validations=[{"expression": "false"}],
        matchConditions=named,
        variables=[{"name": "yes", "expression": "true"}],
    )
    assert [expected] == [type(result.outcome) for result in results]


def test_a_false_condition_skips_every_check() -> None:
    """The outcome names the condition."""
    results = check_results(
        validations=[{"expression": "false"}] * 2,
        auditAnnotations=[{"key": "k", "valueExpression": "'v'"}],
        matchConditions=[{"name": "never", "expression": "false"}],
    )
    assert [Skipped(SkipReason.CONDITION_FALSE, "never")] * 3 == [result.outcome for result in results]


def test_failing_conditions_replace_all_results() -> None:
    """Different errors are listed in brackets, equal errors once."""
    texts = ("object.a == 1", "object.b == 1", "object.a == 1")
    conditions = [{"name": f"c{index}", "expression": text} for index, text in enumerate(texts)]
    (result,) = check_results(validations=[{"expression": "true"}] * 2, matchConditions=conditions)
    errors = [f"expression 'object.{key} == 1' resulted in error: no such key: {key}" for key in "ab"]
    assert (CheckKind.CONDITIONS, Errored(f"[{', '.join(errors)}]", would_deny=True)) == (
        result.check.kind,
        result.outcome,
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
    """A variable is evaluated only where it is used; an error names the variables on its way."""
    result = outcome(expression=expression, variables=[{"name": name, "expression": text} for name, text in variables])
    assert expected == result


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
def test_variables_with_unreadable_names(name: str, *, readable: bool) -> None:
    """A name that looks escaped is unescaped for the look-up; kube-apiserver 1.36 decided each of these cases."""
    result = outcome(expression=f"variables.{name} == 1", variables=[{"name": name, "expression": "1"}])
    error = f"expression 'variables.{name} == 1' resulted in error: no such key: {name}"
    assert (Passed() if readable else Errored(error, would_deny=True)) == result


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("'v'", Passed("v")),
        ("'  v\\n '", Passed("v")),
        ("' '", Passed()),
        ("null", Passed()),
        ("object.metadata.name == 'web' ? 'yes' : ''", Passed("yes")),
        (f"'{'é' * 5120}x'", Passed("é" * 5120)),
        (f"'x{'é' * 5120}'", Passed("x" + "é" * 5119 + "\ufffd")),
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
    """An annotation is published if it is not blank, up to 10240 bytes; an error denies with any actions."""
    (result,) = check_results(auditAnnotations=[{"key": "k", "valueExpression": expression}])
    assert expected == result.outcome


def test_failing_annotations_admit_with_failure_policy_ignore() -> None:
    """The error is kept as an outcome."""
    (result,) = check_results(
        auditAnnotations=[{"key": "k", "valueExpression": "string(object.none)"}], failurePolicy="Ignore"
    )
    assert (False, False) == (result.outcome.would_deny, result.outcome.always)  # type: ignore[union-attr]


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
    """Fields that only the server needs are absent."""
    full = SHOP | {"metadata": {**SHOP["metadata"], "managedFields": [{"manager": "x"}]}}
    (invocation_result,) = invocation_results({"validations": [{"expression": expression}]}, namespaces={"shop": full})
    assert expected is type(invocation_result.check_results[0].outcome)


def bound_to(**reference: Any) -> Document:
    """A binding that only audits, with a reference to params."""
    return documents.binding("b", "p", "Audit", paramRef={"parameterNotFoundAction": "Deny", **reference})


def test_every_param_is_an_evaluation_of_its_own() -> None:
    """Params are evaluated in the order of their names, each with its own outcome."""
    params = [
        thing(CONFIG_MAPS, name, "shop", metadata={"labels": {"a": "b"}}, data={"n": name}) for name in ("y", "x")
    ]
    spec = {"paramKind": CONFIG, "validations": [{"expression": "params.data.n == 'x'"}]}
    results = invocation_results(spec, bound_to(selector={"matchLabels": {"a": "b"}}), *params)
    assert [("x", Passed), ("y", Violated)] == [
        (result.invocation.param and result.invocation.param.name, type(result.check_results[0].outcome))
        for result in results
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
def test_a_configuration_error_denies_with_any_action(spec: Document, reference: Document, text: str) -> None:
    """A binding that only audits denies, too; one result stands for the whole invocation."""
    (invocation_result,) = invocation_results({"validations": [{"expression": "true"}], **spec}, bound_to(**reference))
    assert [(CheckKind.CONFIGURATION, Errored(text, would_deny=True, always=True))] == [
        (result.check.kind, result.outcome) for result in invocation_result.check_results
    ]


def test_a_configuration_error_admits_with_failure_policy_ignore() -> None:
    """The server drops the error silently; Assay keeps it as an error that admits."""
    spec = {"paramKind": CONFIG, "failurePolicy": "Ignore", "validations": [{"expression": "true"}]}
    (invocation_result,) = invocation_results(spec, bound_to(name="none"))
    assert [(False, False)] == [
        (result.outcome.would_deny, result.outcome.always)  # type: ignore[union-attr]
        for result in invocation_result.check_results
    ]


def test_an_unknown_failure_policy_denies_with_its_own_error() -> None:
    """The API refuses such a policy; a database that was changed directly may hold one."""
    spec = {"paramKind": CONFIG, "failurePolicy": "Perhaps", "validations": [{"expression": "true"}]}
    (invocation_result,) = invocation_results(spec, bound_to(name="none"))
    assert [Errored("unrecognized failure policy: 'Perhaps'", would_deny=True, always=True)] == [
        result.outcome for result in invocation_result.check_results
    ]


def test_a_missing_param_that_is_allowed_evaluates_nothing() -> None:
    """Audit annotations are not evaluated either; the match is recorded."""
    spec = {"paramKind": CONFIG, "auditAnnotations": [{"key": "k", "valueExpression": "'v'"}]}
    (invocation_result,) = invocation_results(
        {"validations": [], **spec}, bound_to(name="none", parameterNotFoundAction="Allow")
    )
    assert () == invocation_result.check_results


def test_without_a_reference_params_is_null() -> None:
    """A binding without a reference differs from a missing param."""
    spec = {"paramKind": CONFIG, "validations": [{"expression": "params == null"}]}
    (invocation_result,) = invocation_results(spec)
    assert Passed() == invocation_result.check_results[0].outcome


def test_a_policy_without_a_kind_of_params_ignores_the_reference() -> None:
    """`params` is not declared."""
    (invocation_result,) = invocation_results(
        {"validations": [{"expression": "params == null"}]}, bound_to(name="none")
    )
    (result,) = invocation_result.check_results
    assert isinstance(result.outcome, Errored)
    assert "undeclared reference to 'params'" in result.outcome.message
