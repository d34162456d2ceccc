"""The change that remains after the server has stored the object: repeated values are no change."""

from __future__ import annotations

from typing import Any

import pytest

from scanner.cluster.schemas import builtin_schemas
from scanner.model.json import Json
from scanner.model.outcome import Change
from scanner.mutate.decoding import strictly_decoded
from scanner.mutate.difference import difference
from scanner.mutate.goread import special
from scanner.mutate.operations import Node, Operation, apply
from scanner.mutate.storing import stored

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


def left_of(*operations: Operation) -> tuple[Change, ...]:
    """The changes of operations that remain in the stored Pod."""
    after: Any = apply(operations, STORED)
    stored_object: Any = stored(POD, STORED, strictly_decoded(POD, after, STORED))
    return difference(STORED, stored_object)


CONTAINER = "/spec/containers/0"


@pytest.mark.parametrize(
    "operation",
    [
        Operation("replace", f"{CONTAINER}/resources/limits/memory", "1024Mi"),
        Operation("replace", f"{CONTAINER}/resources/limits/cpu", "1000m"),
        Operation("replace", f"{CONTAINER}/resources/limits/cpu", 1),
        Operation("remove", "/spec/restartPolicy"),
        Operation("remove", f"{CONTAINER}/imagePullPolicy"),
        Operation(
            "replace", CONTAINER, {"name": "c", "image": "x:1", "resources": {"limits": {"memory": "1Gi", "cpu": "1"}}}
        ),
        Operation("add", "/spec/hostNetwork", value=False),
        Operation("add", "/spec/securityContext", {}),
        Operation("add", "/spec/nodeSelector", {}),
        Operation("add", "/spec/tolerations", []),
        Operation("add", "/spec/nodeName", ""),
        Operation("add", "/spec/volumes", None),
        Operation("replace", "/metadata/uid", "other"),
        Operation("replace", "/status/phase", "Failed"),
        Operation("remove", "/metadata/creationTimestamp"),
    ],
)
def test_what_only_restates_is_no_change(operation: Operation) -> None:
    """Equal quantities, empty values, defaults and server-set values stay as they were."""
    assert () == left_of(operation)


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        (Operation("add", "/spec/hostNetwork", value=True), Change("add", "/spec/hostNetwork", value=True)),
        (Operation("replace", "/spec/restartPolicy", "Never"), Change("replace", "/spec/restartPolicy", "Never")),
        (
            Operation("replace", f"{CONTAINER}/resources/limits/memory", "2048Mi"),
            Change("replace", f"{CONTAINER}/resources/limits/memory", "2Gi"),
        ),
        (Operation("replace", "/metadata/labels", None), Change("remove", "/metadata/labels")),
        (Operation("add", "/metadata/labels/x", ""), Change("add", "/metadata/labels/x", "")),
        (
            Operation("add", "/spec/shareProcessNamespace", value=False),
            Change("add", "/spec/shareProcessNamespace", value=False),
        ),
    ],
)
def test_what_the_server_keeps_is_a_change(operation: Operation, expected: Change) -> None:
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
    assert expected == special("Quantity", written)
