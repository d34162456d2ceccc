"""The release of deploy/ in a cluster with the example objects and policies."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from scanner.model.json import Json, JsonObject
from tests.integration import examples
from tests.integration.controllers.cluster import Cluster
from tests.integration.controllers.release import NAMESPACE, database, manifests

ACCOUNT = "assay"
OTHER_ACCOUNT = "assay-without-custom-kinds"
"""A service account that has the rights of the release alone."""
RBAC = "rbac.authorization.k8s.io/v1"
CUSTOM_KINDS: list[Json] = [
    {"apiGroups": ["ops.example.com"], "resources": ["backups"], "verbs": ["get", "list"]},
    {"apiGroups": ["governance.example.com"], "resources": ["storagelimits"], "verbs": ["get", "list"]},
]
"""The rules that a user adds for the custom resources of the example cluster."""


class Installed(NamedTuple):
    """The release in a cluster, with the time at which its CronJob is due."""

    cluster: Cluster
    database: str
    due: datetime


def install(cluster: Cluster, url: str) -> Installed:
    """Fill a cluster, and install the release with a CronJob that is due in the next minute."""
    cluster.apply([*examples.objects("after"), *_rights(), *examples.policies()])
    due = _next_minute()
    cluster.apply([*manifests(schedule=f"{due.minute} {due.hour} * * *"), database(url)])
    return Installed(cluster, url, due)


def _rights() -> list[JsonObject]:
    """The namespace of the release with a second service account; the first one may read the custom resources, too."""
    role: JsonObject = {
        "apiVersion": RBAC,
        "kind": "ClusterRole",
        "metadata": {"name": "custom-kinds"},
        "rules": CUSTOM_KINDS,
    }
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": OTHER_ACCOUNT, "namespace": NAMESPACE}},
        role,
        _bound(ACCOUNT, "custom-kinds"),
        _bound(OTHER_ACCOUNT, "assay"),
    ]


def _bound(account: str, role: str) -> JsonObject:
    """The binding of a service account of the release's namespace to a ClusterRole."""
    subject: JsonObject = {"kind": "ServiceAccount", "namespace": NAMESPACE, "name": account}
    return {
        "apiVersion": RBAC,
        "kind": "ClusterRoleBinding",
        "metadata": {"name": f"{account}-{role}"},
        "subjects": [subject],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
    }


def _next_minute() -> datetime:
    """The beginning of the next minute that is at least ten seconds away."""
    return (datetime.now(UTC) + timedelta(seconds=70)).replace(second=0, microsecond=0)
