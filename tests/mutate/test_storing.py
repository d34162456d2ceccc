"""The change that remains after the server has stored the object: repeated values are no change."""

from __future__ import annotations

from typing import Any

import pytest

from scanner.cluster.schemas import builtin_schemas
from scanner.model.json import Json
from scanner.model.outcome import Change
from scanner.mutate.decoding import decode_strictly
from scanner.mutate.difference import find_changes
from scanner.mutate.goread import read_special
from scanner.mutate.operations import Node, PatchOperation, apply
from scanner.mutate.storing import store_update

POD = builtin_schemas()["", "v1", "Pod"]
STORED: dict[str, Node] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z", "labels": {"a": "b"}},
    "spec": {
        "restartPolicy": "Always",
        "dnsPolicy": "ClusterFirst",
        "containers": [
            {
                "name": "c",
                "image": "x:1",
                "imagePullPolicy": "IfNotPresent",
                "terminationMessagePath": "/dev/termination-log",
                "resources": {"limits": {"memory": "1Gi", "cpu": "1"}},
            }
        ],
    },
    "status": {"phase": "Running"},
}


def left_of(*operations: PatchOperation) -> tuple[Change, ...]:
    """The changes of operations that remain in the stored Pod."""
    after: Any = apply(operations, STORED)
    stored_object: Any = store_update(POD, STORED, decode_strictly(POD, after, STORED))
    return find_changes(STORED, stored_object)


CONTAINER = "/spec/containers/0"


@pytest.mark.parametrize(
    "operation",
    [
        PatchOperation("replace", f"{CONTAINER}/resources/limits/memory", "1024Mi"),
        PatchOperation("replace", f"{CONTAINER}/resources/limits/cpu", "1000m"),
        PatchOperation("replace", f"{CONTAINER}/resources/limits/cpu", 1),
        PatchOperation("remove", "/spec/restartPolicy"),
        PatchOperation("remove", f"{CONTAINER}/imagePullPolicy"),
        PatchOperation(
            "replace", CONTAINER, {"name": "c", "image": "x:1", "resources": {"limits": {"memory": "1Gi", "cpu": "1"}}}
        ),
        PatchOperation("add", "/spec/hostNetwork", value=False),
        PatchOperation("add", "/spec/securityContext", {}),
        PatchOperation("add", "/spec/nodeSelector", {}),
        PatchOperation("add", "/spec/tolerations", []),
        PatchOperation("add", "/spec/nodeName", ""),
        PatchOperation("add", "/spec/volumes", None),
        PatchOperation("replace", "/metadata/uid", "other"),
        PatchOperation("replace", "/status/phase", "Failed"),
        PatchOperation("remove", "/metadata/creationTimestamp"),
    ],
)
def test_what_only_restates_is_no_change(operation: PatchOperation) -> None:
    """Equal quantities, empty values, defaults and server-set values stay as they were."""
    assert () == left_of(operation)


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        (PatchOperation("add", "/spec/hostNetwork", value=True), Change("add", "/spec/hostNetwork", value=True)),
        (PatchOperation("replace", "/spec/restartPolicy", "Never"), Change("replace", "/spec/restartPolicy", "Never")),
        (
            PatchOperation("replace", f"{CONTAINER}/resources/limits/memory", "2048Mi"),
            Change("replace", f"{CONTAINER}/resources/limits/memory", "2Gi"),
        ),
        (PatchOperation("replace", "/metadata/labels", None), Change("remove", "/metadata/labels")),
        (PatchOperation("add", "/metadata/labels/x", ""), Change("add", "/metadata/labels/x", "")),
        (
            PatchOperation("add", "/spec/shareProcessNamespace", value=False),
            Change("add", "/spec/shareProcessNamespace", value=False),
        ),
    ],
)
def test_what_the_server_keeps_is_a_change(operation: PatchOperation, expected: Change) -> None:
    """Different values stay, as the server writes them."""
    assert (expected,) == left_of(operation)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("1024Mi", "1Gi"),
        ("1000m", "1"),
        ("1500m", "1500m"),
        ("1e3", "1e3"),
        ("0.5", "500m"),
        ("1.5Gi", "1536Mi"),
        ("0.1Gi", "107374182400m"),
        ("1000000", "1M"),
        ("512Ki", "512Ki"),
        ("0", "0"),
        ("-1500m", "-1500m"),
        (5, "5"),
    ],
)
def test_quantities_are_written_with_the_smallest_mantissa(written: Json, expected: str) -> None:
    """The canonical form keeps the family of the suffix."""
    assert expected == read_special("Quantity", written)
