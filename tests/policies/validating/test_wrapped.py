"""Native values in Kubernetes 1.37: the evaluation of wrapped values, and the health entries for other cases."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from scanner.admission.dispatch import BoundPolicy
from scanner.api import Auditor
from scanner.cluster.definitions import builtin_kinds
from scanner.cluster.schemas import KnownSchemas, builtin_schemas
from scanner.model.outcome import Errored, Outcome, Passed, Violated
from scanner.model.release import Minor
from scanner.model.scans.health import HealthKind
from scanner.policies.bound_language import BindingContext, PolicyDocuments
from scanner.policies.validating.language import Validating, bind, read_binding, read_policy
from tests import documents
from tests.documents import CONFIG_MAPS, DEPLOYMENTS, LIMITS, PODS, Document, binding, namespace, pod, policy, thing

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
BUILTIN = KnownSchemas(builtin_schemas())
NOTHING = KnownSchemas({})
KINDS = (*builtin_kinds(), LIMITS)
WEB = {**pod("web", labels={"app": "web"}, containers=[{"name": "a", "resources": {}}]), "status": {}}
NO_OVERLOAD = "expression '{}' resulted in error: no such overload"


def outcome(
    text: str, document: Document = WEB, *, version: str = "1.37", schemas: KnownSchemas = BUILTIN, **spec: object
) -> Outcome:
    """The outcome of one validation for one object."""
    group, _, api_version = document["apiVersion"].rpartition("/")
    plural = next(kind.plural for kind in KINDS if (kind.group, kind.kind) == (group, document["kind"]))
    about = {"resourceRules": [documents.rule(plural, group=group, version=api_version)]}
    auditor = Auditor(
        policies=[policy("p", text, matchConstraints=about, **spec)],
        bindings=[binding()],
        namespaces=[namespace("default", team="a")],
        kinds=KINDS,
        kubernetes_version=version,
        schemas=schemas,
    )
    [invocation_result] = auditor.evaluate(document, operation="CREATE")
    return invocation_result.check_results[0].outcome


@pytest.mark.parametrize(
    "text",
    [
        "object.spec == 1",
        "!(object.metadata.labels == 'a')",
        "object.spec.containers == {}",
        "object.spec.containers.exists(c, c == 1)",
        "dyn(request.userInfo) == 1",
        "dyn(namespaceObject) == 1",
    ],
)
def test_a_wrapped_value_refuses_what_it_is_not(text: str) -> None:
    """Until 1.36 a map is unequal to a number; from 1.37 on the comparison is an error."""
    assert Errored(NO_OVERLOAD.format(text), would_deny=True) == outcome(text)
    assert isinstance(outcome(text, version="1.36"), Passed | Violated)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("object.spec.containers[0u].name == 'a'", "unsupported index type: types.Uint"),
        ("1 in object.metadata.labels", "unsupported map key type: types.Int"),
        ("object.spec[0] == 1", "unsupported map key type: types.Int"),
    ],
)
def test_a_wrapped_value_refuses_odd_keys(text: str, why: str) -> None:
    """The error names the type of the key."""
    assert Errored(f"expression '{text}' resulted in error: {why}", would_deny=True) == outcome(text)


@pytest.mark.parametrize("text", ["[object.spec] == [1]", "optional.ofNonZeroValue(object.status).hasValue()"])
def test_what_a_wrapped_value_makes_true(text: str) -> None:
    """An error inside a list is no difference, and wrapping does not change emptiness."""
    assert Passed() == outcome(text)
    assert isinstance(outcome(text, version="1.36"), Violated)


SIZES = [
    {"name": "a", "resources": {"limits": {"cpu": "1"}}, "securityContext": {}},
    {"name": "b", "resources": {"limits": {"cpu": "1000m"}}},
    {"name": "c", "resources": {"limits": {"cpu": "2"}}},
]
SIZED = pod("sized", labels={"app": "web"}, containers=SIZES)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("object.spec.containers[0].resources == object.spec.containers[1].resources", True),
        ("[object.spec.containers[0].resources] == [object.spec.containers[1].resources]", True),
        ("object.spec.containers[0].resources == object.spec.containers[2].resources", False),
        ("object.spec.containers[0].securityContext == object.spec", False),
        ("object.spec.containers[0].resources in [object.spec.containers[1].resources]", True),
        ("object.spec.containers[0].resources == {'limits': {'cpu': '1'}}", True),
        ("object.spec.containers[0].resources == {'limits': {'cpu': '2'}}", False),
        ("object.spec == object.spec", True),
    ],
)
def test_structures_are_compared_by_what_they_mean(text: str, expected: object) -> None:
    """Structures of one Go type compare quantities by number; with a literal they are compared field by field."""
    result = outcome(text, SIZED)
    assert expected == (result == Passed()), result


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("object.spec.containers[0].resources == {'limits': 1}", "no such overload"),
        ("[object.spec] + [1] == [1, 1]", "no such overload"),
        ("object.metadata.labels in object.metadata", "unsupported map key type: *common.reflectSchemalessTypedMap"),
        ("object.spec[object.metadata] == 1", "invalid qualifier type: *common.reflectSchemalessTypedStruct"),
        ("dyn(request)[0] == 1", "unsupported map key type: types.Int"),
    ],
)
def test_structures_and_sums_let_errors_count(text: str, why: str) -> None:
    """Another map or list counts an error between two of its values as equal."""
    assert Errored(f"expression '{text}' resulted in error: {why}", would_deny=True) == outcome(text, SIZED)


def test_match_conditions_and_variables_see_wrapped_values_too() -> None:
    """Every expression that reads the object reads wrapped values."""
    condition = [{"name": "c", "expression": "object.spec == 1"}]
    variables = [{"name": "spec", "expression": "object.spec"}]

    assert isinstance(outcome("true", matchConditions=condition), Errored)
    assert isinstance(outcome("variables.spec == 1", variables=variables), Errored)


def test_custom_resources_are_plain() -> None:
    """The request for a custom resource is wrapped, the resource is not."""
    limit = thing(LIMITS, "l", spec={"n": 1})

    assert isinstance(outcome("object.spec == 1", limit), Violated)
    assert isinstance(outcome("dyn(request.userInfo) == 1", limit), Errored)


def test_params_are_plain() -> None:
    """Params are converted before an expression reads them."""
    kind = {"apiVersion": "v1", "kind": "ConfigMap"}

    assert isinstance(outcome("params == 1", paramKind=kind), Violated)


def test_repeated_evaluations_have_the_same_result() -> None:
    """Generated functions do not support wrapped values, so they are not used."""
    is_error: Callable[[], bool] = lambda: isinstance(outcome("object.spec == 1"), Errored)  # noqa: E731 - to be asked again

    assert all(is_error() for _ in range(6))


def bound_by(document: Document, rules: Minor = (1, 37), schemas: KnownSchemas = BUILTIN) -> list[BoundPolicy]:
    """A policy in force."""
    return list(bind([read_policy(document)], [read_binding(binding())], rules=rules, schemas=schemas))


def details(document: Document, rules: Minor = (1, 37), schemas: KnownSchemas = BUILTIN) -> list[str]:
    """The details of a policy's health entries."""
    documents = PolicyDocuments((read_policy(document),), (read_binding(binding()),))
    language = Validating().bind(documents, BindingContext(NOON, rules, schemas=schemas))
    notes = list(language.health(language.bound, (PODS, CONFIG_MAPS, DEPLOYMENTS, LIMITS)))
    assert {(HealthKind.NOTE, "p", "")} >= {(note.kind, note.policy, note.binding) for note in notes}
    return [note.detail for note in notes]


STRUCTURES = "object.spec.containers[0].resources == object.spec.containers[1].resources"


def test_what_is_not_evaluated_so_is_named() -> None:
    """The health entry names the path in the policy, the kind and the comparison."""
    [detail] = details(policy("p", "object.spec == 1", STRUCTURES))

    expected = "spec.validations[1].expression: Kubernetes 1.37 may answer otherwise for objects such as Pod (object == object)"
    assert detail.startswith(expected)


@pytest.mark.parametrize("rules", [(1, 30), (1, 36)])
def test_earlier_releases_hand_over_plain_values(rules: Minor) -> None:
    """Earlier releases have no health entry."""
    assert [] == details(policy("p", STRUCTURES), rules)


def test_a_kind_without_a_schema_is_not_typed() -> None:
    """A kind without a schema counts as plain."""
    assert [] == details(policy("p", STRUCTURES), schemas=NOTHING)


def test_an_expression_is_named_once() -> None:
    """Several kinds cause one health entry for an expression."""
    both = {"resourceRules": [documents.rule("pods"), documents.rule("deployments", group="apps")]}

    assert 1 == len(details(policy("p", "object.metadata == object.spec", matchConstraints=both)))


@pytest.mark.parametrize(("text", "plain"), [("object.spec.x == 1", True), ("object.spec == 1", False)])
def test_a_policy_that_cannot_detect_wrapping_has_a_fast_form(text: str, plain: bool) -> None:  # noqa: FBT001 - data
    """Most policies cannot detect wrapping and have a fast form; the others have none."""
    [bound_policy] = bound_by(policy("p", text))

    assert plain is (bound_policy.evaluator.fast_form(bound_policy.compiled, PODS) is not None)
