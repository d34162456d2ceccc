"""The cost limits of the expressions of one invocation, and the results beyond the limits.

Rules: `docs/semantics/cost.md#limits`, `docs/semantics/evaluation.md#match-conditions`,
`docs/semantics/evaluation.md#audit-annotations`.
"""

from __future__ import annotations

from typing import Any

import pytest

from scanner import cel
from scanner.admission.compiled import Expression, compile_expression, compile_policy
from scanner.admission.cost_budget import EXHAUSTED, RUNTIME, CostBudget, EvaluationFault, Variables, run
from scanner.model.outcome import CheckKind, CheckResult, Errored, Passed, Skipped, SkipReason, Violated
from scanner.policies.validating.language import read_policy
from tests import documents
from tests.admission.test_evaluate import check_results
from tests.documents import Document, pod


def search(length: int, part: str) -> str:
    """A search for some letters in as many letters: its cost is the square of a tenth of their number, and it takes no time."""
    return f"'{'a' * length}'.contains('{part * length}')"


TRUE, FALSE = search(9490, "a"), search(9490, "b")
"""Cost 900,601: eleven of them fit into a budget of ten million, two into one of two and a half."""
TOO_MUCH = search(10_010, "a")
"""Costs 1,002,001, too much for one evaluation."""
ERROR = "operation cancelled: actual cost limit exceeded"


def validations(*expressions: str, **fields: Any) -> list[Document]:
    """Validations, each with the same further fields."""
    return [{"expression": expression, **fields} for expression in expressions]


def only(results: tuple[CheckResult, ...]) -> tuple[CheckKind, int, Errored]:
    """The kind, the index and the error of the only check result."""
    ((check, outcome),) = ((result.check, result.outcome) for result in results)
    assert isinstance(outcome, Errored)
    return check.kind, check.index, outcome


EXHAUSTED_ALL = (CheckKind.CONFIGURATION, 0, Errored(EXHAUSTED, would_deny=True))


def test_validations_share_a_budget() -> None:
    """Costs of up to ten million change no outcome."""
    assert [Passed()] * 11 == [result.outcome for result in check_results(validations=validations(*[TRUE] * 11))]


def test_an_exhausted_budget_replaces_all_outcomes() -> None:
    """One error replaces all results, also of validations that passed or failed before."""
    assert EXHAUSTED_ALL == only(check_results(validations=validations("false", *[TRUE] * 12)))


def test_failure_policy_decides_about_an_exhausted_budget() -> None:
    """An exhausted budget is an error like any other: Ignore admits the request."""
    results = only(check_results(validations=validations(*[TRUE] * 12), failurePolicy="Ignore"))
    assert Errored(EXHAUSTED, would_deny=False) == results[2]


def test_one_expression_has_a_limit_of_its_own() -> None:
    """The other expressions are evaluated nevertheless."""
    message = f"expression '{TOO_MUCH}' resulted in error: {ERROR}"
    results = check_results(validations=validations(TOO_MUCH, "false"))
    assert [Errored(message, would_deny=True), Violated("failed expression: false")] == [
        result.outcome for result in results
    ]


def test_what_was_too_expensive_is_paid_for() -> None:
    """The cost of a stopped evaluation is charged."""
    texts = [TOO_MUCH] * 9
    assert 10 == len(check_results(validations=validations(*texts, TRUE)))
    assert EXHAUSTED_ALL == only(check_results(validations=validations(*texts, TRUE, TRUE)))


def test_a_compile_error_costs_nothing() -> None:
    """Only evaluated expressions are charged."""
    assert 22 == len(check_results(validations=validations(*[TRUE, f"{TRUE} && nope"] * 11)))


# --- match conditions


def conditions(*expressions: str) -> list[Document]:
    """Match conditions."""
    return [{"name": f"c{index}", "expression": expression} for index, expression in enumerate(expressions)]


def test_conditions_have_a_smaller_budget() -> None:
    """Match conditions have a budget of two and a half million, apart from that of the validations."""
    results = check_results(matchConditions=conditions(TRUE, TRUE), validations=validations(*[TRUE] * 11))
    assert [Passed()] * 11 == [result.outcome for result in results]


def test_conditions_can_exhaust_theirs() -> None:
    """Then one error replaces all results."""
    results = check_results(matchConditions=conditions(TRUE, TRUE, TRUE), validations=validations("true"))
    assert (CheckKind.CONDITIONS, 0, Errored(EXHAUSTED, would_deny=True)) == only(results)


def test_a_false_condition_does_not_save_the_budget() -> None:
    """All conditions are evaluated first; without errors, the first false condition is named."""
    expensive = check_results(matchConditions=conditions("false", TRUE, TRUE, TRUE), validations=validations("true"))
    assert (CheckKind.CONDITIONS, 0, Errored(EXHAUSTED, would_deny=True)) == only(expensive)
    affordable = check_results(matchConditions=conditions(FALSE, "false", TRUE), validations=validations("true"))
    assert [Skipped(SkipReason.CONDITION_FALSE, "c0")] == [result.outcome for result in affordable]


# --- messages and annotations


def test_messages_are_paid_from_what_validations_have_left() -> None:
    """Messages are evaluated for validations that pass as well."""
    results = check_results(
        validations=[*validations(*[TRUE] * 10), *validations("false", messageExpression=f"string({TRUE})")]
    )
    assert Violated("true") == results[-1].outcome


def test_exhausting_messages_are_errors_of_every_validation() -> None:
    """Validations that pass have the error, too; a validation with an error keeps its own."""
    dear = validations(*[TRUE] * 6, messageExpression=f"string({TRUE})")
    results = check_results(validations=[*dear, *validations("false", "object.none == 1")])
    failed = Errored(f"failed messageExpression: {EXHAUSTED}", would_deny=True)
    error = Errored("expression 'object.none == 1' resulted in error: no such key: none", would_deny=True)
    assert [*[failed] * 7, error] == [result.outcome for result in results]


def test_a_message_above_the_limit_is_only_left_out() -> None:
    """The next message in the order replaces it."""
    text = f"string({TOO_MUCH})"
    (result,) = check_results(validations=validations("false", messageExpression=text, message="plain"))
    assert Violated("plain") == result.outcome


def audited(*expressions: str) -> list[Document]:
    """Audit annotations."""
    return [{"key": f"k{index}", "valueExpression": expression} for index, expression in enumerate(expressions)]


def test_annotations_have_a_budget_of_their_own() -> None:
    """The budget of annotations is as large as that of the validations."""
    texts = audited(*[f"string({TRUE})"] * 11)
    results = check_results(validations=validations(*[TRUE] * 11), auditAnnotations=texts)
    assert [*[Passed()] * 11, *[Passed(annotation="true")] * 11] == [result.outcome for result in results]


def test_exhausting_annotations_replace_all_outcomes() -> None:
    """The results of the validations are lost."""
    texts = audited(*[f"string({TRUE})"] * 12)
    assert EXHAUSTED_ALL == only(check_results(validations=validations("false"), auditAnnotations=texts))


# --- variables


def variables(**expressions: str) -> list[Document]:
    """Variables."""
    return [{"name": name, "expression": expression} for name, expression in expressions.items()]


def test_a_variable_is_paid_for_once() -> None:
    """The first expression that reads the variable is charged."""
    results = check_results(variables=variables(v=TRUE), validations=validations(*["variables.v"] * 50))
    assert [Passed()] * 50 == [result.outcome for result in results]


def test_a_variable_is_paid_for_again_by_messages() -> None:
    """Messages have variables of their own: six variables twice exceed the budget."""
    names = [f"v{index}" for index in range(6)]
    results = check_results(
        variables=variables(**dict.fromkeys(names, TRUE)),
        validations=[
            {"expression": f"variables.{name}", "messageExpression": f"string(variables.{name})"} for name in names
        ],
    )
    assert [Errored(f"failed messageExpression: {EXHAUSTED}", would_deny=True)] * 6 == [
        result.outcome for result in results
    ]


def test_variables_do_not_count_towards_the_limit_of_their_reader() -> None:
    """Each variable has its own limit; only the budget is a sum."""
    names = [f"v{index}" for index in range(11)]
    text = " && ".join(f"variables.{name}" for name in names)
    (result,) = check_results(variables=variables(**dict.fromkeys(names, TRUE)), validations=validations(text))
    assert Passed() == result.outcome


def test_variables_can_exhaust_the_budget() -> None:
    """The budget can be exhausted inside an expression that reads variables."""
    names = [f"v{index}" for index in range(12)]
    text = " && ".join(f"variables.{name}" for name in names)
    results = check_results(variables=variables(**dict.fromkeys(names, TRUE)), validations=validations(text))
    assert EXHAUSTED_ALL == only(results)


def test_a_variable_above_the_limit_fails_to_evaluate() -> None:
    """Expressions that read the variable have an error; its cost is charged."""
    cause = f'composited variable "v" fails to evaluate: {ERROR}'
    (result,) = check_results(variables=variables(v=TOO_MUCH), validations=validations("variables.v"))
    assert Errored(f"expression 'variables.v' resulted in error: {cause}", would_deny=True) == result.outcome


def test_a_budget_is_the_same_for_every_param() -> None:
    """A charged amount is subtracted; an amount above the rest is not."""
    cost_budget = CostBudget(10)
    assert [True, False, True, False] == [cost_budget.charge(amount) for amount in (4, 7, 6, 1)]


def test_running_pays_for_the_variables_first() -> None:
    """The cost of variables and that of the expression are both charged."""
    expressions: dict[str, Expression] = {"v": compile_expression("[1, 2].map(x, x).size()", cel.Environment(), {})}
    activation: dict[str, object] = {}
    activation["variables"] = Variables(expressions, activation, metered=True)
    reader = compile_expression("variables.v + 1", cel.Environment().add_variable("v", cel.DYN), expressions)
    cost_budget = CostBudget(RUNTIME)
    assert (3, RUNTIME - 28 - 3) == (run(reader, activation, cost_budget), cost_budget.left)
    assert EvaluationFault(EXHAUSTED, ends=True) == run(reader, activation, CostBudget(2))


# --- when nothing has to be counted


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("object.spec.replicas == 3", False),
        ("object.spec.containers.all(c, c.image.startsWith('a'))", False),
        ("object.spec.containers.all(c, object.spec.containers.exists_one(d, c == d))", False),
        ("authorizer.path('/').check('get').allowed()", False),
        ("object.spec.containers.map(c, c.name).join(', ') == ''", False),
        (TRUE, False),
        ("lists.range(object.spec.replicas) == []", True),
        (TOO_MUCH, True),
        (" || ".join(["authorizer.path('/').check('get').allowed()"] * 3), True),
    ],
)
def test_only_what_might_come_to_a_limit_is_counted(text: str, *, counts: bool) -> None:
    """Most expressions cannot reach a limit on most objects, and that is known before the evaluation."""
    policy = compile_policy(read_policy(documents.policy("p", validations=validations(text))))
    assert counts is policy.must_count_cost({"object": pod("web", "shop", replicas=3)})


def test_the_size_of_the_object_decides() -> None:
    """The cost of the same expression is counted on a very large object."""
    text = "object.spec.ports.all(p, object.spec.ports.all(q, p != q))"
    policy = compile_policy(read_policy(documents.policy("p", validations=validations(text))))
    sizes = (10, 100, 1000)
    counted = [
        policy.must_count_cost({"object": {"spec": {"ports": [{"port": n} for n in range(size)]}}}) for size in sizes
    ]
    assert [False, False, True] == counted


def test_a_sum_of_bounds_above_the_budget_is_counted() -> None:
    """Twelve expressions within their own limits can exceed the budget."""
    policy = compile_policy(read_policy(documents.policy("p", validations=validations(*[TRUE] * 12))))
    assert policy.must_count_cost({"object": {}})
