"""Questions for servers of older releases: expressions, costs and policies, each a policy about one object.

An expression is put so that its answer shows what it is: an error in its own words, or a message with its value. What
depends on a release's novelties is among them, so that a release without them has to refuse.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from scanner.model.json import Json, JsonObject
from scanner.model.resource import Kind
from tests.integration.made import ADMISSION, LABEL
from tests.oracle.grammar import Generator
from tests.oracle.subjects import objects

GROUP = "older.example.com"
THINGS = Kind(GROUP, "v1", "Thing", "things", namespaced=True)
LONG = "a" * 200
LISTED = "[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]"

TABLE = (
    # the parser
    *(
        "'\\ud800'",
        "'\\U00110000'",
        "'\\Uffffffff'",
        "b'\\ud800'",
        "'\\u00e9'",
        "object.`spec`",
        "object.`a-b`.c",
        "`a`",
        "a`",
    ),
    *("[1].all(__result__, true)", "[true].all(__result__, __result__)", "[1].exists(x, __result__)"),
    *("[1, 2].map(x, __result__.size())", "[1, 2, 3].filter(x, __result__.size() < 2)", "__result__"),
    *("[1, 2].exists_one(x, __result__ == 0)", "[[1], [2]].map(x, x.map(y, __result__.size()))"),
    *("[1].map(x, true, __result__)", "[1, 2].all(x, 1 / (x - 1) > 0 || __result__)", "[1].map(__result__, 1)"),
    *("[1].filter(__result__, true)", "[1].all(i, __result__, true)", "[1, 2].exists(i, v, __result__)", "@result"),
    *(
        "[1].all(x, .x == 1)",
        "[1].existsOne(x, x == 1)",
        "object.",
        "1 +",
        "a.b.",
        "{'a': 1,, }",
        "[1, 2",
        "f(1)",
        "a.?",
        "x ? 1",
    ),
    *("Thing{a: 1}", "Thing{1: 2}", "Thing{?", "size(", "'a", "in", "if", "namespace", "1e999", "99999999999999999999"),
    # the checker
    *(
        "object.spec.map.all(k, v, k == v)",
        "object.spec.map.exists(k, v, dyn(v) == 'x')",
        "object.spec.map.all(k, v, v)",
    ),
    *("{'a': 1}.all(k, v, v == 1)", "[1, 2].all(i, v, i < v)", "dyn([1]).exists(i, v, v > 0)", "5.all(i, v, v)"),
    *(
        "{'a': 1}.transformMap(k, v, v + 1)",
        "[3].transformList(i, v, i + v)",
        "{'a': 1}.transformMapEntry(k, v, {k: v})",
    ),
    *(
        "dyn({'a': 1}).transformMap(k, v, 1)",
        "object.spec.strs.transformList(i, v, string(v))",
        "[1].exists_one(i, v, v == 1)",
    ),
    *("optional.none().optMap(x, x).hasValue()", "optional.of(1).optMap(x, x + 1)", "optional.of([]).optMap(x, x)"),
    *(
        "optional.of(object).optFlatMap(o, o.?spec)",
        "optional.none().optFlatMap(x, x).hasValue()",
        "object.?spec.optMap(s, 1)",
    ),
    *(
        "type(optional.of(1))",
        "optional.of(1) + 1",
        "[optional.of(1), 2]",
        "optional_type",
        "optional",
        "[optional.of(1)] == [1]",
    ),
    *(
        "'%s'.format([[1, 'a']])",
        "'%s %d'.format(['a', 1])",
        "'%s'.format([[[1, 'a']]])",
        "'%s'.format([size([1, 'a'])])",
    ),
    *(
        "'%s'.format([{'a': [1, 'b']}])",
        "'%s'.format([1, 2])",
        "'%d'.format(['a'])",
        "'%z'.format([1])",
        "'%d'.format([])",
    ),
    *(
        "'%s'.format([optional.of(1)])",
        "'%s'.format([[1, 'a'].size()])",
        "[1, 'a']",
        "{'a': 1, 'b': 'c'}",
        "{1: 2, 'a': 3}",
    ),
    *(
        "duration('x')",
        "timestamp('x')",
        "'a'.matches('(')",
        "object.spec.str.matches('(')",
        "duration(1)",
        "timestamp(1)",
    ),
    # types by their names, parts without a type, and messages of protobuf
    *(
        "duration",
        "duration == duration('1s')",
        "duration{seconds: 1}",
        "timestamp{}",
        "type(timestamp)",
        "[duration, 1]",
    ),
    *("kubernetes.Namespace", "kubernetes.Namespace{}", "kubernetes.Namespace{metadata: 1}", "kubernetes.UserInfo.uid"),
    *(
        "kubernetes.Namespace.metadata.name == 'x'",
        "has(kubernetes.Namespace.spec)",
        "kubernetes.variables",
        "list{a: 1}",
    ),
    *("[1].all(duration, duration == 1)", "google.protobuf.Duration", "google.protobuf.Duration{seconds: 1}", "map{}"),
    *("google.protobuf.Struct{fields: dyn([1])}", "google.protobuf.ListValue{values: dyn({1: 2})}", "[[1], list, map]"),
    *(
        "dyn([1]).transformList(i, v, [v])",
        "dyn([1]).transformMapEntry(i, v, {v: i})",
        "dyn([1]).transformMap(i, v, [v])",
    ),
    *("dyn([1]).all(i, v, [1, v] == [])", "dyn([1]).all(i, v, [v, 1] == [])", "dyn([1]).all(i, v, [v, v, 1, v] == [])"),
    *(
        "dyn([1]).all(i, v, {v: 1, v: 2} == {})",
        "dyn([1]).all(i, v, {1: v, 2: v} == {})",
        "dyn([1]).all(i, v, {1: v} == 3)",
    ),
    *(
        "(1 + 'a').transformList(i, v, v)",
        "dyn([1]).all(i, v, [v].size() == 1)",
        "dyn([1]).all(i, v, {v: v}.size() == 1)",
    ),
    *(
        "optional.of(google.protobuf.Int32Value{value: 'a'}).optMap(x, x)",
        "optional.of({'a': 1 + 'b', true: 2}).optFlatMap(x, x)",
        "optional.of([1 + 'b', {?'a': 1}]).optMap(x, x)",
        "[1][dyn([1])]",
        "{1: 2}[dyn([1])]",
        "dyn({1: 2})[dyn({})]",
        "string(dyn([1]))",
        "int(dyn({}))",
    ),
    # functions
    *(
        "'%e'.format([1234.5])",
        "'%.2e'.format([0.00012])",
        "'%e'.format([-1.0])",
        "'%f'.format([2.5])",
        "'%.3f'.format([1.0])",
    ),
    *("'%b %x %X %o'.format([5, 255, 255, 8])", "'%s'.format([type(optional.of(1))])", "'%s'.format([timestamp(0)])"),
    *("'%x'.format(['hi'])", "'%s'.format([1.5])", "'%s'.format([null])", "'%s'.format([b'a'])", "'%%'.format([])"),
    *("cidr('10.0.0.0/8').containsCIDR('10.0.0.0/16')", "cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16')"),
    *("cidr('10.1.0.0/8').containsCIDR(cidr('10.0.0.0/9'))", "cidr('10.0.0.0/16').containsCIDR('10.0.0.0/8')"),
    *(
        "cidr('fd00::/8').containsCIDR('fd00::/16')",
        "cidr('::/0').containsCIDR('0.0.0.0/0')",
        "cidr('0.0.0.0/0').containsCIDR('1.2.3.4/32')",
    ),
    *(
        "cidr('10.0.0.0/8').containsIP('10.2.3.4')",
        "cidr('10.0.0.0/8').containsIP(ip('11.2.3.4'))",
        "cidr('10.0.0.0/8').containsIP('x')",
    ),
    *(
        "cidr('10.0.0.0/8') == cidr('10.0.0.0/8')",
        "cidr('10.1.0.0/8').masked()",
        "cidr('10.0.0.0/8').ip() == ip('10.0.0.0')",
    ),
    *(
        "ip('::1') == ip('0:0:0:0:0:0:0:1')",
        "ip('1.2.3.4').family()",
        "isIP('x')",
        "ip.isCanonical('127.0.0.1')",
        "ip('1.2.3')",
    ),
    *(
        "type(ip('1.2.3.4'))",
        "type(cidr('1.2.3.4/8'))",
        "net.IP",
        "net.CIDR",
        "string(ip('1.2.3.4'))",
        "isCIDR('10.0.0.0/33')",
    ),
    *("format.dns1123Label().validate('a.b').value()", "format.qualifiedName().validate('a/b/c').value()"),
    *(f"format.qualifiedName().validate('{LONG}').value()", f"format.labelValue().validate('{LONG}').value()"),
    *(f"format.qualifiedName().validate('{LONG}{LONG}/x').value()", "format.labelValue().validate('-a').value()"),
    *(f"format.dns1123Label().validate('{LONG}').value()", "format.dns1123Subdomain().validate('A').value()"),
    *(
        "format.uuid().validate('x').value()",
        "format.byte().validate('x').value()",
        "format.date().validate('x').value()",
    ),
    *(
        "format.datetime().validate('2020-01-01').value()",
        "format.uri().validate('x').value()",
        "format.named('nope').hasValue()",
    ),
    *("format.named('labelValue').value().validate('-').value()", "format.dns1035Label().validate('1').value()"),
    *("format.dns1035LabelPrefix().validate('a-').hasValue()", "format.dns1123LabelPrefix().validate('-').value()"),
    *(
        "''.indexOf('a')",
        "'abc'.indexOf('c', 5)",
        "'abc'.indexOf('')",
        "'abc'.lastIndexOf('')",
        "''.lastIndexOf('a')",
        "'abc'.indexOf('a', -1)",
    ),
    *(
        "'abc'.lastIndexOf('c', 9)",
        "'abc'.lastIndexOf('a', 0)",
        "'abc'.substring(2, 1)",
        "'abc'.charAt(3)",
        "'abc'.charAt(9)",
        "'abc'.substring(4)",
    ),
    *(
        "'abcabc'.replace('b', 'x', 1)",
        "'a,b'.split(',', 1)",
        "['a', 'b'].join('-')",
        "'x'.reverse()",
        "' a '.trim()",
        "strings.quote('a\"')",
    ),
    *(
        "quantity('1Gi').add(quantity('1')).asInteger()",
        "quantity('1.5').isInteger()",
        "quantity('x')",
        "quantity('8Ei').add(1)",
    ),
    *(
        "[quantity('8Ei')].all(q, q.add(1).isGreaterThan(q))",
        "quantity('1k') == quantity('1000')",
        "type(quantity('1'))",
    ),
    *("isSemver('1.2.3')", "semver('1.2.3').major()", "semver('v1', true)", "type(semver('1.2.3'))", "semver('x')"),
    *(
        "[1].first()",
        "[1, 2].last()",
        "[optional.of(1)].unwrapOpt()",
        "optional.unwrap([optional.of(1)])",
        "[].first().hasValue()",
    ),
    *(
        "[2, 1].sort()",
        "[2, 1].sortBy(x, x)",
        "[1, 1].distinct()",
        "[[1]].flatten()",
        "lists.range(3)",
        "[1, 2].slice(0, 1)",
        "[1, 2].reverse()",
    ),
    *(
        "sets.contains([1], [1])",
        "sets.equivalent([1], [1, 1])",
        "sets.intersects([1], [2])",
        "[1].includes(1)",
        "[3, 1].min()",
    ),
    *(
        "url('https://a/b').getHost()",
        "isURL('x')",
        "'a1'.find('[0-9]')",
        "'a1b2'.findAll('[0-9]')",
        "jsonpatch.escapeKey('a/b')",
    ),
    *(
        "authorizer.group('').resource('pods').check('get').allowed()",
        "authorizer.group('').resource('pods').fieldSelector('a=b').check('list').allowed()",
    ),
    *(
        "authorizer.group('').resource('pods').labelSelector('a=b').check('list').reason()",
        "authorizer.path('/x').check('get').errored()",
    ),
    *(
        "cel.bind(x, 1, x)",
        "cel.block([1], cel.index(0))",
        "math.greatest(1, 2)",
        "base64.encode(b'a')",
        "proto.hasExt(a, b)",
        "ext.native",
    ),
    # values
    *(
        "variables",
        "variables == null",
        "variables.x",
        "has(variables.x)",
        "params",
        "request.operation",
        "namespaceObject.metadata.name",
    ),
    *(
        "object.spec.missing",
        "object.spec['missing']",
        "object.?spec.?missing.hasValue()",
        "object.spec.int / 0",
        "object.spec.strs[99]",
    ),
    *(
        "dyn(1).orValue(2)",
        "optional.of(optional.of(1)).value()",
        "[optional.of(optional.of(1))].all(o, o.value().value() == 1)",
    ),
    *(
        "[1].all(x, 1 / 0 > 0)",
        "[0, 1].exists(x, 1 / x > 0)",
        "[0, 1].exists_one(x, 1 / x > 0)",
        "[1, 2].map(x, 1 / (x - 1))",
    ),
    *(
        "true || 1 / 0 > 0",
        "1 / 0 > 0 && false",
        "true ? 1 : 'a'",
        "dyn(1) == 1.0",
        "1u == 1",
        "[1, 2.0] == [1.0, 2]",
        "{'a': 1} == {'a': 1.0}",
    ),
    *(
        "timestamp('2020-01-01T00:00:00Z').getFullYear()",
        "timestamp('2020-01-01T00:00:00Z').getHours('+02:00')",
        "duration('1h').getMinutes()",
    ),
    *(
        "timestamp('2020-01-01T00:00:00Z') + duration('1h')",
        "duration('1h') + duration('100000000h')",
        "int('9223372036854775808')",
    ),
    *(
        "int(1e19)",
        "uint(-1)",
        "double('x')",
        "bool('yes')",
        "string(1.0)",
        "string(b'\\xff')",
        "bytes('é').size()",
        "'é'.size()",
        "-9223372036854775808",
    ),
    *(
        "9223372036854775807 + 1",
        "-(-9223372036854775807 - 1)",
        "5 % 0",
        "-7 / 2",
        "-7 % 2",
        "0x1F",
        "1.5e3",
        "'a' * 2",
        "null + 1",
        "type(null)",
    ),
)
"""One expression for everything that some release does differently, and neighbours of it that none does."""


def _repeated(body: str, outer: int, inner: str = "0") -> str:
    """A loop in a loop, so that the price of what is in it decides."""
    rows, row = f"[{','.join(['0'] * outer)}]", f"[{','.join([inner] * outer)}]"
    return f"!{rows}.all(a, {row}.all(b, {body}))"


COSTS = (
    *(
        _repeated(body, size)
        for size in (30, 60, 100, 140)
        for body in (
            "sets.contains([1,2,3,4,5,6,7,8,9,10], [1,2,3,4,5,6,7,8,9,10])",
            "sets.equivalent([1,2,3,4,5], [1,2,3,4,5])",
            "sets.intersects([1,2,3,4,5,6,7,8], [8])",
            f"'{LONG}'.lowerAscii() != ''",
            f"'{LONG}'.startsWith('{LONG}')",
            f"'{LONG}'.replace('a', 'b') != ''",
            f"'{LONG}' == '{LONG}'",
            f"'{LONG}'.matches('a+b?')",
            f"optional.of('{LONG}{LONG}') == optional.of('{LONG}{LONG}')",
            "ip('2001:db8::1') == ip('2001:db8::1')",
            "cidr('10.0.0.0/8').containsIP('10.0.0.1')",
            "cidr('10.0.0.0/8').containsCIDR('10.0.0.0/16') || true",
            "quantity('1').isLessThan(quantity('2'))",
            f"url('https://{LONG}/').getHost() != ''",
            f"'{LONG}'.find('a+') != ''",
            "[3, 2, 1].sum() == 6",
            f"'%s'.format(['{LONG}']) != ''",
            f"['{LONG}', '{LONG}'].join(',') != ''",
            "format.dns1123Label().validate('abc').hasValue() || true",
            "[1, 2, 3].map(x, x + 1).size() == 3",
            "{'a': 1}.a == 1 && has(object.spec)",
            "[1, 2].all(i, v, i < v)",
            "semver('1.2.3').isLessThan(semver('2.0.0'))",
            "type(object.spec) != int",
        )
    ),
    *(f"![{','.join(['0'] * times)}].all(i, authorizer.path('/x').check('get').allowed())" for times in (2, 3, 20)),
)
"""Expressions that stop, or do not, by what a release charges for something."""


@dataclass(frozen=True, slots=True)
class Question:
    """A policy with its binding, and the object that it is about."""

    about: str
    text: str
    policy: JsonObject
    binding: JsonObject
    document: JsonObject


def questions(seed: int, number: int) -> Iterator[Question]:
    """All of them: the tables, and so many random expressions with the variables that they use."""
    chance = Random(seed)
    usual = objects(chance, 2)[0]
    assert usual is not None
    spec: Json = usual["spec"]
    for index, text in enumerate(TABLE):
        yield _question(f"table-{index}", "expression", text, spec, ())
    for index, text in enumerate(COSTS):
        yield _question(f"cost-{index}", "cost", text, spec, ())
    generator = Generator(chance)
    for index in range(number):
        case = generator.case()
        document = next(chosen for chosen in objects(chance, 3)[::-1] if chosen is not None)
        yield _question(f"random-{index}", "random", str(case.term), document["spec"], case.variables)
    yield from _policies(spec)


def _question(name: str, about: str, text: str, spec: Json, variables: tuple[tuple[str, str], ...]) -> Question:
    validation: dict[str, Json] = {"expression": text, "message": "no"}
    if about != "cost":
        validation = {"expression": f"[dyn({text})].size() == 2", "messageExpression": f"'%s'.format([dyn({text})])"}
    fields: dict[str, Json] = {"validations": [validation]}
    if variables:
        fields["variables"] = [{"name": variable, "expression": expression} for variable, expression in variables]
    return _asking(name, about, text, fields, spec)


def _policies(spec: Json) -> Iterator[Question]:
    """Policies whose other parts a release could take differently."""
    conditions: Json = [{"name": "c", "expression": "variables.v == 1"}]
    declared: list[Json] = [{"name": "v", "expression": "1"}]
    failing: Json = [{"expression": "false"}]
    parts: dict[str, dict[str, Json]] = {
        "condition-with-variable": {"matchConditions": conditions, "variables": declared, "validations": failing},
        "condition-errs": {"matchConditions": [{"name": "c", "expression": "object.nope"}], "validations": failing},
        "annotation-alone": {"auditAnnotations": [{"key": "k", "valueExpression": "'x'"}]},
        "annotation-variables": {"auditAnnotations": [{"key": "k", "valueExpression": "string(variables == null)"}]},
        "annotation-mixed-format": {"auditAnnotations": [{"key": "k", "valueExpression": "'%s %d'.format(['a', 1])"}]},
        "message-errs": {"validations": [{"expression": "false", "messageExpression": "string(1 / 0)"}]},
        "message-empty": {"validations": [{"expression": "false", "messageExpression": "''", "message": "plain"}]},
        "message-broken": {
            "validations": [{"expression": "false", "messageExpression": "'a\\nb'", "message": "plain"}]
        },
        "message-of-another-type": {"validations": [{"expression": "false", "messageExpression": "optional.of(1)"}]},
        "expression-of-another-type": {"validations": [{"expression": "optional.of(1)"}]},
        "variable-of-variable": {
            "variables": [*declared, {"name": "w", "expression": "variables.v + 1"}],
            "validations": [{"expression": "variables.w == 3"}],
        },
        "variable-undeclared": {"variables": declared, "validations": [{"expression": "variables.nowhere == 3"}]},
        "variable-unused-errs": {
            "variables": [{"name": "bad", "expression": "1 / 0"}],
            "validations": failing,
        },
        "ignored": {"failurePolicy": "Ignore", "validations": [{"expression": "object.nope"}]},
        "reason": {"validations": [{"expression": "false", "reason": "Forbidden", "message": "m"}]},
    }
    for name, fields in parts.items():
        yield _asking(name, "policy", name, fields, spec)


def _asking(name: str, about: str, text: str, fields: dict[str, Json], spec: Json) -> Question:
    rule: Json = {"apiGroups": [GROUP], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["things"]}
    match: Json = {"resourceRules": [rule], "objectSelector": {"matchLabels": {LABEL: name}}}
    body: Json = {"failurePolicy": "Fail", "matchConstraints": match, **fields}
    bound: Json = {"policyName": name, "validationActions": ["Deny"]}
    return Question(
        about,
        text,
        _document(ADMISSION, "ValidatingAdmissionPolicy", name, body),
        _document(ADMISSION, "ValidatingAdmissionPolicyBinding", name, bound),
        {
            "apiVersion": f"{GROUP}/v1",
            "kind": "Thing",
            "metadata": {"name": name, "namespace": "default", "labels": {LABEL: name}},
            "spec": spec,
        },
    )


def definition() -> JsonObject:
    """The kind of the objects, whose spec may hold anything."""
    free: Json = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema: Json = {"openAPIV3Schema": {"type": "object", "properties": {"spec": free}}}
    body: Json = {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
    }
    return _document("apiextensions.k8s.io/v1", "CustomResourceDefinition", f"things.{GROUP}", body)


def _document(api_version: str, kind: str, name: str, spec: Json) -> JsonObject:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": spec}
