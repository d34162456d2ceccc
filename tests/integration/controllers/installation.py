"""Two releases of the chart in a cluster with the example objects and policies: one with PostgreSQL, one with SQLite."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from scanner.model.json import JsonObject
from tests.integration import examples
from tests.integration.controllers.cluster import Cluster
from tests.integration.controllers.release import SECRET, database_secret, job_from, manifests, namespace

SCHEDULED = "assay"
"""The release whose CronJob becomes due. Its service account may read the custom resources of the example cluster, too."""
BY_HAND = "assay-by-hand"
"""The release whose CronJob is suspended: tests make Jobs of it. Its service account has the rights of the chart alone."""
VOLUME = BY_HAND
"""The claim of the second release."""
CUSTOM_KINDS: JsonObject = {
    "extraRules": [
        {"apiGroups": ["ops.example.com"], "resources": ["backups"], "verbs": ["get", "list"]},
        {"apiGroups": ["governance.example.com"], "resources": ["storagelimits"], "verbs": ["get", "list"]},
    ]
}


class Installed(NamedTuple):
    """The releases in a cluster, the database of the first one, and the time at which its CronJob is due."""

    cluster: Cluster
    database: str
    due: datetime

    def job(
        self,
        name: str,
        *arguments: str,
        database: str,
        account: str = SCHEDULED,
        env: Mapping[str, str] | None = None,
        without: tuple[str, ...] = (),
        fields: JsonObject | None = None,
        upgrades: bool = True,
    ) -> JsonObject:
        """A Job of the second release with a database, by default with an account that can read everything; see `job_from`."""
        return job_from(
            self.cluster.cron_job(BY_HAND),
            name,
            *arguments,
            env={"ASSAY_DB": database, **(env or {})},
            without=without,
            job=fields,
            account=account,
            upgrades=upgrades,
        )


def install(cluster: Cluster, url: str) -> Installed:
    """Fill a cluster, and install both releases."""
    cluster.apply([*examples.objects("after"), namespace(), *examples.policies()])
    due = _next_minute()
    scheduled: JsonObject = {
        "schedule": f"{due.minute} {due.hour} * * *",
        "database": {"existingSecret": SECRET},
        "rbac": CUSTOM_KINDS,
    }
    cluster.apply([database_secret(url), *manifests(SCHEDULED, scheduled), *manifests(BY_HAND, {"suspend": True})])
    return Installed(cluster, url, due)


def _next_minute() -> datetime:
    """The beginning of the next minute that is at least ten seconds away."""
    return (datetime.now(UTC) + timedelta(seconds=70)).replace(second=0, microsecond=0)
