"""The pass, the version and the size that decide about a mutation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from scanner.api import Auditor, SchemaUnknown
from scanner.cluster.definitions import builtin_kinds, read_definition
from scanner.cluster.schemas import KnownSchemas, builtin_schemas, read_custom_schemas
from scanner.model.outcome import Change, Errored, Outcome, Passed, Skipped, SkipReason, WouldChange
from scanner.model.resource import Kind, Resource, resource_of

VERSION = "admissionregistration.k8s.io/v1"
CONFIG_MAP: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "c", "namespace": "n"},
    "data": {"a": "1", "b": "2"},
}
AUTOSCALER: dict[str, Any] = {
    "apiVersion": "autoscaling/v2",
    "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": "h", "namespace": "n"},
    "spec": {"maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "d"}},
}
CLAIM: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "p", "namespace": "n", "uid": "u"},
    "spec": {"dataSourceRef": {"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "s"}},
}
POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "namespace": "n", "labels": {"tier": "b"}},
    "spec": {
        "containers": [{"name": "c", "image": "i"}],
        "affinity": {
            "podAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {"topologyKey": "zone", "labelSelector": {"matchLabels": {"x": "z"}}}
                ]
            }
        },
    },
}


def definition(strategy: str = "None", stored: str = "v1") -> dict[str, Any]:
    """A CustomResourceDefinition of two versions, each with a field of its own."""
    versions = [
        {
            "name": name,
            "served": True,
            "storage": name == stored,
            "schema": {
                "openAPIV3Schema": {
                    "type": "object",
                    "properties": {
                        "spec": {
                            "type": "object",
                            "properties": {"both": {"type": "string"}, field: {"type": "string", **default}},
                        }
                    },
                }
            },
        }
        for name, field, default in (("v1", "old", {}), ("v2", "new", {"default": "fresh"}))
    ]
    names = {"kind": "Cog", "plural": "cogs", "singular": "cog"}
    spec = {"group": "example.com", "scope": "Cluster", "names": names, "versions": versions}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "cogs.example.com"},
        "spec": {**spec, "conversion": {"strategy": strategy}},
    }


def cog(version: str, **spec: str) -> dict[str, Any]:
    """A custom resource in a version."""
    return {"apiVersion": f"example.com/{version}", "kind": "Cog", "metadata": {"name": "c"}, "spec": spec}


def outcomes(
    document: dict[str, Any],
    *expressions: str,
    version: str = "*",
    operation: Any = "CREATE",
    defined: dict[str, Any] | None = None,
    variables: Any = (),
    namespaces: Any = (),
    schemas: Any = None,
    auditor: type[Auditor] = Auditor,
    **spec: Any,
) -> list[Outcome]:
    """The outcomes of a policy's mutations for an object; a text in brackets is a JSON patch."""
    mutations = [
        {"patchType": "JSONPatch", "jsonPatch": {"expression": text}}
        if text.startswith("[")
        else {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": text}}
        for text in expressions
    ]
    rule = {"apiGroups": ["*"], "apiVersions": [version], "operations": ["CREATE", "UPDATE"], "resources": ["*"]}
    defaults = {"failurePolicy": "Fail", "reinvocationPolicy": "Never", "matchConstraints": {"resourceRules": [rule]}}
    policy: dict[str, Any] = {
        "apiVersion": VERSION,
        "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": "p"},
        "spec": {**defaults, "variables": [*variables], "mutations": mutations, **spec},
    }
    binding: dict[str, Any] = {
        "apiVersion": VERSION,
        "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": "p"},
        "spec": {"policyName": "p"},
    }
    kinds = read_definition(defined).kinds if defined else ()
    known = schemas or (read_custom_schemas(defined) if defined else {})
    evaluating = auditor(
        policies=[policy],
        bindings=[binding],
        kinds=(*builtin_kinds(), *kinds),
        namespaces=namespaces,
        kubernetes_version="1.36",
        schemas=KnownSchemas({**builtin_schemas(), **known}),
    )
    (invocation_result,) = evaluating.evaluate(document, operation=operation)
    return [check_result.outcome for check_result in invocation_result.check_results]


def patch_of(outcome: Outcome) -> tuple[Change, ...]:
    """The patch of a mutation that changes an object."""
    assert isinstance(outcome, WouldChange), outcome
    return outcome.patch


REMOVAL = "[JSONPatch{op: 'remove', path: '/data/a'}]"


@pytest.mark.parametrize("operation", ["CREATE", "UPDATE"])
def test_an_ignored_error_of_the_second_pass_keeps_the_change_of_the_first(operation: str) -> None:
    """The removal fails when it runs again, and the server stores the object without the member."""
    (result,) = outcomes(
        CONFIG_MAP, REMOVAL, operation=operation, failurePolicy="Ignore", reinvocationPolicy="IfNeeded"
    )

    assert (Change("remove", "/data/a", was="1"),) == patch_of(result)


def test_an_error_of_the_second_pass_denies_with_the_failure_policy_fail() -> None:
    """Then nothing is stored."""
    (result,) = outcomes(CONFIG_MAP, REMOVAL, reinvocationPolicy="IfNeeded")

    assert isinstance(result, Errored)
    assert result.would_deny


def test_an_ignored_error_of_the_first_pass_is_no_result_if_the_second_pass_applies_the_mutation() -> None:
    """The first mutation needs what the second one adds; together they add both labels."""
    first, second = outcomes(
        CONFIG_MAP,
        "[JSONPatch{op: 'add', path: '/metadata/labels/x', value: '1'}]",
        "Object{metadata: Object.metadata{labels: {'y': '2'}}}",
        failurePolicy="Ignore",
        reinvocationPolicy="IfNeeded",
    )

    assert Passed() == first
    assert {"/metadata/labels", "/metadata/labels/x"} == {change.path for change in patch_of(second)}


@pytest.mark.parametrize(
    "expression", ["Object{}", "Object{spec: Object.spec{maxReplicas: 9}}", "[JSONPatch{op: 'test', path: '/x'}]"]
)
def test_no_mutation_of_a_built_in_kind_in_another_version_is_applied(expression: str) -> None:
    """The server converts the object for the policy, and cannot convert the result."""
    (result,) = outcomes(AUTOSCALER, expression, version="v1")

    text = "converting (v1.HorizontalPodAutoscaler) to (v2.HorizontalPodAutoscaler): unknown conversion"
    assert Errored(text, would_deny=True, always=True, code=403) == result


def test_an_event_of_another_group_cannot_be_converted_either() -> None:
    """The server says it in other words."""
    event = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e", "namespace": "n"}, "involvedObject": {}}
    rule = {"apiGroups": ["events.k8s.io"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["events"]}
    (result,) = outcomes(event, "Object{}", matchConstraints={"resourceRules": [rule]}, failurePolicy="Ignore")

    text = 'v1.Event is not suitable for converting to "v1" in scheme "pkg/runtime/scheme.go:111"'
    assert Errored(text, would_deny=False, always=False, code=403) == result


def test_a_custom_resource_in_another_version_keeps_the_fields_of_its_own() -> None:
    """The conversion changes the apiVersion alone: a patch reads fields that the version of its rule does not have."""
    (result,) = outcomes(
        cog("v1", old="O"),
        "[JSONPatch{op: 'add', path: '/spec/both', value: object.spec.old + object.apiVersion}]",
        version="v2",
        defined=definition(),
    )

    assert (Change("add", "/spec/both", "Oexample.com/v2"),) == patch_of(result)


def test_a_field_that_only_the_version_of_the_rule_has_is_not_stored() -> None:
    """The stored version has no such field, and neither has the version of the request."""
    (result,) = outcomes(
        cog("v1", both="B"),
        "[JSONPatch{op: 'add', path: '/spec/new', value: 'n'}]",
        version="v2",
        defined=definition(),
    )

    assert Passed() == result


def test_a_configuration_cannot_be_merged_into_fields_that_its_version_does_not_have() -> None:
    """The object is not pruned when it is converted."""
    (result,) = outcomes(cog("v1", old="O"), "Object{}", version="v2", defined=definition())

    assert isinstance(result, Errored)
    assert (
        "error applying patch: failed to convert original object to typed object: .spec.old: field not declared in schema"
        == result.message
    )


def test_a_request_in_another_version_than_the_stored_one_has_the_defaults_of_both() -> None:
    """The server sets them when it decodes the request, before any policy reads the object."""
    (result,) = outcomes(
        cog("v2", both="B"),
        "[JSONPatch{op: 'add', path: '/spec/both', value: object.spec.new}]",
        version="v1",
        defined=definition(),
    )

    assert (Change("replace", "/spec/both", "fresh", was="B"),) == patch_of(result)


class FromServer(Auditor):
    """An auditor whose objects come from a server, which lists them in every version."""

    def views(self, document: Any, kind: Kind) -> Iterator[Resource]:
        """The object in each of its kinds."""
        for view in (kind, *self.context.equivalents.get(kind, ())):
            yield resource_of(view, {**document, "apiVersion": view.api_version})


@pytest.mark.parametrize(
    ("schemas", "why"),
    [
        (read_custom_schemas(definition("Webhook")), "a webhook converts example.com/v2/Cog, so only a server knows"),
        (
            {
                key: replace(schema, custom=replace(schema.custom, versions=None))
                for key, schema in read_custom_schemas(definition()).items()
                if schema.custom
            },
            "the CustomResourceDefinition cogs.example.com is unknown",
        ),
    ],
)
def test_a_conversion_that_only_a_server_knows_is_a_gap(schemas: Any, why: str) -> None:
    """A webhook converts, or the definition could not be read: the scan records the error as a gap."""
    with pytest.raises(SchemaUnknown, match=why):
        outcomes(
            cog("v1", both="B"), "Object{}", version="v2", defined=definition(), schemas=schemas, auditor=FromServer
        )


@pytest.mark.parametrize(
    "variables",
    [
        [
            ("v0", "dyn({'a': 'b'})"),
            *((f"v{n}", f"dyn({{'a': variables.v{n - 1}, 'b': variables.v{n - 1}}})") for n in range(1, 40)),
        ],
        [("v0", "dyn(['a'])"), *((f"v{n}", f"dyn([variables.v{n - 1}, variables.v{n - 1}])") for n in range(1, 40))],
    ],
)
@pytest.mark.parametrize(
    "expression",
    ["[JSONPatch{op: 'add', path: '/data', value: variables.v39}]", "Object{data: variables.v39}"],
)
def test_a_value_that_doubles_with_every_variable_is_not_written_out(variables: Any, expression: str) -> None:
    """Its JSON would have 2^39 parts; no client can send more than 3 MiB."""
    named = [{"name": name, "expression": text} for name, text in variables]
    (result,) = outcomes(CONFIG_MAP, expression, variables=named)

    why = "what it would change is larger than 3 MiB, and cannot be stored"
    assert Skipped(SkipReason.NOT_AUDITABLE, why) == result


def test_mutations_that_double_an_object_end_at_the_largest_object() -> None:
    """Each mutation copies less than one patch may, and all together more than an object may have."""
    doubling = (
        "Object{metadata: Object.metadata{annotations: {'x': object.metadata.?annotations[?'x'].orValue('%s') + 'y'}}}"
    )
    copies = ", ".join(f"JSONPatch{{op: 'copy', from: '/spec', path: '/spec/{name}'}}" for name in "abcdefgh")
    results = outcomes(
        cog("v1", old="O" * 3000),
        *[f"[{copies}]"] * 9,
        doubling % "",
        defined={
            **definition(),
            "spec": {
                **definition()["spec"],
                "versions": [
                    {
                        "name": "v1",
                        "served": True,
                        "storage": True,
                        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
                    }
                ],
            },
        },
    )

    assert {"Errored", "Skipped", "WouldChange"} >= {type(result).__name__ for result in results}
    assert any(isinstance(result, Errored | Skipped) for result in results)


def test_a_new_claim_loses_the_namespace_of_its_source() -> None:
    """The feature CrossNamespaceVolumeDataSource is off; the claim that is there already keeps its source."""
    expression = "[JSONPatch{op: 'add', path: '/spec/dataSourceRef/namespace', value: 'a'}]"
    source = {"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "s"}
    claim = {**CLAIM, "spec": {"dataSource": source, "dataSourceRef": source}}

    assert [Passed()] == outcomes(claim, expression)
    assert ["/spec/dataSourceRef/namespace"] == [
        change.path for change in patch_of(outcomes(claim, expression, operation="UPDATE")[0])
    ]


def test_a_new_pod_has_the_labels_that_its_terms_name_in_their_selectors() -> None:
    """`matchLabelKeys` and `mismatchLabelKeys` are copied into the selector when the pod is created."""
    path = "/spec/affinity/podAffinity/requiredDuringSchedulingIgnoredDuringExecution/0"
    (result,) = outcomes(POD, f"[JSONPatch{{op: 'add', path: '{path}/mismatchLabelKeys', value: ['tier', 'none']}}]")

    expression = {"key": "tier", "operator": "NotIn", "values": ["b"]}
    assert {f"{path}/labelSelector/matchExpressions": [expression], f"{path}/mismatchLabelKeys": ["tier", "none"]} == {
        change.path: change.value for change in patch_of(result)
    }


def test_mutations_read_a_namespace_without_its_type_and_its_managed_fields() -> None:
    """The server holds it as a typed object of an informer, and writes such an object into a patch."""
    namespace = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "n", "managedFields": [{"manager": "m"}]},
        "spec": {},
    }
    definition_with_anything = definition()
    for version in definition_with_anything["spec"]["versions"]:
        version["schema"] = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    definition_with_anything["spec"]["scope"] = "Namespaced"
    document = {**cog("v1", both="B"), "metadata": {"name": "c", "namespace": "n"}}
    (result,) = outcomes(
        document,
        "[JSONPatch{op: 'add', path: '/spec/namespace', value: namespaceObject}]",
        defined=definition_with_anything,
        namespaces=[namespace],
    )

    assert (Change("add", "/spec/namespace", {"metadata": {"name": "n"}, "spec": {}}),) == patch_of(result)
