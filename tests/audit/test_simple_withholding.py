"""Objects whose secrets are found by searches of their text: the result is the one of the walk through every value."""

from __future__ import annotations

import copy
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scanner.audit.simple_withholding import withhold_simply
from scanner.audit.withholding import withhold
from scanner.model.resource import LAST_APPLIED, Kind, resource_of

PODS = Kind("", "v1", "Pod", "pods", namespaced=True)
FIELDS: dict[str, Any] = {
    "f:spec": {
        "f:containers": {'k:{"name":"web"}': {".": {}, "f:env": {'k:{"name":"DB_PASSWORD"}': {".": {}, "f:name": {}}}}}
    }
}
TEXTS = (
    "", "web", "true", "value", "ordinary", "postgres://a:b@c", "http://a:8080/p", "http://a/?q=b@c", "https://a.example.com", "a\tb",
    "--token", "--token=abcdef", "-p", "token: abc", "password = 'x y'", 'password\\": \\"abc', "password\n", "PASSWORD\n:\n'abc'", "auth",
    "Bearer abcdefghij", "eyJhbGciOi.eyJzdWIiOi.abc", "ewogICJhIjogImIiCn0KCg==x", " H4sIAAAAAAAAAAAAAAAAAAA", "-----BEGIN PRIVATE KEY-----x",
    "kind: Secret", '{"kind": "Secret"}', '{"a":{"data":{"x":"y"}}}', "a:\n  data:\n    x: y", "data: ", "- env:", "stringData", "redacted",
    "[redacted]", "longvalue-1", "x longvalue-1 y", "123456789", "1e+22", "token\u017f: 'abc'", "é", "dG9rZW46IGFiY2RlZmdo", "apikey", "\x0b",
)  # fmt: skip
KEYS = (
    "name", "key", "value", "env", "httpHeaders", "data", "kind", "spec", "template", "password", "password\n", "ftoken", "f:token", "secret",
    "secrets", "imagePullSecrets", "secretKeyRef", "serviceAccountToken", "automountServiceAccountToken", "tolerations", "stringData", "args",
    "containers", "metadata", "annotations", "labels", "managedFields", "fieldsV1", "secretName", "path", "longvalue-1", "a.longvalue-1/b",
    'x"value', LAST_APPLIED, "Passwort", "token: abc", "postgres://a:b@c", "to\u212aen",
)  # fmt: skip


def pod() -> dict[str, Any]:
    """A pod as a server has it, with what is simple: variables, a reference to a secret, and managed fields."""
    return {
        "metadata": {
            "name": "web",
            "labels": {"app": "web"},
            "annotations": {LAST_APPLIED: '{"spec":{"containers":[{"env":[{"name":"A","value":"x"}]}]}}'},
            "managedFields": [{"manager": "kubectl", "fieldsType": "FieldsV1", "fieldsV1": copy.deepcopy(FIELDS)}],
        },
        "spec": {
            "containers": [
                {
                    "name": "web",
                    "args": ["--listen", ":80"],
                    "env": [
                        {"name": "A", "value": "longvalue-1"},
                        {"name": "B", "value": "x"},
                        {"name": "DB_PASSWORD", "valueFrom": {"secretKeyRef": {"name": "db", "key": "password"}}},
                    ],
                }
            ],
            "tolerations": [{"key": "dedicated", "value": "shop"}],
            "volumes": [
                {"name": "s", "secret": {"secretName": "db", "defaultMode": 420}},
                {
                    "name": "t",
                    "projected": {"sources": [{"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}}]},
                },
            ],
            "imagePullSecrets": [{"name": "registry"}],
            "automountServiceAccountToken": False,
        },
    }


def list_places(value: object) -> list[Any]:
    """Every map and list of an object."""
    parts = [*value.values()] if isinstance(value, dict) else value if isinstance(value, list) else []
    own = [value] if isinstance(value, dict | list) else []
    return own + [place for part in parts for place in list_places(part)]


leaves = (
    st.sampled_from(TEXTS)
    | st.text(max_size=8)
    | st.integers(-5, 10**10)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.booleans()
    | st.none()
)
values = st.recursive(
    leaves,
    lambda part: (
        st.lists(part, max_size=3) | st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=4), part, max_size=3)
    ),
    max_leaves=6,
)
edits = st.lists(st.tuples(st.integers(0, 60), st.sampled_from(KEYS) | st.sampled_from(TEXTS), values), max_size=3)


def edited(changes: list[tuple[int, str, Any]]) -> dict[str, Any]:
    """The pod with values put anywhere in it."""
    body = pod()
    for number, key, value in changes:
        places = list_places(body)
        place = places[number % len(places)]
        if isinstance(place, dict):
            place[key] = value
        else:
            place.append(value)
    return body


def withhold_by_walking(body: dict[str, Any]) -> tuple[Any, set[Any]]:
    """The object without its secrets and their places, found by a walk."""
    resource = resource_of(PODS, copy.deepcopy(body))
    places = set(withhold(resource))
    return resource.body, places


def test_an_ordinary_pod_is_simple() -> None:
    """Otherwise the property below would hold for nothing."""
    simple = withhold_simply(pod())

    assert simple is not None
    body, places = withhold_by_walking(pod())
    assert (body, places) == (orjson.loads(simple[0]), set(simple[1]))
    assert b"longvalue-1" not in simple[0]


@settings(max_examples=400)
@given(changes=edits)
def test_what_is_withheld_is_what_a_walk_withholds(changes: list[tuple[int, str, Any]]) -> None:
    """Or the object is not simple, and is walked through."""
    body = edited(changes)
    simple = withhold_simply(copy.deepcopy(body))

    expected = withhold_by_walking(body)
    assert simple is None or expected == (orjson.loads(simple[0]), set(simple[1]))


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("key", ["note", "args", "longvalue-1"])
def test_each_text_is_withheld_as_in_a_walk(text: str, key: str) -> None:
    """As the value of an annotation, as an argument after another one, and as a key."""
    body = pod()
    body["metadata"]["annotations"][key] = text
    body["metadata"]["annotations"][text] = key
    body["spec"]["containers"][0]["args"] += [text, "abcdef"]
    simple = withhold_simply(copy.deepcopy(body))

    expected = withhold_by_walking(body)
    assert simple is None or expected == (orjson.loads(simple[0]), set(simple[1]))


OTHER_SECRETS: dict[str, dict[str, Any]] = {
    "a header of a probe": {"livenessProbe": {"httpGet": {"httpHeaders": [{"name": "X", "value": "abcdefgh"}]}}},
    "a variable in another place": {"init": {"env": [{"name": "X", "value": "abcdefgh"}]}},
    "a value with the name of a secret": {"tolerations": [{"key": "token", "value": "abcdefgh"}]},
    "a copy of kubectl in a template": {"template": {"metadata": {"annotations": {LAST_APPLIED: "abcdefgh"}}}},
    "a Secret in an object": {"object": {"kind": "Secret", "data": {"x": "abcdefgh"}}},
    "a password with a reference's name": {"secret": {"secretName": "db", "password": "abcdefgh"}},
    "a number": {"password": 12345678},
    "a key": {"x": {"a-longvalue-1": "abcdefgh"}},
    "a part of a text": {"x": "a longvalue-1 b"},
    "a space of another alphabet": {"x": "token\u00a0= abcdefgh"},
}


@pytest.mark.parametrize("spec", OTHER_SECRETS.values(), ids=OTHER_SECRETS)
def test_an_object_with_other_secrets_is_not_simple(spec: dict[str, Any]) -> None:
    """It is walked through, and the walk withholds them."""
    body = pod()
    body["spec"] |= spec

    assert withhold_simply(copy.deepcopy(body)) is None
    assert len(withhold_by_walking(pod())[1]) < len(withhold_by_walking(body)[1])


def test_a_secret_in_managed_fields_is_not_simple() -> None:
    """No server stores values there, but a custom resource of another server may have them."""
    body = pod()
    body["metadata"]["managedFields"][0]["fieldsV1"]["f:password"] = "abcdefgh"

    assert withhold_simply(body) is None
