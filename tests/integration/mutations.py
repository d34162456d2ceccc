"""Mutating policies for the objects of the example cluster, and what a server makes of one object by one of them.

All of them are stored at once; each acts only for the requester that bears its name, so that a dry-run update by that
requester shows what this policy alone does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

import orjson
from urllib3 import HTTPHeaderDict

from scanner.model.json import Json, JsonObject, as_object, as_text, dig
from tests.integration.apiserver import ApiServer
from tests.integration.client import Answer
from tests.integration.fuzz.manifests import ADMISSION, binding_named, write_mutation
from tests.integration.manifests import collection_path

GROUPS = ("system:masters", "system:authenticated")
POD = "Object.spec.template.spec"
TEMPLATED = ("deployments", "daemonsets", "statefulsets", "replicasets", "jobs")
EVERYTHING = ("*",)


@dataclass(frozen=True, slots=True)
class Mutating:
    """A policy: its mutations, of which those that begin with a bracket are JSON patches, and the resources that it matches."""

    mutations: tuple[str, ...]
    resources: tuple[str, ...] = EVERYTHING
    failure_policy: str = "Fail"
    reinvocation_policy: str = "Never"
    variables: tuple[tuple[str, str], ...] = ()


def in_template(fields: str) -> str:
    """An apply configuration of the pod template's spec."""
    return f"Object{{spec: Object.spec{{template: Object.spec.template{{spec: {POD}{{{fields}}}}}}}}}"


def each_container(fields: str) -> str:
    """An apply configuration of every container of the pod template."""
    return in_template(
        f"containers: object.spec.template.spec.containers.map(c, {POD}.containers{{name: c.name, {fields}}})"
    )


POLICIES: Mapping[str, Mutating] = {
    "label": Mutating(('Object{metadata: Object.metadata{labels: {"managed": "yes"}}}',)),
    "annotation": Mutating(('Object{metadata: Object.metadata{annotations: {"note": object.metadata.name}}}',)),
    "empty-label": Mutating(('Object{metadata: Object.metadata{labels: {"empty": ""}}}',)),
    "empty-labels": Mutating(("Object{metadata: Object.metadata{labels: {}}}",)),
    "finalizer": Mutating(('Object{metadata: Object.metadata{finalizers: ["example.org/kept"]}}',), ("configmaps",)),
    "nothing": Mutating(("Object{}",)),
    "unknown-field": Mutating(("Object{spec: Object.spec{nonexistent: 1}}",)),
    "wrong-type": Mutating(('Object{spec: Object.spec{replicas: dyn("three")}}',), TEMPLATED),
    "wrong-name": Mutating(("Object{spec: Object.spec{template: Object.spec.wrong{}}}",), TEMPLATED),
    "other-kind": Mutating(('Object{kind: "Other", apiVersion: "v9"}',)),
    "replicas": Mutating(("Object{spec: Object.spec{replicas: 5}}",), ("deployments", "statefulsets")),
    "replicas-more": Mutating(
        ("Object{spec: Object.spec{replicas: object.spec.?replicas.orValue(1) + 1}}",),
        ("deployments", "statefulsets"),
        reinvocation_policy="IfNeeded",
    ),
    "default-replicas": Mutating(('[JSONPatch{op: "remove", path: "/spec/replicas"}]',), ("deployments",)),
    "sidecar": Mutating((in_template(f'containers: [{POD}.containers{{name: "side", image: "envoy"}}]'),), TEMPLATED),
    "pull-always": Mutating((each_container('imagePullPolicy: "Always"'),), TEMPLATED),
    "memory": Mutating(
        (each_container(f'resources: {POD}.containers.resources{{limits: {{"memory": "1024Mi"}}}}'),), TEMPLATED
    ),
    "cpu": Mutating(
        (each_container(f'resources: {POD}.containers.resources{{requests: {{"cpu": "1000m"}}}}'),), TEMPLATED
    ),
    "bad-quantity": Mutating(
        (each_container(f'resources: {POD}.containers.resources{{limits: {{"cpu": "much"}}}}'),), TEMPLATED
    ),
    "environment": Mutating(
        (each_container(f'env: [{POD}.containers.env{{name: "REGION", value: "eu"}}]'),), TEMPLATED
    ),
    "empty-environment": Mutating(
        (each_container(f'env: [{POD}.containers.env{{name: "NONE", value: ""}}]'),), TEMPLATED
    ),
    "ports": Mutating((each_container(f"ports: [{POD}.containers.ports{{containerPort: 9090}}]"),), TEMPLATED),
    "security": Mutating(
        (each_container(f"securityContext: {POD}.containers.securityContext{{allowPrivilegeEscalation: false}}"),),
        TEMPLATED,
    ),
    "tolerations": Mutating(
        (in_template(f'tolerations: [{POD}.tolerations{{key: "a", operator: "Exists"}}]'),), TEMPLATED
    ),
    "node-selector": Mutating((in_template('nodeSelector: {"disk": "ssd"}'),), TEMPLATED),
    "pull-secrets": Mutating((in_template(f'imagePullSecrets: [{POD}.imagePullSecrets{{name: "x"}}]'),), TEMPLATED),
    "volumes": Mutating(
        (in_template(f'volumes: [{POD}.volumes{{name: "tmp", emptyDir: {POD}.volumes.emptyDir{{}}}}]'),), TEMPLATED
    ),
    "host-network-off": Mutating((in_template("hostNetwork: false, hostPID: false"),), TEMPLATED),
    "service-account-off": Mutating((in_template("automountServiceAccountToken: false"),), TEMPLATED),
    "default-again": Mutating(
        (in_template('dnsPolicy: "ClusterFirst", restartPolicy: "Always"'),), ("deployments", "daemonsets")
    ),
    "service-port": Mutating(
        ('Object{spec: Object.spec{ports: [Object.spec.ports{port: 9999, name: "extra"}]}}',), ("services",)
    ),
    "service-policy": Mutating(('Object{spec: Object.spec{sessionAffinity: "None"}}',), ("services",)),
    "service-selector": Mutating(('Object{spec: Object.spec{selector: {"a": "b"}}}',), ("services",)),
    "config-data": Mutating(('Object{data: {"added": "1"}}',), ("configmaps",)),
    "rules-atomic": Mutating(("Object{rules: []}",), ("clusterroles", "roles")),
    "test-passes": Mutating(
        (
            '[JSONPatch{op: "test", path: "/kind", value: object.kind}, JSONPatch{op: "add", path: "/metadata/labels", value: {"t": "1"}}]',
        )
    ),
    "test-fails": Mutating(
        (
            '[JSONPatch{op: "test", path: "/kind", value: "X"}, JSONPatch{op: "add", path: "/metadata/labels", value: {"t": "1"}}]',
        )
    ),
    "remove-labels": Mutating(('[JSONPatch{op: "remove", path: "/metadata/labels"}]',)),
    "null-labels": Mutating(('[JSONPatch{op: "add", path: "/metadata/labels", value: null}]',)),
    "escaped": Mutating(
        (
            (
                '[JSONPatch{op: "add", path: "/metadata/annotations", value: {}}, JSONPatch{op: "add",'
                ' path: "/metadata/annotations/" + jsonpatch.escapeKey("example.org/a~b".replace("~", "-")), value: "1"}]'
            ),
        )
    ),
    "missing-path": Mutating(('[JSONPatch{op: "add", path: "/spec/deep/down", value: 1}]',)),
    "bad-op": Mutating(('[JSONPatch{op: "frobnicate", path: "/spec", value: 1}]',)),
    "first-argument": Mutating(
        ('[JSONPatch{op: "add", path: "/spec/template/spec/containers/0/args", value: ["--a", "--b"]}]',), TEMPLATED
    ),
    "replaced-container": Mutating(
        (
            (
                '[JSONPatch{op: "replace", path: "/spec/template/spec/containers/0",'
                f' value: {POD}.containers{{name: object.spec.template.spec.containers[0].name, image: "other:2"}}}}]'
            ),
        ),
        TEMPLATED,
    ),
    "unknown-by-patch": Mutating(('[JSONPatch{op: "add", path: "/spec/unknown", value: 1}]',), TEMPLATED),
    "wrong-by-patch": Mutating(('[JSONPatch{op: "add", path: "/spec/replicas", value: "three"}]',), ("deployments",)),
    "copied-template": Mutating(
        ('[JSONPatch{op: "copy", from: "/metadata/labels", path: "/spec/template/metadata/annotations"}]',), TEMPLATED
    ),
    "moved": Mutating(
        ('[JSONPatch{op: "move", from: "/metadata/labels", path: "/metadata/annotations"}]',), ("configmaps",)
    ),
    "server-owned": Mutating(
        (
            '[JSONPatch{op: "replace", path: "/metadata/generation", value: 99}, JSONPatch{op: "remove", path: "/status"}]',
        ),
        ("deployments",),
    ),
    "two-steps": Mutating(
        (
            'Object{metadata: Object.metadata{labels: {"step": "1"}}}',
            '[JSONPatch{op: "add", path: "/metadata/labels/then", value: object.metadata.labels.step + "2"}]',
        )
    ),
    "second-fails": Mutating(
        ('Object{metadata: Object.metadata{labels: {"step": "1"}}}', '[JSONPatch{op: "remove", path: "/nope"}]')
    ),
    "second-fails-ignored": Mutating(
        ('Object{metadata: Object.metadata{labels: {"step": "1"}}}', '[JSONPatch{op: "remove", path: "/nope"}]'),
        failure_policy="Ignore",
    ),
    "variables": Mutating(
        ('Object{metadata: Object.metadata{labels: {"n": variables.n}}}',),
        variables=(("n", "'n' + string(size(object.metadata.name))"),),
    ),
    "namespace": Mutating(
        ('Object{metadata: Object.metadata{labels: {"from": namespaceObject.metadata.name}}}',),
        ("configmaps", "deployments"),
    ),
    "failing-expression": Mutating(("Object{spec: Object.spec{replicas: object.spec.nope}}",), TEMPLATED),
}


FREE: Mapping[str, str] = {
    "joined": "['y'] + ['z']",
    "joined-to-read": "object.spec.xs + ['z']",
    "written": "['y']",
    "read": "object.spec.xs",
    "nothing-joined": "[] + ['z']",
    "joined-to-nothing": "object.spec.xs + []",
    "mapped": "object.spec.xs.map(x, x + '1')",
    "joined-to-mapped": "['y'].map(x, x) + ['z']",
    "mapped-after": "(['y'] + ['z']).map(x, x)",
    "joined-within": "[['y'] + ['z']]",
    "written-within": "[dyn(['y'])] + [['z']]",
    "map-within": "[dyn('y')] + [{'k': 'v'}]",
    "joined-twice": "[dyn('x')] + [['y'] + ['z']]",
    "object-within": "[dyn('y')] + [Object.spec.free.a{k: 'v'}]",
    "misnamed-within": "[dyn('y')] + [Object.nope{k: 'v'}]",
    "null-within": "object.spec.xs + [null]",
    "split": "'y,z'.split(',')",
    "joined-to-split": "'y,z'.split(',') + ['x']",
    "found": "'y1z2'.findAll('[0-9]')",
    "sliced": "object.spec.xs.slice(0, 1)",
    "ranged": "lists.range(2)",
    "reversed": "object.spec.xs.reverse()",
    "sorted": "object.spec.xs.sort()",
    "distinct": "object.spec.xs.distinct()",
    "flattened": "[object.spec.xs].flatten()",
    "filtered": "object.spec.xs.filter(x, true)",
    "chosen": "size(object.spec.xs) > 0 ? ['y'] + ['z'] : []",
    "numbers": "[1] + [2]",
    "unsigned": "[1u] + [2u]",
    "doubles": "[1.5] + [2.5]",
    "variable": "variables.joined",
    "first": "[['y'] + ['z']][0]",
    "optional": "optional.of(['y'] + ['z']).orValue([])",
}
"""The value of a field that the schema does not describe."""
PLACES = {"in-object": "Object.spec.free{{a: {}}}", "in-map": "{{'a': {}}}", "in-list": "{{'a': dyn([{}])}}"}
GADGETS: JsonObject = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "gadgets.mu.example.com"},
    "spec": {
        "group": "mu.example.com",
        "scope": "Namespaced",
        "names": {"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {
                                    "xs": {"type": "array", "items": {"type": "string"}},
                                    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                                },
                            }
                        },
                    }
                },
            }
        ],
    },
}
GADGET: JsonObject = {
    "apiVersion": "mu.example.com/v1",
    "kind": "Gadget",
    "metadata": {"name": "gadget", "namespace": "default"},
    "spec": {"xs": ["a", "b"], "free": {"kept": "1"}},
}
POLICIES = {
    **POLICIES,
    **{
        f"{name}-{place}": Mutating(
            (f"Object{{spec: Object.spec{{free: {form.format(text)}}}}}",),
            ("gadgets",),
            variables=(("joined", "object.spec.xs + ['z']"),),
        )
        for name, text in FREE.items()
        for place, form in PLACES.items()
        # The refusal of these two shows an address in the memory of the server.
        if (name, place) not in {("object-within", "in-list"), ("misnamed-within", "in-list")}
    },
}


def policy_of(name: str) -> JsonObject:
    """The manifest of a policy."""
    made = POLICIES[name]
    rule = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["UPDATE"], "resources": [*made.resources]}
    spec: dict[str, Json] = {
        "matchConstraints": {"resourceRules": [rule]},
        "matchConditions": [{"name": "asked", "expression": f'request.userInfo.username == "{user_of(name)}"'}],
        "failurePolicy": made.failure_policy,
        "reinvocationPolicy": made.reinvocation_policy,
        "variables": [{"name": variable, "expression": text} for variable, text in made.variables],
        "mutations": [*map(write_mutation, made.mutations)],
    }
    return {"apiVersion": ADMISSION, "kind": "MutatingAdmissionPolicy", "metadata": {"name": name}, "spec": spec}


def user_of(name: str) -> str:
    """The requester for whom a policy acts."""
    return f"mutation-{name}"


def manifests() -> Iterator[JsonObject]:
    """All policies and their bindings."""
    for name in POLICIES:
        yield policy_of(name)
        yield binding_named(name)


def updated(server: ApiServer, document: JsonObject, user: str) -> Answer:
    """The answer to a dry-run update by some user that sends the object as it is stored."""
    path = f"{collection_path(server, document)}/{as_text(dig(document, 'metadata', 'name'))}"
    reply = server.client.pool.request(
        "PUT",
        f"{server.url}{path}?{urlencode({'dryRun': 'All'})}",
        body=orjson.dumps(document),
        headers=HTTPHeaderDict(
            [
                ("Authorization", f"Bearer {server.token}"),
                ("Content-Type", "application/json"),
                ("Impersonate-User", user),
                *(("Impersonate-Group", group) for group in GROUPS),
            ]
        ),
    )
    return Answer(reply.status, reply.headers, as_object(orjson.loads(reply.data)))
