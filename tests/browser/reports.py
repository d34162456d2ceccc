"""The reports that the tests open in a browser: of records, and of the example cluster with everything that a report can have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from scanner.model.population import KeptMetadata, KeptOfObject, Workload
from scanner.model.scans.cause import Cause, CauseKind
from scanner.model.scans.register import DayCounts, Register
from scanner.model.scans.stored_finding import StoredFinding
from scanner.report import FORMATS
from scanner.report.document.document import document_of
from tests.command import assay_here
from tests.report.in_memory import ScanInMemory
from tests.report.records import STARTED, finding, small_record, with_findings
from tests.report.test_charts import charted

ROOT = Path(__file__).parents[2]
_INCOMPLETE = 3
_OWNERS = {"pay": "payments", "shop": "storefront"}
_CONFIGURATION = """\
owners: [{annotation: example.com/owner}]
descriptions:
  - {policy: rbac-wildcards, severity: critical, title: Roles name what they allow}
  - {policy: host-access, severity: high}
"""
_WAIVERS = """\
apiVersion: assay.dev/v1alpha1
kind: Waiver
metadata: {name: vendor-image}
spec:
  policy: image-sources
  namespace: payments
  reason: The vendor publishes this image in one registry only.
  requestedBy: ann
  approvedBy: bob
  ticket: SEC-1234
  until: 2099-01-31
---
apiVersion: assay.dev/v1alpha1
kind: Waiver
metadata: {name: old}
spec: {policy: host-access, namespace: platform, reason: Old agents., requestedBy: ann, approvedBy: bob, until: 2020-01-31}
"""


def rendered(record: ScanInMemory, folder: Path) -> Path:
    """The folder of a record's report."""
    FORMATS["html"].render(document_of(record), folder / "report")
    return folder / "report"


def owned_record() -> ScanInMemory:
    """The small scan with owners by namespace, causes, reasons of resolutions, and five days before it."""
    record = small_record()
    days = tuple(
        DayCounts(STARTED.date() - timedelta(days=4 - place), number, 1, 0)
        for place, number in enumerate((9, 7, 7, 8, 6))
    )
    return replace(
        with_findings(record, list(map(_told, record.findings())), list(map(_told, record.resolved_findings()))),
        history=Register(days=days),
        charted=charted(),
        days={("ValidatingAdmissionPolicy", "require-limits"): days},
    )


def _told(stored: StoredFinding) -> StoredFinding:
    owner = _OWNERS.get(stored.finding.namespace)
    kept = KeptOfObject(KeptMetadata((("team", owner),))) if owner else None
    match stored.status:
        case "new":
            return replace(stored, kept=kept, cause=Cause(CauseKind.PARAM, (CauseKind.OBJECT_CHANGED,)))
        case "resolved":
            return replace(stored, kept=kept, cause=Cause(CauseKind.OBJECT_CHANGED), resolution="fixed")
        case _:
            return replace(stored, kept=kept)


def folded_record() -> ScanInMemory:
    """The small scan, of which three pods of a workload are one problem."""
    record = small_record()
    web = Workload("apps/v1", "Deployment", "shop", "web")
    pods = [
        replace(finding(f"web-{number}", kind="Pod"), problem="p-0123456789ab", workload=web) for number in range(3)
    ]
    return with_findings(record, [*pods, *record.findings()])


def with_status(record: ScanInMemory, change: Callable[[StoredFinding], StoredFinding]) -> ScanInMemory:
    """The record of the next scan, in which the findings of this one have become others."""
    later = list(map(change, record.findings()))
    return with_findings(record, later)


def example_report(home: Path) -> Path:
    """The report of the example cluster's second day: drift, previews, controls, waivers, owners, gaps, hostile names."""
    (home / "assay.yaml").write_text(_CONFIGURATION, "utf-8")
    (home / "waivers.yaml").write_text(_WAIVERS, "utf-8")
    examples = ROOT / "examples"
    shared = [
        *(flag for name in ("policies", "policies-mutating", "policies-kyverno") for flag in ("-f", examples / name)),
        *("--cluster-name", "shop", "--db", home / "assay.db", "--keep-annotation", "example.com/owner", "-q"),
    ]
    first = assay_here("scan", "--from", examples / "cluster" / "before", *shared, home=home)
    later = assay_here(
        *("scan", "--from", examples / "cluster" / "after", *shared, "--html", home / "report"),
        *("-f", examples / "policies-unbound", "--assume-bound", "graceful-shutdown=Warn"),
        *("--controls", examples / "controls", "--waivers", home / "waivers.yaml"),
        home=home,
    )
    assert (_INCOMPLETE, _INCOMPLETE) == (first.code, later.code), (first.stderr, later.stderr)
    return home / "report"
