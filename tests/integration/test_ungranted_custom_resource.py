"""One custom resource that a scan may not list makes it incomplete, until the right is granted or the kind is left out: both remedies work as printed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from scanner.model.json import JsonObject
from scanner.posture.settings import DEFAULT_SETTINGS
from scanner.store import open_reader
from scanner.web.server.metrics import ClusterMetrics
from tests.cli.conftest import Assay
from tests.integration.apiserver import ApiServer, running
from tests.integration.made import binding, namespace, policy
from tests.integration.manifests import apply
from tests.integration.test_scan_rights import gaps, rights_of_the_deployment, scan

SCANNER = "auditor"
GROUP, PLURAL = "ops.example.com", "backups"
DEFINITION: JsonObject = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"{PLURAL}.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {"kind": "Backup", "plural": PLURAL, "singular": "backup"},
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
        ],
    },
}


MATCH: JsonObject = {
    "resourceRules": [
        {"apiGroups": [GROUP], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": [PLURAL]}
    ]
}
SKIP = ("--skip-kind", "secrets", "--cluster-name", "prod")


@pytest.fixture
def server(assets: Path, tmp_path: Path) -> Iterator[ApiServer]:
    """A cluster with a custom kind, a policy about it, and the ClusterRole of the deployment, which does not know the kind."""
    with running(assets, tmp_path) as server:
        apply(server, [namespace("guarded"), DEFINITION])
        apply(server, [policy("about-backups", PLURAL, matchConstraints=MATCH), binding("about-backups")])
        apply(server, rights_of_the_deployment(SCANNER))
        yield server


def complete(database: str) -> tuple[str, bool]:
    """The sample that tells whether the newest scan is complete, and whether a scan was ever complete."""
    with open_reader(database) as store:
        text = ClusterMetrics(lambda: store, DEFAULT_SETTINGS).text(10)
    ever = 'assay_last_complete_scan_timestamp_seconds{cluster="prod"}' in text
    return next(line for line in text.splitlines() if line.startswith("assay_scan_complete{")), ever


def test_leaving_the_kind_out_as_printed_makes_the_scan_complete(server: ApiServer, assay: Assay) -> None:
    """The alerts about incomplete scans end then."""
    nights = [scan(server, SCANNER, assay, *SKIP) for _ in range(2)]
    before = complete("assay.db")
    [why] = gaps(nights[-1]).values()
    printed = re.findall(r"--skip-kind \S+", why)
    after = scan(server, SCANNER, assay, *SKIP, *(word for flag in printed for word in flag.split()))

    assert [3, 3] == [night.code for night in nights]
    assert [f"--skip-kind {PLURAL}.{GROUP}"] == printed
    assert (0, {}) == (after.code, gaps(after))
    assert ('assay_scan_complete{cluster="prod"} 0.0', False) == before
    assert ('assay_scan_complete{cluster="prod"} 1.0', True) == complete("assay.db")


def test_granting_the_right_as_printed_makes_the_scan_complete(server: ApiServer, assay: Assay) -> None:
    """An administrator applies what `assay rbac generate` prints for the user of the scan."""
    before = scan(server, SCANNER, assay, *SKIP)
    admin = ("--kubeconfig", server.kubeconfig_for("admin"), "--skip-kind", "secrets")
    roles = assay("rbac", "generate", "--for", f"user:{SCANNER}", "--name", "assay-auditor", *admin)
    apply(server, [document for document in yaml.safe_load_all(roles.stdout) if document])
    after = scan(server, SCANNER, assay, *SKIP)

    assert (3, 0, {}) == (before.code, after.code, gaps(after))
