"""The question that a check asks: what a waiver of its findings accepts."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import pytest

from scanner.model.json import EMPTY
from scanner.model.outcome import CheckKind
from scanner.model.policy import (
    VALIDATING,
    AuditAnnotation,
    Mutation,
    NamedExpression,
    ParamKind,
    Policy,
    Validation,
)
from scanner.posture.problem_ids import list_expressions
from scanner.posture.waivers.waived_checks import CheckPlace, form_of, question_of

FIRST: CheckPlace = (CheckKind.VALIDATION, 0)


def policy(expression: str = "variables.few && has(object.spec)", **variables: str) -> Policy:
    """A policy with this validation, and these variables beside `few`, which reads `most`."""
    known = {"few": "object.spec.replicas <= variables.most", "most": "5", "other": "1"} | variables
    return Policy(
        language=VALIDATING,
        name="replicas",
        match=None,
        param_kind=ParamKind("v1", "ConfigMap"),
        match_conditions=(NamedExpression("live", "!has(object.metadata.deletionTimestamp)"),),
        variables=tuple(NamedExpression(name, text) for name, text in known.items()),
        validations=(Validation(expression, "too many", "'too many'", "Invalid"), Validation("true")),
        audit_annotations=(AuditAnnotation("replicas", "string(variables.most)"),),
        failure_policy="Fail",
        manifest=EMPTY,
        digest="digest",
        mutations=(Mutation("JSONPatch", "[]"),),
    )


def same(now: Policy, place: CheckPlace = FIRST) -> bool:
    """Return whether a check asks the same as that of `policy()`."""
    return question_of(policy(), place) == question_of(now, place)


def test_the_digest_of_a_question_never_changes() -> None:
    """Files and databases have it: SHA-256 of the kind, the tokens, and the variables by name with their tokens."""
    few = '["object",".","spec",".","replicas","<=","variables",".","most"]'
    tokens = '["variables",".","few","&&","has","(","object",".","spec",")"]'
    content = f'["validation",[{tokens}],[["few",{few}],["most",["5"]]]]'
    expected = "sha256:a3dcfcb8abd0e7f8f44507cd520296cac38084b20c4470e911892105f43bc1ff"
    assert expected == f"sha256:{hashlib.sha256(content.encode()).hexdigest()}" == question_of(policy(), FIRST)


@pytest.mark.parametrize(
    "now",
    [
        policy("\n  variables . few&&has( object.spec ) // few replicas\n"),
        policy(few="object.spec.replicas<=variables.most // a comment"),
        policy(other="2"),
        replace(
            policy(), validations=(Validation(policy().validations[0].expression, "another", "'text'", "Forbidden"),)
        ),
        replace(policy(), match_conditions=(), param_kind=None, failure_policy="Ignore", digest="another", name="p"),
    ],
)
def test_a_check_asks_the_same_after_a_change_of_spaces_comments_and_texts(now: Policy) -> None:
    """And of variables that it does not use, and of the objects that the policy matches."""
    assert same(now)


@pytest.mark.parametrize(
    "now",
    [
        policy("variables.few || has(object.spec)"),
        policy(few="object.spec.replicas < variables.most"),
        policy(most="6"),
    ],
)
def test_a_check_asks_something_else_after_an_edit_of_its_expression_or_its_variables(now: Policy) -> None:
    """A variable that only another variable uses is one of them."""
    assert not same(now)


@pytest.mark.parametrize(
    "expression",
    [
        "variables['other'] == 1",
        "variables.?other.hasValue()",
        "[variables].size() == 1",
        "variables.`other` == 1",
        "variables #",
    ],
)
def test_an_expression_that_reads_variables_otherwise_than_by_name_may_read_each(expression: str) -> None:
    """A wrong continuation would accept what no person accepted."""
    assert question_of(policy(expression), FIRST) != question_of(policy(expression, other="2"), FIRST)


def test_text_in_quotes_uses_no_variable() -> None:
    """Nor does a field of the object."""
    expression = "object.spec.replicas == size('variables') && object.variables.few"
    assert question_of(policy(expression), FIRST) == question_of(policy(expression, other="2"), FIRST)


@pytest.mark.parametrize(
    ("kind", "asks_the_same"),
    [
        (CheckKind.VALIDATION, True),
        (CheckKind.AUDIT_ANNOTATION, True),
        (CheckKind.MUTATION, True),
        (CheckKind.CONDITIONS, False),
        (CheckKind.CONFIGURATION, False),
    ],
)
def test_match_conditions_are_a_question_of_their_own(kind: CheckKind, *, asks_the_same: bool) -> None:
    """They are part of the configuration, which is unusable if one of them does not compile."""
    edited = replace(policy(), match_conditions=(NamedExpression("live", "false"),))
    assert asks_the_same == same(edited, (kind, 0))


@pytest.mark.parametrize(
    "now",
    [
        policy("true"),
        policy(other="2"),
        replace(policy(), param_kind=None),
        replace(policy(), mutations=()),
        replace(policy(), audit_annotations=()),
    ],
)
def test_the_question_of_the_configuration_has_all_expressions_and_the_kind_of_params(now: Policy) -> None:
    """Each of them can make a policy unusable."""
    assert not same(now, (CheckKind.CONFIGURATION, 0))


def test_kinds_of_checks_ask_different_questions_with_equal_expressions() -> None:
    """A validation that is true and an annotation of that text are not the same."""
    both = replace(policy(), audit_annotations=(AuditAnnotation("a", "true"),))
    assert question_of(both, (CheckKind.VALIDATION, 1)) != question_of(both, (CheckKind.AUDIT_ANNOTATION, 0))


def test_checks_of_equal_forms_ask_the_same() -> None:
    """A form is more exact than a question: it has spaces, and all variables."""
    other = policy(other="2")
    forms = {form_of(each, FIRST) for each in (policy(), replace(policy(), digest="another"), other)}
    assert (2, True) == (len(forms), same(other))


def test_each_check_of_a_policy_has_a_question() -> None:
    """In each place that checks have names for."""
    own = policy()
    places = [(CheckKind(kind), index) for kind, texts in list_expressions(own) for index, _ in enumerate(texts)]
    assert 6 == len({question_of(own, place) for place in places})
