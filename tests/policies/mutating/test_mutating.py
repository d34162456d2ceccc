"""Mutating policies in the documented Python entry: refused manifests, and results by release."""

from __future__ import annotations

from typing import Any, cast

import pytest

from scanner.api import Auditor, InvalidManifest, SchemaUnknown
from scanner.cluster.definitions import builtin_kinds
from scanner.cluster.schemas import KnownSchemas, builtin_schemas
from scanner.model.outcome import Errored, Outcome, Passed, Skipped, SkipReason, WouldChange
from scanner.model.resource import UserInfo
from scanner.mutate.operations import Node, PatchOperation, apply

VERSION = "admissionregistration.k8s.io/v1"
RULE: dict[str, Any] = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["configmaps"]}
BINDING: dict[str, Any] = {
    "apiVersion": VERSION,
    "kind": "MutatingAdmissionPolicyBinding",
    "metadata": {"name": "p"},
    "spec": {"policyName": "p"},
}
CONFIG_MAP: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "c", "namespace": "n"},
    "data": {"a": "1"},
}


def policy(*mutations: Any, **spec: Any) -> dict[str, Any]:
    """A mutating policy for config maps."""
    return {
        "apiVersion": VERSION,
        "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": "p"},
        "spec": {
            "failurePolicy": "Fail",
            "reinvocationPolicy": "Never",
            "matchConstraints": {"resourceRules": [RULE]},
            "mutations": [*mutations],
            **spec,
        },
    }


def applied(expression: str) -> dict[str, Any]:
    """A mutation by an apply configuration."""
    return {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}


def patched(expression: str) -> dict[str, Any]:
    """A mutation by a JSON patch."""
    return {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}


def outcome(
    manifest: dict[str, Any], document: dict[str, Any] = CONFIG_MAP, release: str = "1.36", **more: Any
) -> Outcome:
    """The outcome of the first check for an object."""
    auditor = Auditor(
        policies=[manifest],
        bindings=[BINDING],
        kinds=builtin_kinds(),
        user=UserInfo("ann", groups=("g",)),
        kubernetes_version=release,
        **{"schemas": KnownSchemas(builtin_schemas()), **more},
    )
    (invocation_result,) = auditor.evaluate(document)
    return invocation_result.check_results[0].outcome


@pytest.mark.parametrize(
    ("manifest", "expected"),
    [
        (policy(), "spec.mutations: Required value: mutations must contain at least one item"),
        (policy({"jsonPatch": {"expression": "[]"}}), "spec.mutations[0].patchType: Required value"),
        (
            policy({"patchType": "Merge"}),
            'spec.mutations[0].patchType: Unsupported value: "Merge": supported values: "ApplyConfiguration", "JSONPatch"',
        ),
        (
            policy({"patchType": "JSONPatch"}),
            "spec.mutations[0].jsonPatch: Required value: must be specified when patchType is JSONPatch",
        ),
        (
            policy({**applied("Object{}"), "jsonPatch": {"expression": "[]"}}),
            (
                'spec.mutations[0].jsonPatch: Invalid value: "{jsonPatch}": must not be specified when patchType is '
                "ApplyConfiguration"
            ),
        ),
        (policy(applied(" ")), "spec.mutations[0].applyConfiguration.expression: Required value"),
        (
            policy(applied("'x'")),
            "spec.mutations[0].applyConfiguration.expression: Invalid value: \"'x'\": must evaluate to Object but got string",
        ),
        (policy(applied("Object{}"), reinvocationPolicy=""), "spec.reinvocationPolicy: Required value"),
        (
            policy(applied("Object{}"), matchConstraints={"resourceRules": [{**RULE, "operations": ["DELETE"]}]}),
            (
                'spec.matchConstraints.resourceRules.operations: Unsupported value: "DELETE": supported values: "*", "CONNECT", '
                '"CREATE", "UPDATE"'
            ),
        ),
    ],
)
def test_a_manifest_that_the_api_rejects_has_its_error(manifest: dict[str, Any], expected: str) -> None:
    """Assay refuses a manifest in a file with the server's text."""
    with pytest.raises(InvalidManifest) as refusal:
        Auditor(policies=[manifest], bindings=[BINDING], kinds=builtin_kinds(), validate=True)

    assert expected in refusal.value.reasons


@pytest.mark.parametrize("version", ["v1", "v1beta1", "v1alpha1"])
def test_every_version_of_the_api_means_the_same(version: str) -> None:
    """Manifests of older versions have the meaning of the newest one."""
    older = {**policy(applied('Object{data: {"b": "2"}}')), "apiVersion": f"admissionregistration.k8s.io/{version}"}

    assert isinstance(outcome(older), WouldChange)


def test_a_mutation_that_does_not_compile_is_an_error_on_every_object() -> None:
    """A server keeps such a policy, and denies the requests; the text has no prefix."""
    result = outcome(policy(applied("object.nope(")))

    assert isinstance(result, Errored)
    assert result.message.startswith("compilation failed: ERROR: <input>:1:")
    assert (403, True) == (result.code, result.would_deny)


@pytest.mark.parametrize(("release", "denied"), [("1.36", False), ("1.37", True)])
def test_what_1_37_wraps_cannot_be_the_value_of_a_json_patch(release: str, *, denied: bool) -> None:
    """Lists and maps of the request are Go values from 1.37 on."""
    copies = policy(patched('[JSONPatch{op: "add", path: "/data", value: {"g": request.userInfo.groups[0]}}]'))
    whole = policy(patched('[JSONPatch{op: "add", path: "/metadata/finalizers", value: request.userInfo.groups}]'))

    assert isinstance(outcome(copies, release=release), WouldChange)
    assert denied is isinstance(outcome(whole, release=release), Errored)


def test_without_a_schema_nothing_is_guessed() -> None:
    """The error names the missing schema."""
    with pytest.raises(SchemaUnknown, match="no OpenAPI schema of v1/ConfigMap is known"):
        outcome(policy(applied("Object{}")), schemas=KnownSchemas({}))


def test_what_asks_the_authorizer_is_not_auditable_without_one() -> None:
    """A check without an authorizer has no verdict."""
    asks = "authorizer.group('').resource('pods').check('get').allowed() ? Object{} : Object{}"
    result = outcome(policy(applied(asks)))

    assert isinstance(result, Skipped)
    assert SkipReason.NOT_AUDITABLE is result.reason


def test_params_of_built_in_kinds_have_neither_version_nor_kind() -> None:
    """Mutations, unlike validations, read params without apiVersion and kind."""
    manifest = policy(applied("Object{data: {'k': params.kind}}"), paramKind={"apiVersion": "v1", "kind": "ConfigMap"})
    bound = {
        **BINDING,
        "spec": {"policyName": "p", "paramRef": {"name": "c", "namespace": "n", "parameterNotFoundAction": "Deny"}},
    }
    auditor = Auditor(
        policies=[manifest],
        bindings=[bound],
        params=[CONFIG_MAP],
        kinds=builtin_kinds(),
        schemas=KnownSchemas(builtin_schemas()),
    )
    result = auditor.evaluate(CONFIG_MAP)[0].check_results[0].outcome

    assert isinstance(result, Errored)
    assert "no such key: kind" in result.message


def test_what_one_mutation_adds_and_the_next_removes_is_no_change() -> None:
    """The final object counts, even if it has a megabyte."""
    large = {**CONFIG_MAP, "data": {f"k{number}": "x" * 1000 for number in range(1000)}}
    result = outcome(
        policy(applied('Object{data: {"b": "2"}}'), patched('[JSONPatch{op: "remove", path: "/data/b"}]')), large
    )

    assert Passed() == result


def changed(manifest: dict[str, Any], document: Any, bound: dict[str, Any] | None = None) -> tuple[Any, bool]:
    """The object after all changes of a policy, and whether it converges."""
    binding: dict[str, Any] = {**BINDING, "spec": {"policyName": "p", **({"matchResources": bound} if bound else {})}}
    auditor = Auditor(
        policies=[manifest], bindings=[binding], kinds=builtin_kinds(), schemas=KnownSchemas(builtin_schemas())
    )
    (invocation_result,) = auditor.evaluate(document)
    changes = [result.outcome for result in invocation_result.check_results if isinstance(result.outcome, WouldChange)]
    steps = [
        PatchOperation(change.op, change.path, cast("Node", change.value))
        for would_change in changes
        for change in would_change.patch
    ]
    return apply(steps, document), all(would_change.converges for would_change in changes)


COUNTS = 'Object{metadata: Object.metadata{labels: {"run": "no"}}, data: {"n": string(size(object.data))}}'
TO_RUN = {"objectSelector": {"matchLabels": {"run": "yes"}}}
RUNNING = {**CONFIG_MAP, "metadata": {"name": "c", "namespace": "n", "labels": {"run": "yes"}}}


@pytest.mark.parametrize(
    ("expected", "operation", "of_policy", "of_binding"),
    [
        ("1", "CREATE", TO_RUN, None),
        ("1", "CREATE", {}, TO_RUN),
        ("2", "CREATE", {}, None),
        ("2", "UPDATE", TO_RUN, None),
        ("2", "UPDATE", {}, TO_RUN),
    ],
)
def test_selectors_are_evaluated_again_before_the_second_run(
    expected: str, operation: str, of_policy: dict[str, Any], of_binding: dict[str, Any] | None
) -> None:
    """On CREATE a changed label prevents the second run; the old object of an UPDATE keeps it."""
    rules = {"resourceRules": [{**RULE, "operations": [operation]}], **of_policy}
    counts = policy(applied(COUNTS), reinvocationPolicy="IfNeeded", matchConstraints=rules)

    assert {"a": "1", "n": expected} == changed(counts, RUNNING, of_binding)[0]["data"]


@pytest.mark.parametrize(("expected", "selects"), [(True, TO_RUN), (False, {})])
def test_a_policy_that_no_longer_selects_its_own_result_converges(*, expected: bool, selects: dict[str, Any]) -> None:
    """The policy does not match the next request."""
    grows = 'Object{metadata: Object.metadata{labels: {"run": "no"}}, data: {"a": object.data.a + "1"}}'
    manifest = policy(applied(grows), matchConstraints={"resourceRules": [RULE], **selects})

    changed_object, converges = changed(manifest, RUNNING)

    assert ("11", expected) == (changed_object["data"]["a"], converges)


SECRET = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "s", "namespace": "n"},
    "data": {"a": "YQ=="},
    "type": "Opaque",
}
OF_SECRETS = {"resourceRules": [{**RULE, "resources": ["secrets"]}]}
WRITES = patched('[JSONPatch{op: "add", path: "/stringData", value: {"b": "b"}}]')
COUNTS_DATA = applied('Object{metadata: Object.metadata{labels: {"n": string(size(object.data))}}}')


@pytest.mark.parametrize(("expected", "again"), [("2", "IfNeeded"), ("1", "Never")])
def test_the_second_run_sees_the_object_as_its_internal_type_gives_it_back(expected: str, again: str) -> None:
    """The second run reads the `stringData` of the first run as `data`."""
    manifest = policy(WRITES, COUNTS_DATA, reinvocationPolicy=again, matchConstraints=OF_SECRETS)
    changed_object, _ = changed(manifest, SECRET)

    assert ({"n": expected}, {"a": "YQ==", "b": "Yg=="}) == (
        changed_object["metadata"]["labels"],
        changed_object["data"],
    )


def test_conditions_are_evaluated_again_on_what_the_internal_type_gives_back() -> None:
    """A condition that fails on `stringData` does not fail in the second run."""
    condition = {"name": "plain", "expression": "!has(object.stringData) || object.nope"}
    manifest = policy(WRITES, matchConditions=[condition], matchConstraints=OF_SECRETS)

    changed_object, _ = changed(manifest, SECRET)

    assert {**SECRET, "data": {"a": "YQ==", "b": "Yg=="}} == changed_object


TOLERATED = [
    {"key": f"node.kubernetes.io/{taint}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    for taint in ("not-ready", "unreachable")
]
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "namespace": "n", "uid": "u"},
    "spec": {"containers": [{"name": "c", "image": "x:1"}], "tolerations": TOLERATED},
}


@pytest.mark.parametrize(("expected", "again"), [(TOLERATED, "Never"), ([], "IfNeeded")])
def test_other_plugins_run_before_the_second_run_and_not_after_it(expected: list[Any], again: str) -> None:
    """Other plugins restore values that the first run removed, and not those that the second run removed."""
    removes = patched('[JSONPatch{op: "remove", path: "/spec/tolerations"}]')
    pods = {"resourceRules": [{**RULE, "resources": ["pods"]}]}
    changed_object, _ = changed(policy(removes, reinvocationPolicy=again, matchConstraints=pods), POD)

    assert expected == changed_object["spec"].get("tolerations", [])
