"""Kyverno's CEL environment: the answers and errors of its libraries, and the calls that a scan cannot answer."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from scanner.cel import CompileError, EvaluationError, Timestamp, Value, compile
from scanner.policies.kyverno.libraries import Collection, NoClusterData, Unavailable, environment, library_values

NOW = Timestamp(1_700_000_000 * 10**9)
DIGEST = "sha256:" + "0123456789abcdef" * 4
OBJECT = {"spec": {"number": 1, "list": [1, 2]}, "metadata": {"name": "x"}}


class Cluster(NoClusterData):
    """A cluster with one ConfigMap, one entry of the global context, and one known image."""

    def get(self, collection: Collection, namespace: str, name: str, /) -> Value:
        """Return the ConfigMap; None for any other object."""
        exists = (collection, namespace, name) == (Collection("", "v1", "configmaps"), "default", "settings")
        return {"data": {"mode": "strict"}} if exists else None

    def list(self, collection: Collection, namespace: str, labels: Mapping[str, str], /) -> Value:
        """Return a list whose only item is the request."""
        return {"items": [f"{collection.group}/{collection.plural}/{namespace}/{dict(labels)}"]}

    def collection(self, group: str, version: str, kind: str, /) -> Collection:
        """Return the collection whose plural is the kind in lower case with an s."""
        return Collection(group, version, f"{kind.lower()}s")

    def entry(self, name: str, projection: str, /) -> Value:
        """Return the entry `known`; None for any other."""
        return [projection] if name == "known" else None

    def image(self, reference: str, /) -> Value:
        """Return the name of the image as its metadata."""
        return {"image": reference}


def evaluated(text: str, *, namespace: str = "") -> Value:
    """Return the value of an expression."""
    activation = {
        **library_values(Cluster(), NOW, namespace),
        "object": OBJECT,
        "oldObject": {},
        "request": {"userInfo": {}},
        "exceptions": {"allowedImages": [], "allowedValues": ["a"]},
    }
    return compile(text, environment(namespaced=bool(namespace))).evaluate(activation)


@pytest.mark.parametrize(
    ("expected", "text"),
    [
        (3, "object.?spec.?missing.orValue(3)"),
        (1, "object.?spec.?number.orValue(3)"),
        (1, "object.spec.number.orValue(7)"),
        ([], "[].orValue([1])"),
        (2, "cel.bind(x, object.spec.number, x + x)"),
        (3, "math.greatest(1, 3, 2)"),
        (2, "math.greatest(1.5, 2)"),
        (1, "math.least([3, 1])"),
        (7, "math.greatest(7)"),
        (2.35, "math.round(2.345, 2)"),
        (-3.0, "math.round(-2.5)"),
        (2.0, "math.ceil(1.2)"),
        (-2.0, "math.floor(-1.2)"),
        (-1.0, "math.trunc(-1.7)"),
        (3, "math.abs(-3)"),
        (-1, "math.sign(-12)"),
        (True, "math.isNaN(math.sqrt(-1))"),
        (1, "math.bitAnd(5, 3)"),
        (-6, "math.bitNot(5)"),
        (0, "math.bitShiftLeft(1, 64)"),
        (1, "math.bitShiftRight(-1, 63)"),
        (b"hello", "base64.decode('aGVsbG8')"),
        ("aGVsbG8=", "base64.encode(b'hello')"),
        ("abc", "gzip.decompress(gzip.compress('abc'))"),
        ("a<b>ca<b>c", "regex.replace('abcabc', '(b)', '<\\\\1>')"),
        ("a-cabc", "regex.replace('abcabc', 'b', '-', 1)"),
        ("12", "regex.extract('a12', 'a(\\\\d+)').orValue('')"),
        (False, "regex.extract('a12', 'b').hasValue()"),
        (["a1", "b2"], "regex.extractAll('a1 b2', '[a-z]\\\\d')"),
        ("ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb", "sha256('a')"),
        ("0cc175b9c0f1b6a831c399e269772661", "hash.md5('a')"),
        ("86f7e437faa5a7fce15d1ddcb9eaeaea377667b8", "sha1('a')"),
        ([1.0, 2.5], "json.unmarshal('{\"a\": [1, 2.5]}').a"),
        ('{"a":"\\u003c","b":"x"}', "json.marshal({'b': 'x', 'a': '<'})"),
        ("[1,0.5,1e+21,1e-7]", "json.marshal([1.0, 0.5, 1e21, 1e-7])"),
        ("\ufffdx\U0001f600", "json.unmarshal('\"\\\\ud800x\\\\ud83d\\\\ude00\"')"),
        ("13 22 14 11 2", "time.toCron(time.now())"),
        (True, "time.truncate(time.now(), duration('1h')) == timestamp('2023-11-14T22:00:00Z')"),
        ("n:m", "parseServiceAccount('system:serviceaccount:ns:n:m').Name"),
        ("ns", "user.parseServiceAccount('system:serviceaccount:ns:n').Namespace"),
        ("", "parseServiceAccount('admin').Name"),
        ({"a": 1, "b": None}, "listObjToMap([{'k': 'a'}, {'k': 'b'}], [{'v': 1}, {'w': 2}], 'k', 'v')"),
        ("abc", "random('abc')"),
        ("strict", "resource.Get('v1', 'configmaps', 'default', 'settings').data.mode"),
        (None, "resource.get('v1', 'configmaps', 'default', 'other')"),
        (["apps/deployments/ns/{}"], "resource.List('apps/v1', 'deployments', 'ns').items"),
        (["/pods//{'a': 'b'}"], "resource.list(resource.ToGVR('v1', 'Pod'), '', {'a': 'b'}).items"),
        (["p"], "globalContext.Get('known', 'p')"),
        (None, "globalContext.get('unknown')"),
        ("nginx", "image.GetMetadata('nginx').image"),
        (True, "[1, 2].all(image, image > 0)"),
        (True, "true || http.Get('http://x').ok"),
        (["a"], "exceptions.allowedValues"),
        (False, "has(request.userInfo.username)"),
        (False, "oldObject == null"),
    ],
)
def test_libraries_answer_as_kyverno_does(expected: Value, text: str) -> None:
    """An expression has the value that Kyverno gives it."""
    assert expected == evaluated(text)


@pytest.mark.parametrize(
    ("expected", "reference"),
    [
        (("index.docker.io", "library/nginx", "latest", ""), "nginx"),
        (("index.docker.io", "library/nginx", "1", ""), "docker.io/nginx:1"),
        (("ghcr.io", "kyverno/kyverno", "v1", ""), "ghcr.io/kyverno/kyverno:v1"),
        (("localhost:5000", "xx", "latest", ""), "localhost:5000/xx"),
        (("index.docker.io", "a/b", "1", DIGEST), f"a/b:1@{DIGEST}"),
        (("index.docker.io", "a/b", "", DIGEST), f"a/b@{DIGEST}"),
    ],
)
def test_an_image_reference_has_four_parts(expected: tuple[str, ...], reference: str) -> None:
    """Registry, repository, tag and digest of an image reference are those of a registry client."""
    parts = [f"image('{reference}').{part}()" for part in ("registry", "repository", "tag", "digest")]
    assert list(expected) == evaluated(f"[{', '.join(parts)}]")


@pytest.mark.parametrize("reference", ["", "UPPER", "a:", "a@sha256:1", "a b"])
def test_a_malformed_image_reference_is_no_image(reference: str) -> None:
    """`isImage` is false for a malformed reference."""
    assert evaluated(f"isImage('{reference}')") is False


def test_a_namespaced_policy_reads_its_own_namespace() -> None:
    """The functions of a namespaced policy have one argument less, and the namespace is the policy's."""
    assert evaluated("resource.List('v1', 'pods').items", namespace="team") == ["/pods/team/{}"]


@pytest.mark.parametrize(
    ("expected", "text"),
    [
        ("invalid character '1' after object key", "json.unmarshal('{\"a\" 1}')"),
        ("unexpected end of JSON input", "json.unmarshal('[1')"),
        ("invalid character 'x' looking for beginning of value", "json.unmarshal('x')"),
        ("invalid character 'x' in literal true (expecting 'e')", "json.unmarshal('trux')"),
        ("invalid character '2' after array element", "json.unmarshal('[1 2]')"),
        ("illegal base64 data at input byte 1", "base64.decode('a?')"),
        ("could not parse reference: ::", "image('::')"),
        ("listObjToMap must take lists of equal length. list1: 1, list2: 0", "listObjToMap([{}], [], 'k', 'v')"),
        ("failed to get resource: unexpected GroupVersion string: a/b/c", "resource.Get('a/b/c', 'x', '', 'y')"),
        ("math.bitShiftLeft() negative offset: -1", "math.bitShiftLeft(1, -1)"),
        ("no such key: data", "resource.Get('v1', 'configmaps', '', 'none').data"),
    ],
)
def test_errors_are_in_upstreams_words(expected: str, text: str) -> None:
    """An error of a library has Kyverno's text."""
    with pytest.raises(EvaluationError) as caught:
        evaluated(text)
    assert expected in str(caught.value)


@pytest.mark.parametrize(
    ("expected", "text"),
    [
        ("an HTTP GET", "http.Get('http://x')"),
        ("an HTTP POST", "http.Client('pem').Post('http://x', {'a': 1}, {'h': 'v'})"),
        ("another one each time", "random()"),
        ("another one each time", "random.random('[a-z]')"),
        ("a scan writes nothing", "resource.Post('v1', 'pods', 'ns', {'a': 'b'})"),
    ],
)
def test_calls_that_a_scan_cannot_answer_are_unavailable(expected: str, text: str) -> None:
    """A request to the network, a random text or a write is unavailable, which is no error of the object, and states the reason."""
    with pytest.raises(Unavailable) as caught:
        evaluated(text)
    assert expected in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "authorizer.group('')",
        "params.x",
        "images.containers",
        "request.uid",
        "namespaceObject.foo",
        "variables.later",
        "[1, 'a']",
        "parseServiceAccount('').name",
        "resource.Get('v1', 'pods', 'name')",
        "exceptions.others",
    ],
)
def test_names_that_kyverno_does_not_declare_do_not_compile(text: str) -> None:
    """Names, fields and arities beyond Kyverno's are refused when compiling."""
    with pytest.raises(CompileError):
        compile(text, environment(namespaced=False))


def test_the_compatible_orvalue_is_dyn() -> None:
    """The result of `orValue` has no static type, so that it cannot be a validation."""
    assert str(compile("object.?a.orValue(true)", environment(namespaced=False)).result_type) == "dyn"
