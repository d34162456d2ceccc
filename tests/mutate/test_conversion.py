"""Values that no internal type can hold, and values that the conversion drops."""

from __future__ import annotations

import pytest

from scanner.cluster.schemas import builtin_schemas
from scanner.model.json import JsonObject, dig
from scanner.mutate.native import RequestFault
from scanner.mutate.registry.conversion import convert_round_trip, reject_unconvertible
from scanner.mutate.registry.strategies import count_template

DEFINITION = builtin_schemas()["apiextensions.k8s.io", "v1", "CustomResourceDefinition"]


def daemon_set(counter: str) -> JsonObject:
    """A DaemonSet with a template generation."""
    notes: JsonObject = {"deprecated.daemonset.template.generation": counter}
    return {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "x", "annotations": notes}}


@pytest.mark.parametrize(
    ("counter", "why"),
    [
        ("", "invalid syntax"),
        ("x", "invalid syntax"),
        ("1_0", "invalid syntax"),
        (str(2**63), "value out of range"),
        ("9" * 5_000, "value out of range"),
    ],
)
def test_a_template_generation_that_is_no_number_ends_the_request(counter: str, why: str) -> None:
    """The error has Go's text."""
    with pytest.raises(RequestFault) as raised:
        reject_unconvertible(daemon_set(counter))

    expected = f'Internal error occurred: failed to convert object: strconv.ParseInt: parsing "{counter}": {why}'
    assert expected == str(raised.value)


@pytest.mark.parametrize(
    "document", [daemon_set("1"), daemon_set("-1"), daemon_set("0" * 5_000), {**daemon_set("x"), "kind": "Deployment"}]
)
def test_only_the_counter_of_a_daemon_set_is_read(document: JsonObject) -> None:
    """Other objects raise nothing."""
    reject_unconvertible(document)


@pytest.mark.parametrize(("stored", "expected"), [("3", "4"), ("x", "1"), ("9" * 5_000, "1")])
def test_a_changed_template_has_the_next_number(stored: str, expected: str) -> None:
    """The stored number of a file may be any text."""
    before = {**daemon_set(stored), "spec": {"template": {"metadata": {}}}}
    changed = count_template("io.k8s.api.apps.v1.DaemonSet", before, {**before, "spec": {"template": {}}})

    assert expected == dig(changed, "metadata", "annotations", "deprecated.daemonset.template.generation")


def test_items_that_are_neither_schema_nor_list_are_dropped() -> None:
    """The items are null after decoding, and nil after the next conversion."""
    versions: list[JsonObject] = [{"name": "v1", "schema": {"openAPIV3Schema": {"type": "array", "items": None}}}]
    definition = convert_round_trip(DEFINITION, {"spec": {"versions": versions}})

    assert {"spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": {"type": "array"}}}]}} == definition
