"""Policy health names what Kubernetes 1.37 could answer otherwise."""

from __future__ import annotations

import pytest

from scanner.cluster.schemas import KnownSchemas, builtin_schemas
from scanner.health import wrapped
from scanner.model.release import Minor
from scanner.model.scan import HealthKind
from scanner.policies.validating import bind, read_binding, read_policy
from tests.core import documents
from tests.core.documents import CONFIG_MAPS, DEPLOYMENTS, LIMITS, PODS, Document, binding, policy

BUILTIN = KnownSchemas(builtin_schemas())
ILL_TYPED = "object.spec == 1"


def details(document: Document, rules: Minor = (1, 37)) -> list[str]:
    """What health says of a policy."""
    bound = bind([read_policy(document)], [read_binding(binding())], rules=rules)
    found = list(wrapped.of_policies(bound, (PODS, CONFIG_MAPS, DEPLOYMENTS, LIMITS), BUILTIN, rules))
    assert {(HealthKind.NOTE, "p", "")} >= {(it.kind, it.policy, it.binding) for it in found}
    return [it.detail for it in found]


def about(*resources: str, group: str = "") -> Document:
    """The match constraints of a policy."""
    return {"resourceRules": [documents.rule(*resources, group=group)]}


def test_an_ill_typed_expression_is_named() -> None:
    """With its place in the policy, the kind and what is compared."""
    [detail] = details(policy("p", "object.kind == 'Pod'", ILL_TYPED))

    assert detail.startswith(
        "spec.validations[1].expression: Kubernetes 1.37 may answer otherwise for objects such as Pod"
    )
    assert detail.endswith("object == int. It was judged as 1.36 does")


@pytest.mark.parametrize("rules", [(1, 30), (1, 36)])
def test_earlier_releases_hand_over_plain_values(rules: Minor) -> None:
    """There is nothing to tell."""
    assert [] == details(policy("p", ILL_TYPED), rules)


def test_custom_resources_stay_plain() -> None:
    """Their schema, if there is one, makes no difference."""
    assert [] == details(policy("p", ILL_TYPED, matchConstraints=about("limits", group="example.com")))


def test_an_expression_is_named_once() -> None:
    """However many kinds it is ill-typed for."""
    both = {"resourceRules": [documents.rule("pods"), documents.rule("deployments", group="apps")]}

    assert 1 == len(details(policy("p", ILL_TYPED, matchConstraints=both)))


def test_a_kind_decides_what_is_ill_typed() -> None:
    """The data of a ConfigMap is a map, a Pod has none."""
    text = "object.data == 'x'"

    assert [] == details(policy("p", text))
    assert 1 == len(details(policy("p", text, matchConstraints=about("configmaps"))))


def test_variables_hand_their_type_on() -> None:
    """Only the expression that compares is named, not the one that reads."""
    variables = [{"name": "spec", "expression": "object.spec"}]

    [detail] = details(policy("p", "variables.spec == 1", variables=variables))
    assert detail.startswith("spec.validations[0].expression: ")


def test_schemas_that_nobody_tells_leave_the_benefit_of_the_doubt() -> None:
    """A kind without a schema is not typed."""
    bound = bind([read_policy(policy("p", ILL_TYPED))], [read_binding(binding())])

    assert [] == list(wrapped.of_policies(bound, (PODS,), KnownSchemas({}), (1, 37)))
