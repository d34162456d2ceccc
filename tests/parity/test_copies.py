"""The copy that a dry-run create sends."""

from __future__ import annotations

import pytest

from scanner.admission.server_fields import list_fields_set_on_create, reads_any
from scanner.model.json import JsonObject
from scanner.model.resource import Kind
from scanner.parity.copies import list_changed_paths, make_copy
from tests.documents import CONFIG_MAPS

SERVICES = Kind("", "v1", "Service", "services", namespaced=True)
JOBS = Kind("batch", "v1", "Job", "jobs", namespaced=True)
METADATA: JsonObject = {
    "name": "a",
    "namespace": "shop",
    "labels": {"x": "y"},
    "uid": "u",
    "resourceVersion": "7",
    "creationTimestamp": "2026-03-01T12:00:00Z",
    "generation": 2,
    "managedFields": [],
    "deletionTimestamp": "2026-03-01T12:00:00Z",
    "ownerReferences": [{"name": "o"}],
}


def test_a_copy_is_without_what_a_server_sets() -> None:
    """The user's fields stay, owners and labels included."""
    kept = {"name": "a", "namespace": "shop", "labels": {"x": "y"}, "ownerReferences": [{"name": "o"}]}

    assert {"metadata": kept, "data": {"k": "v"}} == make_copy(CONFIG_MAPS, {"metadata": METADATA, "data": {"k": "v"}})


def test_a_second_service_gets_addresses_and_ports_of_its_own() -> None:
    """The copy has all other fields of the spec."""
    spec: JsonObject = {
        "clusterIP": "10.0.0.1",
        "clusterIPs": ["10.0.0.1"],
        "ports": [{"port": 80, "nodePort": 30000}, {"port": 81}],
    }

    assert {"spec": {"ports": [{"port": 80}, {"port": 81}]}} == make_copy(SERVICES, {"spec": spec})


def test_a_second_job_gets_a_selector_of_its_own() -> None:
    """The copy lacks the label that assigns Pods to the first job."""
    labels = {"controller-uid": "u", "batch.kubernetes.io/controller-uid": "u", "app": "x"}
    body: JsonObject = {"spec": {"selector": {"matchLabels": {}}, "template": {"metadata": {"labels": labels}}}}

    assert {"spec": {"template": {"metadata": {"labels": {"app": "x"}}}}} == make_copy(JOBS, body)


@pytest.mark.parametrize(
    ("read", "seen"),
    [
        (("object", "metadata", "uid"), True),
        (("object", "metadata"), True),
        (("object",), True),
        (("oldObject", "status", "phase"), True),
        (("object", "metadata", "name"), False),
        (("object", "spec", "replicas"), False),
        (("params", "metadata", "uid"), False),
    ],
)
def test_what_reads_a_field_that_is_set_on_create(read: tuple[str, ...], seen: bool) -> None:  # noqa: FBT001 - data
    """A path reads the field if it leads to the field, into it, or to a parent; params are not copied."""
    assert seen == reads_any([read], list_fields_set_on_create(CONFIG_MAPS, {}))


@pytest.mark.parametrize(("port", "seen"), [({"port": 80}, False), ({"port": 80, "nodePort": 30000}, True)])
def test_only_what_was_allocated_is_set_on_create(port: JsonObject, seen: bool) -> None:  # noqa: FBT001 - data
    """A service without node ports is sent with all of its ports."""
    anew = list_fields_set_on_create(SERVICES, {"spec": {"ports": [port]}})

    assert seen == reads_any([("object", "spec", "ports")], anew)


def test_what_admission_changed() -> None:
    """The paths are the outermost differences, without managedFields, which name Assay."""
    before: JsonObject = {"metadata": {"managedFields": [1], "labels": {"a": "1"}}, "spec": {"list": [1]}}
    after: JsonObject = {"metadata": {"managedFields": [2], "labels": {"a": "1", "b": "2"}}, "spec": {"list": [1, 2]}}

    assert (("metadata", "labels", "b"), ("spec", "list")) == list_changed_paths(before, after)
    assert () == list_changed_paths(before, before)
