"""The API server's own counts of objects, in its metrics."""

from __future__ import annotations

from scanner.cluster.live.cluster import parse_object_counts

OLD = b"""\
# HELP apiserver_storage_objects [STABLE] Number of stored objects at the time of last check split by kind.
# TYPE apiserver_storage_objects gauge
apiserver_storage_objects{resource="deployments.apps"} 31
apiserver_storage_objects{resource="events"} 1.234567e+06
apiserver_storage_objects{resource="pods"} -1
apiserver_storage_objects_other{resource="services"} 5
"""
NEW = b"""\
# TYPE apiserver_resource_objects gauge
apiserver_resource_objects{group="",resource="pods"} 12
apiserver_resource_objects{group="apps",resource="deployments"} 32
apiserver_resource_objects{group="ops.example.com",resource="backups"} NaN
"""


def test_servers_before_1_34_count_by_resource() -> None:
    """Large numbers are written with an exponent; -1 is a count that failed."""
    assert {"deployments.apps": 31, "events": 1_234_567} == parse_object_counts(OLD)


def test_servers_since_1_34_count_by_group_and_resource() -> None:
    """These counts replace the deprecated ones."""
    assert {"deployments.apps": 32, "events": 1_234_567, "pods": 12} == parse_object_counts(OLD + NEW)


def test_other_metrics_have_no_counts() -> None:
    """As those of a proxy that answers in the place of the server."""
    assert {} == parse_object_counts(b"<html>apiserver_resource_objects</html>")
