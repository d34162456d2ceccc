"""`kubectl apply` removes the fields that the last manifest had and the new one has no more; all others stay."""

from __future__ import annotations

import json
from typing import Any

import pytest

from scanner.cluster.schemas import builtin_schemas
from scanner.mutate.schema import Custom, Schema
from scanner.preview.last_applied import read_last_applied, remove_unnamed
from tests.documents import Document

SCHEMA = builtin_schemas()["apps", "v1", "Deployment"]
ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"


def deployment(spec: Document, pod: Document | None = None, **metadata: Any) -> Document:
    """A Deployment with fields of its spec, and with a pod."""
    body = {"template": {"spec": pod}} if pod else {}
    named = {"name": "web", "namespace": "shop", **metadata}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": named, "spec": {**spec, **body}}


def after(live: Document, last: object, now: Document, schema: Schema = SCHEMA) -> Document:
    """The live object without what the new manifest no longer has."""
    annotations = {**live["metadata"].get("annotations", {}), ANNOTATION: json.dumps(last)}
    applied = {**live, "metadata": {**live["metadata"], "annotations": annotations}}
    left: Any = remove_unnamed(schema, applied, read_last_applied(applied) or {}, now)
    del annotations[ANNOTATION]
    kept = {key: value for key, value in left["metadata"].get("annotations", {}).items() if key != ANNOTATION}
    return {**left, "metadata": {**left["metadata"], "annotations": kept}}


WEB, PROXY = {"name": "web", "image": "web:1"}, {"name": "proxy", "image": "proxy:1"}
ENV = [{"name": name, "value": "1"} for name in ("A", "B", "C")]


@pytest.mark.parametrize(
    ("live", "last", "now", "expected"),
    [
        ({"replicas": 3, "paused": True}, {"replicas": 1}, {}, {"paused": True}),
        ({"replicas": 3}, {"replicas": 1}, {"replicas": 1}, {"replicas": 3}),
        ({"replicas": 3}, {}, {}, {"replicas": 3}),
        ({"strategy": {"type": "Recreate"}}, {"strategy": {"type": "Recreate"}}, {"strategy": {}}, {"strategy": {}}),
        ({"selector": {"matchLabels": {"a": "1", "b": "1"}}}, {"selector": {"matchLabels": {"a": "1"}}}, {}, {}),
    ],
)
def test_a_field_that_the_last_manifest_had_goes(live: Any, last: Any, now: Any, expected: Any) -> None:
    """A field that another client set stays, unless it is within one that goes."""
    assert expected == after(deployment(live), deployment(last), deployment(now))["spec"]


@pytest.mark.parametrize(
    ("live", "last", "now", "expected"),
    [
        (
            {"containers": [WEB, PROXY, {"name": "injected"}]},
            {"containers": [WEB, PROXY]},
            {"containers": [WEB]},
            {"containers": [WEB, {"name": "injected"}]},
        ),
        (
            {"containers": [{**WEB, "env": ENV}]},
            {"containers": [{**WEB, "env": ENV[:2]}]},
            {"containers": [{**WEB, "env": ENV[:1]}]},
            {"containers": [{**WEB, "env": [ENV[0], ENV[2]]}]},
        ),
        (
            {"containers": [{**WEB, "args": ["a", "b"]}]},
            {"containers": [{**WEB, "args": ["a", "b"]}]},
            {"containers": [{**WEB, "args": ["a"]}]},
            {"containers": [{**WEB, "args": ["a", "b"]}]},
        ),
    ],
)
def test_an_element_is_found_by_its_keys(live: Any, last: Any, now: Any, expected: Any) -> None:
    """A list without keys is replaced by that of the manifest later, when it is merged."""
    left = after(deployment({}, live), deployment({}, last), deployment({}, now))
    assert expected == left["spec"]["template"]["spec"]


def test_the_identity_and_what_the_server_sets_stay() -> None:
    """The annotation of kubectl has the namespace, empty annotations and a null date; the manifest may have none of them."""
    live = deployment({}, uid="1", creationTimestamp="2026-01-01T00:00:00Z", annotations={"of": "another"})
    last = deployment({}, creationTimestamp=None, annotations={})
    now = {"metadata": {"name": "web"}, "spec": {}}

    assert live == after(live, last, now)


def test_a_label_goes_with_its_line() -> None:
    """The labels of others stay, and so does the annotation of a controller."""
    live = deployment({}, labels={"team": "red", "by": "webhook"}, annotations={"revision": "3", "note": "x"})
    last = deployment({}, labels={"team": "red"}, annotations={"note": "x"})
    left = after(live, last, deployment({}))["metadata"]

    assert ({"revision": "3"}, None) == (left["annotations"], left.get("labels"))


def test_each_list_of_a_custom_resource_is_that_of_the_manifest() -> None:
    """A JSON merge patch replaces a list, also one that the last manifest did not have."""
    schema = Schema("?", (), (), builtin=False, custom=Custom({}))
    live, now = ({"metadata": {}, "spec": {"hosts": hosts, "size": 1}} for hosts in (["a", "b"], ["b"]))

    assert {"hosts": ["b"], "size": 1} == after(live, {"spec": {}}, now, schema)["spec"]


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '"x"', "{" * 100_000, '{"metadata": 1, "spec": []}'])
def test_an_annotation_that_is_none_of_kubectls_removes_nothing(text: str) -> None:
    """Any client can write it."""
    live = deployment({"replicas": 1}, labels={"a": "1"}, annotations={ANNOTATION: text})
    assert live is remove_unnamed(SCHEMA, live, read_last_applied(live) or {}, deployment({}))
