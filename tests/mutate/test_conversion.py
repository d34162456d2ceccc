"""What no internal type can hold, and what the way through it drops."""

from __future__ import annotations

import pytest

from scanner.cluster.schemas import builtin_schemas
from scanner.model.json import JsonObject
from scanner.mutate.registry.conversion import reject_unconvertible, round_tripped
from scanner.mutate.values import RequestFault

DEFINITION = builtin_schemas()["apiextensions.k8s.io", "v1", "CustomResourceDefinition"]


def daemon_set(counter: str) -> JsonObject:
    """A DaemonSet with a template generation."""
    notes: JsonObject = {"deprecated.daemonset.template.generation": counter}
    return {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "x", "annotations": notes}}


@pytest.mark.parametrize(
    ("counter", "why"), [("", "invalid syntax"), ("x", "invalid syntax"), (str(2**63), "value out of range")]
)
def test_a_template_generation_that_is_no_number_ends_the_request(counter: str, why: str) -> None:
    """In Go's words."""
    with pytest.raises(RequestFault) as raised:
        reject_unconvertible(daemon_set(counter))

    expected = f'Internal error occurred: failed to convert object: strconv.ParseInt: parsing "{counter}": {why}'
    assert expected == str(raised.value)


@pytest.mark.parametrize("document", [daemon_set("1"), daemon_set("-1"), {**daemon_set("x"), "kind": "Deployment"}])
def test_only_the_counter_of_a_daemon_set_is_read(document: JsonObject) -> None:
    """Nothing is raised."""
    reject_unconvertible(document)


def test_items_that_are_neither_schema_nor_list_are_dropped() -> None:
    """They are null once decoded, and nil when that is read again."""
    versions: list[JsonObject] = [{"name": "v1", "schema": {"openAPIV3Schema": {"type": "array", "items": None}}}]
    definition = round_tripped(DEFINITION, {"spec": {"versions": versions}})

    assert {"spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": {"type": "array"}}}]}} == definition
