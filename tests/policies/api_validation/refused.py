"""Manifests that the API refuses or almost refuses: each differs in one field from a manifest that the API stores.

`python -m tests.policies.api_validation.record` records the messages of a kube-apiserver in `refusals.json`.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

from scanner.model.json import Json
from tests.documents import Document, binding, policy, rule

CONFIG = {"apiVersion": "v1", "kind": "ConfigMap"}
LONG = "a" * 254
SELECTOR = {"key": "a", "operator": "In", "values": ["b"]}


def cases() -> Iterator[tuple[str, Document]]:
    """Pairs of the name and the manifest of every case."""
    yield from (("policy: " + name, policy("p", "true") | {"metadata": metadata}) for name, metadata in _metadata())
    yield from ((f"policy: {name}", _spec(policy("p", "true"), **fields)) for name, fields in _policies())
    yield from ((f"rules: {name}", _matching(**fields)) for name, fields in _rules())
    yield from (
        (f"match: {name}", _spec(policy("p", "true"), matchConstraints=constraints)) for name, constraints in _matches()
    )
    yield from ((f"binding: {name}", _spec(binding("b", "p"), **fields)) for name, fields in _bindings())
    yield from (("binding: " + name, binding("b", "p") | {"metadata": metadata}) for name, metadata in _metadata())
    yield "policy: everything wrong", _everything_wrong()
    yield "policy: everything missing", policy("Upper", "true") | {"spec": {"matchConstraints": {}, "paramKind": {}}}
    yield (
        "binding: everything wrong",
        _spec(
            binding("Upper", "Bad_Name"),
            paramRef={"name": "a/b", "selector": {"matchLabels": {"a b": "c"}}, "parameterNotFoundAction": "X"},
            matchResources={"matchPolicy": "X", "objectSelector": {"matchLabels": {"a b": "c"}}, "resourceRules": [{}]},
            validationActions=["Shout", "Deny", "Warn", "Deny"],
        ),
    )
    yield "policy: no spec", {key: value for key, value in policy("p", "true").items() if key != "spec"}
    yield "binding: no spec", {key: value for key, value in binding("b", "p").items() if key != "spec"}
    yield "policy: empty spec", policy("p", "true") | {"spec": {}}
    yield "binding: empty spec", binding("b", "p") | {"spec": {}}
    yield from (("undecodable or empty: " + name, document) for name, document in _types())


def _everything_wrong() -> Document:
    """A manifest with many errors, which shows their order."""
    selector = {"matchLabels": {"a b": "c d", "e f": "g"}, "matchExpressions": [{"key": "h i", "operator": "Like"}]}
    return _spec(
        policy("Upper"),
        failurePolicy="X",
        paramKind={"apiVersion": "Bad_/V1", "kind": "1x"},
        matchConstraints={
            "matchPolicy": "X",
            "namespaceSelector": selector,
            "objectSelector": selector,
            "resourceRules": [
                {
                    "operations": ["X", "*"],
                    "apiGroups": ["*", "a"],
                    "apiVersions": ["*", ""],
                    "resources": ["", "*/*", "pods/*", "pods/x"],
                    "scope": "X",
                    "resourceNames": ["a/b", "a/b"],
                }
            ],
            "excludeResourceRules": [{}],
        },
        matchConditions=[{"name": "a b", "expression": "nope"}, {"name": "a b", "expression": " "}],
        variables=[{"name": "a b", "expression": "nope"}, {"name": "", "expression": " "}],
        validations=[{"expression": "nope", "message": "a\nb", "messageExpression": "1", "reason": "X"}],
        auditAnnotations=[{"key": "a b", "valueExpression": "1"}, {"key": "a b", "valueExpression": " "}],
    )


def _spec(document: Document, **fields: Any) -> Document:
    made = deepcopy(document)
    made["spec"] = {key: value for key, value in {**made["spec"], **fields}.items() if value != "absent"}
    return made


def _matching(**fields: Any) -> Document:
    made = {key: value for key, value in {**rule("pods"), **fields}.items() if value != "absent"}
    return _spec(policy("p", "true"), matchConstraints={"resourceRules": [made]})


def _metadata() -> Iterator[tuple[str, Document]]:
    for name in ("Upper", "under_score", "dots..dots", "-a", "a-", LONG, "a.b-c.d"):
        yield f"name {name[:20]}", {"name": name}


def _policies() -> Iterator[tuple[str, Document]]:
    yield "failurePolicy", {"failurePolicy": "Perhaps"}
    yield "no validations", {"validations": []}
    yield "validations absent", {"validations": "absent"}
    yield "only annotations", {"validations": [], "auditAnnotations": [{"key": "k", "valueExpression": "'x'"}]}
    for name, kind in (
        ("no apiVersion", {"kind": "ConfigMap"}),
        ("no kind", {"apiVersion": "v1"}),
        ("neither", {}),
        ("two slashes", {"apiVersion": "a/b/c", "kind": "X"}),
        ("only group", {"apiVersion": "apps/", "kind": "X"}),
        ("bad version", {"apiVersion": "apps/V1", "kind": "X"}),
        ("bad group", {"apiVersion": "Apps_x/v1", "kind": "X"}),
        ("bad kind", {"apiVersion": "v1", "kind": "Config_Map"}),
        ("long group", {"apiVersion": f"{LONG}/v1", "kind": "X"}),
        ("long version", {"apiVersion": "v" * 64, "kind": "X"}),
        ("long kind", {"apiVersion": "v1", "kind": "K" * 64}),
        ("blank kind", {"apiVersion": "v1", "kind": " "}),
        ("number kind", {"apiVersion": "v1", "kind": "1Map"}),
    ):
        yield f"paramKind {name}", {"paramKind": kind}
    for name, items in (
        ("no name", [{"expression": "true"}]),
        ("no expression", [{"name": "a"}]),
        ("blank expression", [{"name": "a", "expression": "  "}]),
        ("bad name", [{"name": "a b", "expression": "true"}]),
        ("prefixed name", [{"name": "example.com/a", "expression": "true"}]),
        ("bad prefix", [{"name": "Example_/a", "expression": "true"}]),
        ("two slashes", [{"name": "a/b/c", "expression": "true"}]),
        ("long prefix", [{"name": f"{LONG}/a", "expression": "true"}]),
        ("empty prefix", [{"name": "/a", "expression": "true"}]),
        ("empty after prefix", [{"name": "a.b/", "expression": "true"}]),
        ("blank name", [{"name": " ", "expression": "true"}]),
        ("twice and empty", [{"expression": "true"}, {"expression": "true"}]),
        ("long name", [{"name": "a" * 64, "expression": "true"}]),
        ("twice", [{"name": "a", "expression": "true"}, {"name": "a", "expression": "true"}]),
        ("too many", [{"name": f"a{number}", "expression": "true"} for number in range(65)]),
        ("wrong type", [{"name": "a", "expression": "1"}]),
        ("syntax", [{"name": "a", "expression": "object.["}]),
        ("variables", [{"name": "a", "expression": "variables.x == 1"}]),
        ("blanks before", [{"name": "a", "expression": "   nope"}]),
    ):
        extra = {"variables": [{"name": "x", "expression": "1"}]} if name == "variables" else {}
        yield f"matchConditions {name}", {"matchConditions": items, **extra}
    for name, items in (
        ("no name", [{"expression": "1"}]),
        ("no expression", [{"name": "a"}]),
        ("blank expression", [{"name": "a", "expression": " "}]),
        ("bad name", [{"name": "a-b", "expression": "1"}]),
        ("blank name", [{"name": " ", "expression": "1"}]),
        ("underscore", [{"name": "_a", "expression": "1"}]),
        ("escaped", [{"name": "a__dash__b", "expression": "1"}]),
        ("reserved", [{"name": "in", "expression": "1"}]),
        ("keyword", [{"name": "namespace", "expression": "1"}]),
        ("number", [{"name": "1a", "expression": "1"}]),
        ("twice", [{"name": "a", "expression": "1"}, {"name": "a", "expression": "2"}]),
        ("twice, at first undeclared", [{"name": "a", "expression": "nope"}, {"name": "a", "expression": "2"}]),
        ("twice, then undeclared", [{"name": "a", "expression": "1"}, {"name": "a", "expression": "nope"}]),
        (
            "twice, and one more",
            [*({"name": "a", "expression": "1"} for _ in "ab"), {"name": "b", "expression": "nope"}],
        ),
        (
            "twice, of two types",
            [
                *({"name": "a", "expression": expression} for expression in ("1", "'x'")),
                {"name": "b", "expression": "variables.a + 1"},
            ],
        ),
        (
            "twice, and the second type",
            [
                *({"name": "a", "expression": expression} for expression in ("1", "'x'")),
                {"name": "b", "expression": "variables.a + 'y'"},
            ],
        ),
        ("forward", [{"name": "a", "expression": "variables.b"}, {"name": "b", "expression": "2"}]),
        ("undeclared", [{"name": "a", "expression": "nope"}]),
    ):
        yield f"variables {name}", {"variables": items}
    for name, item in (
        ("no expression", {"message": "x"}),
        ("blank expression", {"expression": "  "}),
        ("wrong type", {"expression": "'x'"}),
        ("dyn", {"expression": "object.spec.x"}),
        ("undeclared", {"expression": "nope"}),
        ("blanks before", {"expression": "   nope"}),
        ("params", {"expression": "params.x == 1"}),
        ("blank message", {"expression": "true", "message": "  "}),
        ("line break", {"expression": "true", "message": "a\nb"}),
        ("return", {"expression": "true", "message": "a\rb"}),
        ("trailing break", {"expression": "true", "message": "a\n"}),
        ("break before", {"expression": "true", "message": "\n a"}),
        ("reason", {"expression": "true", "reason": "Because"}),
        ("unauthorized", {"expression": "true", "reason": "Unauthorized"}),
        ("forbidden", {"expression": "true", "reason": "Forbidden"}),
        ("blank messageExpression", {"expression": "true", "messageExpression": " "}),
        ("messageExpression type", {"expression": "true", "messageExpression": "1"}),
        ("messageExpression undeclared", {"expression": "true", "messageExpression": "nope"}),
        (
            "messageExpression authorizer",
            {"expression": "true", "messageExpression": "string(authorizer == authorizer)"},
        ),
        ("two faults", {"expression": "nope", "message": " ", "reason": "X"}),
        ("multiline", {"expression": "true &&\n  nope"}),
    ):
        yield f"validation {name}", {"validations": [item]}
    for name, items in (
        ("no key", [{"valueExpression": "'x'"}]),
        ("bad key", [{"key": "a b", "valueExpression": "'x'"}]),
        ("slash", [{"key": "a/b", "valueExpression": "'x'"}]),
        ("long key", [{"key": "a" * 64, "valueExpression": "'x'"}]),
        ("dashed", [{"key": "-a", "valueExpression": "'x'"}]),
        ("no expression", [{"key": "a"}]),
        ("blank expression", [{"key": "a", "valueExpression": " "}]),
        ("wrong type", [{"key": "a", "valueExpression": "1"}]),
        ("null", [{"key": "a", "valueExpression": "null"}]),
        ("undeclared", [{"key": "a", "valueExpression": "  nope"}]),
        ("too long", [{"key": "a", "valueExpression": "'" + "x" * 5119 + "'"}]),
        ("as long as may be", [{"key": "a", "valueExpression": "'" + "x" * 5118 + "'"}]),
        ("twice", [{"key": "a", "valueExpression": "'x'"}] * 2),
        ("too many", [{"key": f"a{number}", "valueExpression": "'x'"} for number in range(21)]),
    ):
        yield f"auditAnnotations {name}", {"auditAnnotations": items}


def _rules() -> Iterator[tuple[str, Document]]:
    for field in ("operations", "apiGroups", "apiVersions", "resources"):
        yield f"no {field}", {field: []}
        yield f"{field} absent", {field: "absent"}
        yield f"empty {field}", {field: [""]}
        yield f"star and more {field}", {field: ["*", "x"]}
        yield f"star {field}", {field: ["*"]}
    yield "unknown operation", {"operations": ["CREATE", "PATCH"]}
    yield "lower operation", {"operations": ["create"]}
    yield "scope", {"scope": "Everywhere"}
    yield "cluster scope", {"scope": "Cluster"}
    for name, resources in (
        ("all and more", ["*/*", "pods"]),
        ("star and subresources", ["*", "pods/exec"]),
        ("star and main", ["*", "pods"]),
        ("pods star and pods exec", ["pods/*", "pods/exec"]),
        ("pods exec first", ["pods/exec", "pods/*"]),
        ("pods star and pods", ["pods/*", "pods"]),
        ("star scale and scale", ["*/scale", "deployments/scale"]),
        ("star scale and star", ["*/scale", "*"]),
        ("twice", ["pods", "pods"]),
        ("slash", ["/"]),
        ("three", ["a/b/c"]),
        ("empty among", ["pods", ""]),
    ):
        yield f"resources {name}", {"resources": resources}
    for name, names in (
        ("twice", ["a", "a"]),
        ("slash", ["a/b"]),
        ("dot", ["."]),
        ("dots", [".."]),
        ("percent", ["a%b"]),
        ("empty", [""]),
        ("upper", ["A"]),
    ):
        yield f"resourceNames {name}", {"resourceNames": names}


def _matches() -> Iterator[tuple[str, Any]]:
    rules = [rule("pods")]
    yield "absent", "absent"
    yield "empty", {}
    yield "no rules", {"resourceRules": []}
    yield "policy", {"resourceRules": rules, "matchPolicy": "Perhaps"}
    yield "exact", {"resourceRules": rules, "matchPolicy": "Exact"}
    yield "bad exclude", {"resourceRules": rules, "excludeResourceRules": [{}]}
    for selector in ("namespaceSelector", "objectSelector"):
        for name, selector_value in _selectors():
            yield f"{selector} {name}", {"resourceRules": rules, selector: selector_value}


def _selectors() -> Iterator[tuple[str, Document]]:
    yield "operator", {"matchExpressions": [{**SELECTOR, "operator": "Like"}]}
    yield "no operator", {"matchExpressions": [{"key": "a", "values": ["b"]}]}
    yield "no values", {"matchExpressions": [{**SELECTOR, "values": []}]}
    yield "notin no values", {"matchExpressions": [{"key": "a", "operator": "NotIn"}]}
    yield "exists with values", {"matchExpressions": [{**SELECTOR, "operator": "Exists"}]}
    yield "no key", {"matchExpressions": [{"operator": "Exists"}]}
    yield "bad key", {"matchExpressions": [{"key": "a b", "operator": "Exists"}]}
    yield "bad prefix", {"matchExpressions": [{"key": "A_/b", "operator": "Exists"}]}
    yield "bad value", {"matchExpressions": [{**SELECTOR, "values": ["b c"]}]}
    yield "long value", {"matchExpressions": [{**SELECTOR, "values": ["b" * 64]}]}
    yield "empty value", {"matchExpressions": [{**SELECTOR, "values": [""]}]}
    yield "labels bad key", {"matchLabels": {"a b": "c"}}
    yield "labels bad value", {"matchLabels": {"a": "b c"}}
    yield "labels", {"matchLabels": {"example.com/a": "b"}}


def _bindings() -> Iterator[tuple[str, Document]]:
    yield "no policyName", {"policyName": "absent"}
    yield "bad policyName", {"policyName": "Bad_Name"}
    yield "long policyName", {"policyName": LONG}
    yield "no actions", {"validationActions": []}
    yield "unknown action", {"validationActions": ["Shout"]}
    yield "same action twice", {"validationActions": ["Audit", "Audit"]}
    yield "deny and warn", {"validationActions": ["Deny", "Warn"]}
    yield "warn and deny and audit", {"validationActions": ["Warn", "Deny", "Audit"]}
    yield "deny and audit", {"validationActions": ["Deny", "Audit"]}
    for name, reference in (
        ("empty", {}),
        ("no action", {"name": "x"}),
        ("unknown action", {"name": "x", "parameterNotFoundAction": "Perhaps"}),
        ("name and selector", {"name": "x", "selector": {}, "parameterNotFoundAction": "Deny"}),
        ("neither", {"parameterNotFoundAction": "Deny"}),
        ("namespace alone", {"namespace": "x", "parameterNotFoundAction": "Deny"}),
        ("slash", {"name": "a/b", "parameterNotFoundAction": "Deny"}),
        ("percent", {"name": "a%b", "parameterNotFoundAction": "Deny"}),
        ("dots", {"name": "..", "parameterNotFoundAction": "Deny"}),
        ("upper", {"name": "A B", "parameterNotFoundAction": "Deny"}),
        (
            "bad selector",
            {"selector": {"matchExpressions": [{**SELECTOR, "operator": "Like"}]}, "parameterNotFoundAction": "Deny"},
        ),
        ("bad label", {"selector": {"matchLabels": {"a b": "c"}}, "parameterNotFoundAction": "Deny"}),
        ("by selector", {"selector": {}, "parameterNotFoundAction": "Allow"}),
    ):
        yield f"paramRef {name}", {"paramRef": reference}
    for name, match in (
        ("empty", {}),
        ("selector alone", {"namespaceSelector": {"matchLabels": {"a": "b"}}}),
        ("bad rule", {"resourceRules": [{}]}),
        ("policy", {"matchPolicy": "Perhaps"}),
        ("bad selector", {"objectSelector": {"matchLabels": {"a b": "c"}}}),
    ):
        yield f"matchResources {name}", {"matchResources": match}


def _types() -> Iterator[tuple[str, Document]]:
    """Values of wrong types, and empty values."""
    values: tuple[Json, ...] = ("", 1, 1.5, True, [], {}, None)
    for value in values:
        shown = repr(value)
        yield f"failurePolicy {shown}", _spec(policy("p", "true"), failurePolicy=value)
        yield f"matchPolicy {shown}", _matched(matchPolicy=value)
        yield f"scope {shown}", _matching(scope=value)
        yield f"operations [{shown}]", _matching(operations=[value])
        yield f"reason {shown}", _spec(policy("p"), validations=[{"expression": "true", "reason": value}])
        yield f"labels {shown}", policy("p", "true") | {"metadata": {"name": "p", "labels": {"a": value}}}
        yield f"paramRef {shown}", _spec(binding("b", "p"), paramRef=value)
        reference = {"name": "x", "parameterNotFoundAction": value}
        yield f"parameterNotFoundAction {shown}", _spec(binding("b", "p"), paramRef=reference)
        yield f"creationTimestamp {shown}", binding("b", "p") | {"metadata": {"name": "b", "creationTimestamp": value}}
    yield "static binding", binding("b.static.k8s.io", "p")
    yield "binding of a static policy", binding("b", "p.static.k8s.io")


def _matched(**fields: Any) -> Document:
    document = _matching()
    return _spec(document, matchConstraints={**document["spec"]["matchConstraints"], **fields})
