"""Kyverno's functions by release: values and errors that a program linked with the release has as well."""

from __future__ import annotations

import pytest

from scanner import cel
from scanner.model.release import Minor
from scanner.policies.kyverno.libraries import NoClusterData, environment, exempted, library_values
from tests.policies.kyverno.made import outcomes, pod, policy

DIGEST = "sha256:" + "a" * 64
NEWEST: Minor = (1, 19)
BEFORE: Minor = (1, 18)


class Empty(NoClusterData):
    """A cluster without objects."""

    def get(self, *_read: object) -> cel.Value:
        """Return None: the object does not exist."""
        return None

    def entry(self, name: str, projection: str, /) -> cel.Value:
        """Return the name of the entry."""
        return f"{name}{projection}"


def value(text: str, release: Minor = NEWEST, namespace: str = "") -> cel.Value:
    """The value of an expression."""
    activation = {
        **library_values(Empty(), cel.Timestamp(0), namespace, release),
        "object": {"metadata": {"labels": {"example.com/team": "shop"}}},
        "exceptions": exempted([], ["a"]),
    }
    return cel.compile(text, environment(release, namespaced=bool(namespace))).evaluate(activation)


def error(text: str, release: Minor = NEWEST, namespace: str = "") -> str:
    """The text of the error of an expression."""
    with pytest.raises(cel.EvaluationError) as caught:
        value(text, release, namespace)
    return str(caught.value)


@pytest.mark.parametrize(
    ("release", "expected"),
    [(NEWEST, ["v1", f"v1@{DIGEST}", DIGEST]), (BEFORE, ["", DIGEST, DIGEST])],
    ids=["1.19", "1.18"],
)
def test_a_reference_with_tag_and_digest_has_both_since_1_19(release: Minor, expected: list[str]) -> None:
    """Before 1.19 the digest hides the tag; a port is no tag in any release."""
    image = f"image('reg.example.com:5000/app:v1@{DIGEST}')"
    untagged = f"image('reg.example.com:5000/app@{DIGEST}')"
    assert expected == value(f"[{image}.tag(), {image}.identifier(), {image}.digest()]", release)
    assert value(f"{untagged}.tag()", release) == ""


def test_images_are_equal_if_they_are_written_alike() -> None:
    """Two references to the same image are different images, unless they are the same text."""
    texts = [
        "image('nginx') == image('docker.io/library/nginx:latest')",
        "image('nginx') == image('nginx')",
        "parseImageReference('a/b:1') == image('a/b:1')",
    ]
    assert [False, True, True] == [value(text) for text in texts]


@pytest.mark.parametrize(
    ("expected", "text"),
    [
        ("3600000000000", "json.marshal(duration('1h'))"),
        ('"1"', "json.marshal(quantity('1'))"),
        ("null", "json.marshal(optional.none())"),
        ('{"10.0.0.0/8":1}', "json.marshal({cidr('10.0.0.0/8'): 1})"),
        ('{"a":1}', "json.marshal({optional.of('a'): 1})"),
        ("[1]", "json.marshal(optional.of([1]))"),
        ('"int"', "json.marshal(int)"),
        ('"2024-01-01T00:00:00Z"', "json.marshal(timestamp('2024-01-01T00:00:00Z'))"),
        ('["1.2.3","10.0.0.1"]', "json.marshal([dyn(semver('1.2.3')), dyn(ip('10.0.0.1'))])"),
        ('{"a":{"b":[1,null]}}', "json.marshal({'a': {'b': [dyn(1), dyn(null)]}})"),
        ('{"name":"n","namespace":"ns"}', "json.marshal(parseServiceAccount('system:serviceaccount:ns:n'))"),
        ('"nginx"', "json.marshal(image('nginx'))"),
        ('"YWJj"', "json.marshal(b'abc')"),
    ],
)
def test_values_are_written_as_go_writes_them(expected: str, text: str) -> None:
    """Durations are numbers, values of Kubernetes' types have the JSON of their Go types."""
    assert expected == value(text)


@pytest.mark.parametrize(
    ("expected", "text"),
    [
        (
            "json: failed to convert CEL map to native map: unsupported type conversion from 'int' to string",
            "json.marshal({1: 'a'})",
        ),
        ("json: unsupported map key type int64 (original key type: int64)", "json.marshal([{1: 'a'}])"),
        (
            "json: failed to convert CEL list to native slice: optional.none() dereference",
            "json.marshal([optional.none()])",
        ),
        (
            "json: failed to convert CEL list to native slice: type conversion not supported for 'type'",
            "json.marshal([int])",
        ),
        ("json: unsupported value: NaN", "json.marshal(0.0 / 0.0)"),
        ("json: cannot unmarshal number 1e400 into Go value of type float64", "json.unmarshal('1e400')"),
        ("unsupported type conversion from 'int' to string", "json.unmarshal(1)"),
        ("invalid character 'x' in string escape code", "json.unmarshal(r'\"\\x\"')"),
        ("invalid character '^' in \\u hexadecimal character escape", "json.unmarshal(r'\"\\ud8^0\"')"),
        ("invalid character '\"' in \\u hexadecimal character escape", "json.unmarshal(r'\"\\u12\"')"),
        ("invalid character ' ' in \\u hexadecimal character escape", "json.unmarshal(r'\"\\u12')"),
        ("invalid character ' ' in string escape code", "json.unmarshal(r'\"a\\')"),
        ("unexpected end of JSON input", "json.unmarshal(r'\"a\\\\')"),
        ("invalid character ' ' in literal true (expecting 'e')", "json.unmarshal('[tru')"),
        ("invalid character 'x' in numeric literal", "json.unmarshal('-x')"),
        ("invalid character ']' after decimal point in numeric literal", "json.unmarshal('[1.]')"),
        ("invalid character ' ' in exponent of numeric literal", "json.unmarshal('1e+')"),
        ("invalid character '1' after top-level value", "json.unmarshal('-01')"),
        ("type conversion error from Bytes to 'string'", "gzip.compress(b'a')"),
        ("EOF", "gzip.decompress(b'')"),
        ("gzip: invalid header", "gzip.decompress(b'0123456789')"),
        ("lists.range: size must be non-negative, got -1", "lists.range(-1)"),
        ("unsupported type conversion from 'int' to string", "json.encode({1: 2})"),
        ("optional.none() dereference", "json.encode([optional.none()])"),
        ("proto:\u00a0google.protobuf.Value.number_value: invalid NaN value", "json.encode([double('NaN')])"),
        ("type conversion error from 'Quantity' to '*structpb.Value'", "json.encode(quantity('1'))"),
        ("illegal base64 data at input byte 0", "base64.decode('a')"),
        ("invalid replacement string: '\\' \\ not allowed at end", "regex.replace('a', 'a', '\\\\')"),
        (
            "listObjToMap must take lists of equal length. list1: 1, list2: 0",
            "listObjToMap([{'k': 'a'}], [], 'k', 'v')",
        ),
        (
            "internal error: interface conversion: interface {} is string, not map[interface {}]interface {}",
            "listObjToMap(['a'], [{'v': 1}], 'k', 'v')",
        ),
    ],
)
def test_errors_have_the_text_of_kyverno(expected: str, text: str) -> None:
    """The error of a function is that of its Go code."""
    assert expected == error(text)


@pytest.mark.parametrize(
    ("expected", "text"),
    [
        ("30 10 1 1 1", "time.toCron(timestamp('2024-01-01T10:30:00+05:30'))"),
        ("0 23 31 12 0", "time.toCron(timestamp('2023-12-31T23:00:00-05:00'))"),
        (
            True,
            "time.truncate(timestamp('2024-01-01T10:30:00+05:30'), duration('1h')) == timestamp('2024-01-01T05:00:00Z')",
        ),
        ("shop", "object.metadata.labels.`example.com/team`"),
        ([True, False], "[has(exceptions.allowedValues), has(parseServiceAccount('a').Name)]"),
        (False, "proto.hasExt({'a': 1}, b.c)"),
        ("a", "cel.bind(x, exceptions.allowedValues, x[0])"),
    ],
)
def test_values_are_those_of_kyverno(expected: cel.Value, text: str) -> None:
    """A time keeps its zone, a quoted name is a field, and the objects of libraries have types of their own."""
    assert expected == value(text)


def test_an_object_that_does_not_exist_is_null_since_1_18() -> None:
    """Before, it is an error with the text of the API server."""
    text = "resource.Get('apps/v1', 'deployments', 'team', 'web')"
    assert value(text) is None
    assert error(text, (1, 17)) == 'failed to get resource: deployments.apps "web" not found'


def test_a_namespaced_policy_reads_no_global_context_since_1_19() -> None:
    """A cluster-wide policy reads it, and so does a namespaced one of an older release."""
    text = "globalContext.Get('entry')"
    assert ["entry", "entry"] == [value(text), value(text, BEFORE, "team")]
    refusal = "failed to get global reference: globalContext.* is not allowed in namespaced policies"
    assert refusal == error(text, NEWEST, "team")


def test_or_value_has_the_type_of_the_optional_before_1_19() -> None:
    """Since 1.19 it is dyn, so that such an expression alone is no validation; before, it is dyn for an object's field only."""
    types = [
        str(cel.compile("optional.of(true).orValue(false)", environment(release, namespaced=False)).result_type)
        for release in (BEFORE, NEWEST)
    ]
    assert ["bool", "dyn"] == types


@pytest.mark.parametrize(
    ("expected", "text"),
    [
        ("9007199254740991", "json.encode(9007199254740991)"),
        ('"9007199254740992"', "json.encode(9007199254740992)"),
        ('"18446744073709551615"', "json.encode(18446744073709551615u)"),
        ("1e+21", "json.encode(1e21)"),
        ("-0", "json.encode(-0.0)"),
        ('"3601.5s"', "json.encode(duration('1h1.5s'))"),
        ('"YWI="', "json.encode(b'ab')"),
        ('{"labels":{"example.com/team":"shop"}}', "json.encode(object.metadata)"),
        ('[{"Name":"b","Namespace":"a"}]', "json.encode([parseServiceAccount('system:serviceaccount:a:b')])"),
        ('{"AllowedImages":[],"AllowedValues":["a"]}', "json.encode(exceptions)"),
        ("null", "json.encode(null)"),
        ("[1]", "json.encode(optional.of([1]))"),
        ('"\\u003c\\u003e"', "json.encode('<>')"),
    ],
)
def test_json_encode_writes_values_as_protobuf_does(expected: str, text: str) -> None:
    """Integers that a double cannot hold, durations and bytes are texts."""
    assert expected == value(text)


@pytest.mark.parametrize(
    ("expected", "text"),
    [
        ("no such key: 10.0.0.0/8", "json.marshal({cidr('10.0.0.0/8'): 1})"),
        ("unsupported type conversion from 'int' to string", "json.marshal({1: 1})"),
        ("type conversion not supported for 'type'", "json.marshal([int])"),
    ],
)
def test_json_marshal_has_other_errors_before_1_19(expected: str, text: str) -> None:
    """1.18 finds no entry by a key that is no plain value, and puts nothing before the error of a conversion."""
    assert expected == error(text, BEFORE)


@pytest.mark.parametrize(
    "text",
    [
        "2024-01-01T0:00:00Z",
        "2024-01-01T00:00:00,5Z",
        "2024-01-01T00:00:00+24:00",
        "2024-01-01T00:00:00+23:60",
        "2024-13-01T00:00:00Z",
        "2024-01-01",
        "",
    ],
)
def test_a_timestamp_has_the_form_of_rfc_3339_since_1_19(text: str) -> None:
    """Before, `timestamp` also takes what Go's parser does: a comma, an hour of one digit, and large offsets."""
    own = {"object": {"at": text}}
    timestamps = [
        cel.compile("timestamp(object.at) > timestamp(0)", environment(each, namespaced=False))
        for each in (BEFORE, NEWEST)
    ]
    before, now = (program.measure(own).outcome for program in timestamps)
    assert f'invalid RFC 3339 timestamp "{text}"' == str(now)
    assert (
        True
        if "T" in text and "-13-" not in text
        else "type conversion error from 'string' to 'google.protobuf.Timestamp'"
    ) == (before if before is True else str(before))


@pytest.mark.parametrize(("expected", "release"), [("", BEFORE), ("invalid timestamp argument", NEWEST)])
def test_a_constant_timestamp_is_checked_by_the_rules_of_the_release(expected: str, release: Minor) -> None:
    """A text that the release does not take is a compile error."""
    try:
        cel.compile("timestamp('2024-01-01T0:00:00Z') > timestamp(0)", environment(release, namespaced=False))
        found = ""
    except cel.CompileError as error:
        found = error.detail
    assert expected in found
    assert bool(expected) == bool(found)


@pytest.mark.parametrize(
    ("expected", "expression"),
    [
        ("Errored", "json.encode(1) == '1'"),
        ("Passed", "json.encode(object.kind) == '\"Pod\"'"),
        ("Errored", "json.encode('a') + json.encode('b') != ''"),
        ("Passed", "'a' + 'b' != '' && json.encode(1) == '1'"),
    ],
)
def test_json_encode_exceeds_the_limit_where_nothing_was_charged_before(expected: str, expression: str) -> None:
    """The price is the highest number of 64 bits: added to another cost, the sum wraps around and is one less."""
    assert [expected] == outcomes(pod(), policy(expression))


@pytest.mark.parametrize("release", [BEFORE, NEWEST])
@pytest.mark.parametrize(
    "text",
    ["optional.none().hasValue()", "format.uri().validate('a').hasValue()", "[1].all(x, optional.none().hasValue())"],
)
def test_a_call_without_arguments_has_a_cost(text: str, release: Minor) -> None:
    """An expression whose cost is counted may call functions without arguments."""
    assert cel.compile(text, environment(release, namespaced=False)).measure({}).cost > 0


def test_a_call_stops_at_its_first_failing_argument_since_1_19() -> None:
    """The tracker of `distinct` ends the evaluation in a panic; it is not reached where the argument before fails."""
    text = "object.missing + object.missing.distinct()"
    assert error(text) == "no such key: missing"
    assert error(text, BEFORE).startswith("internal error: interface conversion: ")
