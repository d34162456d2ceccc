"""The fields of an updated object that the server sets."""

from __future__ import annotations

from typing import Any

import pytest

from scanner.admission.server_fields import GENERATION, list_fields_set_on_update
from scanner.model.resource import Kind

DEPLOYMENTS = Kind("apps", "v1", "Deployment", "deployments", namespaced=True)
DAEMON_SETS = Kind("apps", "v1", "DaemonSet", "daemonsets", namespaced=True)
OLD: dict[str, Any] = {"metadata": {"name": "a"}, "spec": {"paused": False}}


@pytest.mark.parametrize(
    ("kind", "new", "expected"),
    [
        (DEPLOYMENTS, OLD, False),
        (DEPLOYMENTS, {**OLD, "metadata": {"name": "a", "labels": {"b": "c"}}}, False),
        (DEPLOYMENTS, {**OLD, "metadata": {"name": "a", "annotations": {"b": "c"}}}, True),
        (DAEMON_SETS, {**OLD, "metadata": {"name": "a", "annotations": {"b": "c"}}}, False),
        (DEPLOYMENTS, {**OLD, "spec": {"paused": True}}, True),
        (DEPLOYMENTS, {**OLD, "data": {}}, True),
        (DEPLOYMENTS, {"metadata": OLD["metadata"]}, True),
    ],
)
def test_a_change_has_a_generation_of_its_own(kind: Kind, new: dict[str, Any], *, expected: bool) -> None:
    """Metadata does not count, except for the annotations of a Deployment."""
    assert expected == (GENERATION in list_fields_set_on_update(kind, OLD, new))
