"""Excerpts of objects, around the field that decided."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scanner.audit.evidence.excerpt import LONGEST, cut_excerpt, find_deciding_trail
from scanner.audit.sensitive_fields import Trail
from scanner.model.json import JsonObject

CONTAINER: JsonObject = {
    "image": "nginx",
    "name": "app",
    "env": [{"name": "A", "value": "hunter22"}],
    "password": "hunter2",
}
OBJECT: JsonObject = {
    "kind": "Deployment",
    "metadata": {"name": "web", "labels": {"app": "web", "tier": "front"}, "annotations": {"a": "1"}},
    "spec": {"replicas": 7, "paused": False, "selector": {"app": "web"}, "tolerations": [], "containers": [CONTAINER]},
    "data": {"key": "value"},
}


@pytest.mark.parametrize(
    ("trail", "excerpt"),
    [
        (
            ("spec", "replicas"),
            'spec: {"replicas": 7, "paused": false, "selector": {…}, "tolerations": [], "containers": […]}',
        ),
        (
            ("spec", "paused"),
            'spec: {"paused": false, "replicas": 7, "selector": {…}, "tolerations": [], "containers": […]}',
        ),
        (("metadata", "labels", "app"), 'metadata.labels: {"app": "web", "tier": "front"}'),
        (("metadata", "labels", "none"), 'metadata.labels: {"app": "web", "tier": "front"}'),
        (
            ("spec", "containers", 0, "image"),
            'spec.containers[0]: {"image": "nginx", "name": "app", "env": […], "password": "[redacted]"}',
        ),
        (
            ("spec", "containers", 0, "env", 0, "name"),
            'spec.containers[0].env[0]: {"name": "A", "value": "[redacted]"}',
        ),
        (("metadata", "name"), ""),
        (("kind",), ""),
        (("data", "key"), ""),
        (("spec", "containers", 0), ""),
        (("spec", "containers", 1, "image"), ""),
        (("spec", "replicas", "none"), ""),
    ],
)
def test_an_excerpt_shows_the_fields_beside_the_deciding_one(trail: Trail, excerpt: str) -> None:
    """First the deciding field, then the others; lists and maps are not opened, and sensitive fields are masked."""
    assert excerpt == cut_excerpt(OBJECT, trail, frozenset())


def test_an_excerpt_has_no_hidden_value() -> None:
    """Neither as a value nor as a key."""
    body: JsonObject = {"spec": {"a": "say hunter22", "hunter22": "b", "c": 1}}
    assert "hunter22" not in cut_excerpt(body, ("spec", "a"), frozenset({"hunter22"}))


@given(st.dictionaries(st.text(max_size=9), st.text(max_size=400), max_size=30))
def test_an_excerpt_is_short(fields: dict[str, str]) -> None:
    """However many and however long the fields are."""
    body: JsonObject = {"spec": {"a": 1, "b": 2, **fields}}
    assert len(cut_excerpt(body, ("spec", "a"), frozenset()).encode("utf-8", "surrogatepass")) <= LONGEST


@pytest.mark.parametrize(
    ("places", "trail"),
    [
        ([("params", "data", "max"), ("object", "spec", "replicas")], ("spec", "replicas")),
        ([("request", "object", "spec", "replicas")], ("spec", "replicas")),
        ([("object", "data"), ("object", "spec", "containers", 0), ()], ()),
    ],
)
def test_the_first_field_of_the_object_decides_where_the_excerpt_is(
    places: list[tuple[str | int, ...]], trail: Trail
) -> None:
    """Fields of other documents, elements of lists and fields of the object itself have none."""
    assert trail == find_deciding_trail(iter(places))


def test_an_excerpt_is_that_of_its_own_values() -> None:
    """Values that are equal in Python, but not in JSON, have texts of their own, although excerpts are remembered."""
    written = ["1", "true", "1", "0", "-0", "false", "null", '"1"']
    values = [1, True, 1.0, 0.0, -0.0, False, None, "1"]
    excerpts = [cut_excerpt({"spec": {"a": "x", "b": value}}, ("spec", "a"), frozenset()) for value in values]
    assert [f'spec: {{"a": "x", "b": {text}}}' for text in written] == excerpts


def test_a_remembered_excerpt_shows_no_value_that_another_object_hides() -> None:
    """The values to hide belong to an object, not to the fields."""
    body: JsonObject = {"spec": {"a": "x", "b": "hunter22"}}
    hidden = [frozenset[str](), frozenset({"hunter22"}), frozenset({"unter"})]
    shown = ["hunter22", "[redacted]", "h[redacted]22"]
    assert [f'spec: {{"a": "x", "b": "{text}"}}' for text in shown] == [
        cut_excerpt(body, ("spec", "a"), each) for each in hidden
    ]
